// Which block a key leads to in a time line. A place is `{ number, name }`: a relay block's number,
// and the name of a candidate's square; a place without a name is the relay block itself.

const ALONG = { ArrowLeft: -1, ArrowRight: 1 };
const ACROSS = { ArrowUp: -1, ArrowDown: 1 };
const ENDS = { Home: "first", End: "last" };

export function moves(key) {
  return key in ALONG || key in ACROSS || key in ENDS;
}

// The place that a key leads to from `here`; `null` if it leads nowhere. `line` has `first` and
// `last`, the numbers of relay blocks, `rows` from top to bottom, and `columnAt(number)`.
export function moved(key, here, line) {
  const row = line.columnAt(here.number)?.squares.find((each) => each.name === here.name)?.row;
  if (key in ALONG) {
    return along(here, row, ALONG[key], line);
  }
  if (key in ACROSS) {
    return across(here, row, ACROSS[key], line);
  }
  const number = line[ENDS[key]];
  return { number, name: squares(line.columnAt(number), row).at(-1)?.name };
}

// The square of a chain that is nearest in time; `null` if no column has one.
export function nearest(row, number, { first, last, columnAt }) {
  for (let far = 0; number - far >= first || number + far <= last; far++) {
    for (const at of [number - far, number + far]) {
      const found = squares(columnAt(at), row);
      if (found.length) {
        return { number: at, name: found.at(-1).name };
      }
    }
  }
  return null;
}

function squares(column, row) {
  return column ? column.squares.filter((each) => each.row === row) : [];
}

// The chain's block before or after, or the relay block before or after.
function along(here, row, by, { first, last, columnAt }) {
  const own = squares(columnAt(here.number), row);
  const next = own[own.findIndex((each) => each.name === here.name) + by];
  if (next) {
    return { number: here.number, name: next.name };
  }
  for (let number = here.number + by; number >= first && number <= last; number += by) {
    const column = columnAt(number);
    const found = squares(column, row);
    // a column that has not been read yet may have a block of the chain
    if (row === undefined || !column || found.length) {
      return { number, name: found.at(by > 0 ? 0 : -1)?.name };
    }
  }
  return null;
}

// The nearest block of the next chain that has one; the relay chain is above all.
function across(here, row, by, line) {
  const at = line.rows.findIndex((each) => each.id === row);
  for (let next = at + by; next < line.rows.length; next += by) {
    if (next < 0) {
      return { number: here.number };
    }
    const found = nearest(line.rows[next].id, here.number, line);
    if (found) {
      return found;
    }
  }
  return null;
}

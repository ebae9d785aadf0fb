// Two branches beside each other: where both have a block of a number, and where one has none.

import { html } from "../html.js";
import { deliveries } from "../parts.js";
import { counted } from "../words.js";

// The relay blocks in which two branches differ, from the columns that were read of each. Numbers
// below the first of either list are not compared: the other branch may have them.
export function differences(mine, theirs, here, there) {
  const own = new Map(mine.map((column) => [column.number, column]));
  const other = new Map(theirs.map((column) => [column.number, column]));
  const from = Math.max(Math.min(...own.keys()), Math.min(...other.keys()));
  const numbers = [...new Set([...own.keys(), ...other.keys()])]
    .filter((number) => number >= from)
    .sort((a, b) => a - b);
  const rows = numbers
    .map((number) => ({ number, mine: own.get(number), theirs: other.get(number) }))
    .filter((row) => row.mine?.hash !== row.theirs?.hash);
  return { here, there, rows };
}

// What the rows say: how many blocks differ, and how many are on one side only.
export function summary({ here, there, rows }) {
  const both = rows.filter((row) => row.mine && row.theirs);
  const said = [];
  if (both.length) {
    const verb = both.length === 1 ? "differs" : "differ";
    said.push(`${counted(both.length, "relay block")} ${verb}, from ${both[0].number} on`);
  }
  for (const [name, side] of [
    [here, rows.filter((row) => !row.theirs)],
    [there, rows.filter((row) => !row.mine)],
  ]) {
    if (side.length) {
      const verb = side.length === 1 ? "exists" : "exist";
      said.push(`${counted(side.length, "relay block")} ${verb} on ${name} only`);
    }
  }
  return said.length ? `${said.join("; ")}.` : "Both are the same, block by block.";
}

export function Compared({ here, there, rows }) {
  return html`
    <div class="scroll" tabindex="0" role="region" aria-label="Compared branches">
      <table class="compared stacked">
        <caption>
          ${summary({ here, there, rows })}
        </caption>
        <thead>
          <tr>
            <th scope="col">block</th>
            <th scope="col">what</th>
            <th scope="col">${here}</th>
            <th scope="col">${there}</th>
          </tr>
        </thead>
        <tbody>
          ${rows.map(
            (row) => html`
              <tr>
                <td data-label="block">${row.number}</td>
                <td>${kind(row, here, there)}</td>
                <td data-label=${here}>${words(row.mine)}</td>
                <td data-label=${there}>${words(row.theirs)}</td>
              </tr>
            `,
          )}
        </tbody>
      </table>
    </div>
  `;
}

function kind(row, here, there) {
  if (row.mine && row.theirs) {
    return "differs";
  }
  return `only on ${row.mine ? here : there}`;
}

// A relay block in one line.
function words(column) {
  if (!column) {
    return "no block";
  }
  const refused = column.candidates
    .filter((each) => each.verdict)
    .map((each) => `, refused ${each.para}: ${each.verdict}`);
  return `${column.hash.slice(0, 10)}… ${deliveries(column.deliveredCount)}${refused.join("")}`;
}

// Paints drawings of tries from what `explorer.svg.packed` says; sizes and shapes come from there.

import { escaped } from "../words.js";

function unpack(drawing) {
  const places = [];
  const trail = [];
  let row = -1;
  let cells = 0;
  for (let at = 0; at < drawing.shapes.length; at++) {
    const column = drawing.columns.charCodeAt(at) - 48;
    row += Number(drawing.fresh[at]);
    const place = {
      at,
      column,
      row,
      shape: drawing.shapes[at],
      fate: drawing.fates[at],
      nibble: drawing.nibbles[at],
    };
    place.parent = column ? trail[column - 1] : null;
    if (place.shape === "B") {
      place.cells = drawing.cells.slice(cells, cells + 16);
      cells += 16;
    }
    trail[column] = place;
    places.push(place);
  }
  return places;
}

export function paint(drawing, glyphs) {
  const places = unpack(drawing);
  const x = (place) => place.column * glyphs.column + glyphs.margin;
  const y = (row) => row * glyphs.row + glyphs.margin;
  const ends = new Array(drawing.texts.length).fill(0);
  const branches = new Map();
  let edges = "";
  let marks = "";
  let width = 0;
  for (const place of places) {
    const left = x(place);
    const top = y(place.row);
    ends[place.row] = Math.max(ends[place.row], left + 14);
    if (place.parent) {
      const from = x(place.parent);
      edges +=
        place.parent.row === place.row
          ? `M${from + 9} ${top}H${left - 9}`
          : `M${from} ${y(place.parent.row) + 9}V${top}H${left - 9}`;
    }
    if (place.nibble !== "-") {
      marks += `<text class="n" x="${left - 17}" y="${top - 3}">${place.nibble}</text>`;
    }
    marks +=
      `<g class="${place.fate}" data-n="${place.at}"` +
      ` transform="translate(${left} ${top})">${glyph(place)}</g>`;
  }
  drawing.texts.forEach((text, row) => {
    const [label, note] = Array.isArray(text) ? text : [text, ""];
    width = Math.max(width, ends[row] + glyphs.letter * (label.length + note.length + 3));
    const faint = note && `<tspan class="t">${label && note ? " · " : ""}${escaped(note)}</tspan>`;
    if (label || note) {
      marks += `<text x="${ends[row]}" y="${y(row) + 4}">${escaped(label)}${faint}</text>`;
    }
  });
  const across = Math.floor(width + glyphs.margin);
  const height = drawing.texts.length * glyphs.row + 2;
  const svg =
    `<svg class="trie" width="${across}" height="${height}" viewBox="0 0 ${across} ${height}"` +
    ` role="img" aria-label="trie of ${places.length} places">` +
    `<path class="e" d="${edges}"/>${marks}</svg>`;
  return { svg, places };

  function glyph(place) {
    if (place.shape !== "B") {
      return glyphs.shapes[place.shape];
    }
    if (!branches.has(place.cells)) {
      let paths = "";
      for (const letter of new Set(place.cells)) {
        let data = "";
        for (let at = 0; at < 16; at++) {
          if (place.cells[at] === letter) {
            data += glyphs.cells[at];
          }
        }
        paths += `<path class="${letter === "." ? "z" : letter}" d="${data}"/>`;
      }
      branches.set(place.cells, paths);
    }
    return branches.get(place.cells);
  }
}

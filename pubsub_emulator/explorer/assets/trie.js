// Paints drawings of tries from what `explorer.svg.packed` says; sizes and shapes come from there too.

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
      place.cells = drawing.cells.slice(cells, (cells += 16));
    }
    trail[column] = place;
    places.push(place);
  }
  return places;
}

function paint(drawing, glyphs) {
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
    marks += `<g class="${place.fate}" data-n="${place.at}" transform="translate(${left} ${top})">${glyph(place)}</g>`;
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
  const svg = `<svg class="trie" width="${across}" height="${height}" viewBox="0 0 ${across} ${height}" role="img" aria-label="trie of ${places.length} places"><path class="e" d="${edges}"/>${marks}</svg>`;
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

const FATES = {
  s: "in the proof, for the keys that every parachain proves anyway: costs the budget nothing",
  p: "in the proof, on a path that was asked for",
  u: "in the proof, though the walk does not take it",
  r: "not in the proof: the parachain's own state vouches for it",
  w: "behind the place where the walk ended",
  m: "needed, and not there",
  h: "pruned: a hash and nothing more",
};

const SHAPES = {
  B: "branch",
  L: "leaf",
  V: "detached value",
  S: "reference, its node is not there",
  A: "node that is drawn elsewhere too",
  N: "keys proven absent here",
  E: "empty trie",
  M: "malformed node",
};

// A drawing with its legend, and below it the node that was chosen.
function trieView(run, detail) {
  const { svg, places } = paint(detail.drawing, run.glyphs);
  const field = element("div", {
    class: "field",
    tabindex: "0",
    role: "group",
    "aria-label": "Proof as a trie; arrow keys go from node to node",
  });
  field.innerHTML = svg;
  const legend = document.getElementById("legend").content.cloneNode(true);
  const panel = element(
    "div",
    { class: "panel", "aria-live": "polite" },
    element("p", { class: "hint" }, "Choose a node to see its bytes."),
  );
  const marks = field.querySelectorAll("[data-n]");
  let chosen = -1;

  field.addEventListener("click", (event) => {
    const at = spot(event);
    if (at !== null) {
      choose(at);
    }
  });
  field.addEventListener("keydown", (event) => {
    const place = places[chosen];
    const step = {
      ArrowDown: () => Math.min(chosen + 1, places.length - 1),
      ArrowUp: () => Math.max(chosen - 1, 0),
      ArrowLeft: () => (place && place.parent ? place.parent.at : 0),
      ArrowRight: () =>
        place && places[chosen + 1] && places[chosen + 1].parent === place ? chosen + 1 : chosen,
      Home: () => 0,
      End: () => places.length - 1,
    }[event.key];
    if (!step || !places.length) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    choose(Math.max(step(), 0));
  });
  return element("div", { class: "proof" }, legend, field, panel);

  // The place under a pointer: its glyph has gaps, and its words belong to it, so it is found by column and row.
  function spot(event) {
    const box = field.firstElementChild.getBoundingClientRect();
    const { column, row, margin } = run.glyphs;
    const across = Math.round((event.clientX - box.left - margin) / column);
    const line = places.filter(
      (place) => place.row === Math.round((event.clientY - box.top - margin) / row),
    );
    const found =
      line.find((place) => place.column === across) ||
      (line.length && across > line[line.length - 1].column ? line[line.length - 1] : null);
    return found ? found.at : null;
  }

  async function choose(at) {
    if (marks[chosen]) {
      marks[chosen].classList.remove("chosen");
    }
    chosen = at;
    marks[at].classList.add("chosen");
    marks[at].scrollIntoView({ block: "nearest", inline: "nearest" });
    const place = places[at];
    const number = detail.nodes[at];
    const node = number < 0 ? null : await run.node(number);
    if (chosen !== at) {
      return;
    }
    const text = detail.drawing.texts[place.row];
    panel.replaceChildren(
      facts([
        ["node", `${SHAPES[place.shape]} · ${FATES[place.fate]}`],
        [
          places[at + 1] && places[at + 1].row === place.row ? "leads to" : "proves",
          (Array.isArray(text) ? text.filter(Boolean).join(" · ") : text) ||
            "the way to what is below",
        ],
        ["hash", node ? `0x${node.hash}` : "inline: it stands in its parent"],
        ["nibbles", way(place) || "the root"],
        ["size", node && node.length ? bytes(node.length) : "not at hand"],
      ]),
    );
    if (node && node.bytes) {
      const cut = node.bytes.length < 2 * node.length ? "…" : "";
      panel.append(element("pre", { class: "bytes" }, node.bytes + cut));
    }
  }

  function way(place) {
    let out = "";
    for (let at = place; at; at = at.parent) {
      out = (at.nibble === "-" ? "" : `${at.nibble} `) + out;
    }
    return out.trim();
  }
}

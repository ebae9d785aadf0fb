// The proof as a trie: a drawing with its legend, and the node that was chosen.

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
      ArrowLeft: () => place?.parent?.at ?? 0,
      ArrowRight: () => (place && places[chosen + 1]?.parent === place ? chosen + 1 : chosen),
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

  // The place under a pointer: its glyph has gaps, and its words belong to it, so it is found by
  // column and row.
  function spot(event) {
    const box = field.firstElementChild.getBoundingClientRect();
    const { column, row, margin } = run.glyphs;
    const across = Math.round((event.clientX - box.left - margin) / column);
    const line = places.filter(
      (place) => place.row === Math.round((event.clientY - box.top - margin) / row),
    );
    const last = line.at(-1);
    const beyond = last && across > last.column ? last : null;
    const found = line.find((place) => place.column === across) || beyond;
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
          places[at + 1]?.row === place.row ? "leads to" : "proves",
          (Array.isArray(text) ? text.filter(Boolean).join(" · ") : text) ||
            "the way to what is below",
        ],
        ["hash", node ? `0x${node.hash}` : "inline: it stands in its parent"],
        ["nibbles", way(place) || "the root"],
        ["size", node?.length ? bytes(node.length) : "not at hand"],
      ]),
    );
    if (node?.bytes) {
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

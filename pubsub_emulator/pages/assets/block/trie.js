// The proof as a trie: a drawing with its legend, and the node that was chosen.

import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { Facts } from "../parts.js";
import { size } from "../words.js";
import { paint } from "./paint.js";

const FATES = {
  s: "in the proof, for the keys that every parachain proves anyway, at no cost to the budget",
  p: "in the proof, on a path that was asked for",
  u: "in the proof, although the walk does not use it",
  r: "not in the proof: the parachain's own state vouches for it",
  w: "behind the place where the walk ended",
  m: "needed, but missing",
  h: "pruned: only its hash",
};

const SHAPES = {
  B: "branch",
  L: "leaf",
  V: "detached value",
  S: "reference to a missing node",
  A: "node that is drawn elsewhere too",
  N: "keys proven absent here",
  E: "empty trie",
  M: "malformed node",
};

// The place that a key leads to from the chosen one.
function moved(key, places, chosen) {
  const place = places[chosen];
  const last = places.length - 1;
  const within = place && places[chosen + 1]?.parent === place;
  const targets = {
    ArrowDown: Math.min(chosen + 1, last),
    ArrowUp: Math.max(chosen - 1, 0),
    ArrowLeft: place?.parent?.at ?? 0,
    ArrowRight: within ? chosen + 1 : Math.max(chosen, 0),
    Home: 0,
    End: last,
  };
  return places.length ? targets[key] : undefined;
}

// The place under a pointer: its glyph has gaps, and its words belong to it, so it is found by
// column and row.
function spot(event, field, places, glyphs) {
  const box = field.querySelector("svg").getBoundingClientRect();
  const { column, row, margin } = glyphs;
  const across = Math.round((event.clientX - box.left - margin) / column);
  const down = Math.round((event.clientY - box.top - margin) / row);
  const line = places.filter((place) => place.row === down);
  const last = line.at(-1);
  const beyond = last && across > last.column ? last : null;
  return line.find((place) => place.column === across) || beyond;
}

export function Trie({ run, detail }) {
  const { svg, places } = useMemo(() => paint(detail.drawing, run.glyphs), [detail]);
  const legend = document.getElementById("legend").innerHTML;
  const field = useRef(null);
  const [chosen, setChosen] = useState(-1);
  useEffect(() => setChosen(-1), [detail]);
  useEffect(() => {
    const mark = field.current.querySelector(`[data-n="${chosen}"]`);
    mark?.classList.add("chosen");
    mark?.scrollIntoView({ block: "nearest", inline: "nearest" });
    return () => mark?.classList.remove("chosen");
  }, [detail, chosen]);
  const click = (event) => {
    const place = spot(event, field.current, places, run.glyphs);
    if (place) {
      setChosen(place.at);
    }
  };
  const key = (event) => {
    const target = moved(event.key, places, chosen);
    if (target === undefined) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    setChosen(target);
  };
  return html`
    <div class="proof">
      <div class="legend-place" dangerouslySetInnerHTML=${{ __html: legend }}></div>
      <div
        class="field"
        ref=${field}
        tabindex="0"
        role="group"
        aria-label="Proof as a trie; arrow keys go from node to node"
        onClick=${click}
        onKeyDown=${key}
        dangerouslySetInnerHTML=${{ __html: svg }}
      ></div>
      <div class="panel" aria-live="polite">
        ${
          places[chosen]
            ? html`<${Node} run=${run} detail=${detail} places=${places} at=${chosen} />`
            : html`<p class="hint">Choose a node to see its bytes.</p>`
        }
      </div>
    </div>
  `;
}

// The chosen node in words and bytes.
function Node({ run, detail, places, at }) {
  const number = detail.nodes[at];
  const [read, setRead] = useState(null);
  useEffect(() => {
    let gone = false;
    if (number >= 0) {
      run.source.node(number).then((node) => gone || setRead({ number, node }));
    }
    return () => {
      gone = true;
    };
  }, [detail, number]);
  const place = places[at];
  const node = read?.number === number ? read.node : null;
  const inline = number < 0;
  if (!inline && !node) {
    return html`<p class="hint">Reading the node …</p>`;
  }
  const text = detail.drawing.texts[place.row];
  const words = Array.isArray(text) ? text.filter(Boolean).join(" · ") : text;
  const leads = places[at + 1]?.row === place.row;
  const rows = [
    ["node", `${SHAPES[place.shape]} · ${FATES[place.fate]}`],
    [leads ? "leads to" : "proves", words || "the way to what is below"],
    ["hash", node ? `0x${node.hash}` : "inline: it stands in its parent"],
    ["nibbles", way(place) || "the root"],
    ["size", node?.length ? size(node.length) : "not available"],
  ];
  const cut = node?.bytes && node.bytes.length < 2 * node.length ? "…" : "";
  return html`
    <${Facts} rows=${rows} />
    ${node?.bytes ? html`<pre class="bytes">${node.bytes}${cut}</pre>` : null}
  `;
}

// The nibbles from the root to a place.
function way(place) {
  const nibbles = [];
  for (let at = place; at; at = at.parent) {
    if (at.nibble !== "-") {
      nibbles.unshift(at.nibble);
    }
  }
  return nibbles.join(" ");
}

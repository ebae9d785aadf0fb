// A column of the time line: a relay block and its candidates.

import { Component, html } from "../html.js";
import { placed } from "./grid.js";

const TICKS = 5; // every so many columns have their number below
const LOW = 12; // a square below this height has smaller letters

export class Column extends Component {
  shouldComponentUpdate(next) {
    return ["column", "places", "x", "chosen", "hits"].some(
      (name) => next[name] !== this.props[name],
    );
  }

  render({ number, column, places, x, chosen, hits, onOpen }) {
    const tick = placed(places.size + 1, 0, 1).top;
    return html`
      <div class="column" style=${{ left: `${x}px` }}>
        <${Square}
          name=${number}
          kind=${column?.publishes ? "news" : "relay"}
          words=${`relay block ${number}`}
          chosen=${chosen !== null && chosen.name === undefined}
          hit=${hits.has(number)}
          spot=${placed(0, 0, 1)}
          open=${() => onOpen({ number })}
        />
        ${shared(column, places).map(
          ([square, spot]) => html`
            <${Square}
              key=${`${square.name} ${spot.top}`}
              ...${square}
              chosen=${chosen?.name === square.name}
              hit=${hits.has(square.name)}
              spot=${spot}
              open=${() => onOpen({ number, name: square.name })}
            />
          `,
        )}
        ${
          number % TICKS === 0
            ? html`<span class="tick" style=${{ top: `${tick}px` }}>${number}</span>`
            : null
        }
      </div>
    `;
  }
}

// The squares of the chains that are shown, with their spots.
function shared(column, places) {
  const squares = (column?.squares || []).filter((square) => places.has(square.row));
  const seen = new Map();
  return squares.map((square) => {
    const nth = seen.get(square.row) || 0;
    seen.set(square.row, nth + 1);
    const count = squares.filter((each) => each.row === square.row).length;
    return [square, placed(places.get(square.row), nth, count)];
  });
}

// The square of a block in the time line.
function Square({ name, kind, words, chosen, hit, spot, open }) {
  const { top, height } = spot;
  const marks = [chosen && "here", hit && "hit", height < LOW && "low"].filter(Boolean);
  return html`
    <button
      type="button"
      tabindex="-1"
      class=${["cell", kind, ...marks].join(" ")}
      title=${words}
      aria-label=${words}
      data-name=${name}
      style=${{ top: `${top}px`, height: `${height}px`, lineHeight: `${height - 1}px` }}
      onClick=${open}
    >
      ${kind === "refused" ? "×" : ""}
    </button>
  `;
}

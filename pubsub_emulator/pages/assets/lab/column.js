// A column of the time line: a relay block and its candidates.

import { KINDS, kindOf } from "../block/kinds.js";
import { Component, html } from "../html.js";
import { show } from "./choice.js";
import { ROW, TOP } from "./grid.js";

export class Column extends Component {
  shouldComponentUpdate(next) {
    return ["column", "rows", "x", "chosen", "hits"].some(
      (name) => next[name] !== this.props[name],
    );
  }

  render(props) {
    return drawn(props);
  }
}

function drawn({ number, column, rows, x, chosen, hits }) {
  const mark = (kind, here, hit) => `cell ${kind}${here ? " here" : ""}${hit ? " hit" : ""}`;
  const here = chosen;
  const seen = new Map();
  const several = (para) => column.candidates.filter((each) => each.para === para).length > 1;
  return html`
    <div class="column" style=${{ left: `${x}px` }}>
      <button
        type="button"
        tabindex="-1"
        class=${mark(
          column?.publishedCount ? "news" : "relay",
          here && !chosen.hash,
          hits.has(number),
        )}
        aria-label=${`relay block ${number}`}
        onClick=${() => show(number)}
      ></button>
      ${(column?.candidates || []).map((each) => {
        const nth = seen.get(each.para) || 0;
        seen.set(each.para, nth + 1);
        const delivered = each.delivered ? `${each.delivered} delivered` : KINDS.quiet;
        const words =
          `parachain ${each.para}, block ${each.number} in relay block ${number}:` +
          ` ${each.verdict || delivered}`;
        const isHere = here && chosen.hash === each.hash;
        const kind = mark(
          kindOf(each.verdict, each.stopped, each.delivered),
          isHere,
          hits.has(each.hash),
        );
        return html`
          <button
            type="button"
            tabindex="-1"
            key=${each.hash + nth}
            class=${`${kind}${several(each.para) ? " half" : ""}`}
            title=${words}
            aria-label=${words}
            style=${{
              top: `${TOP + (rows.get(each.para) || 0) * ROW + Math.min(nth, 1) * 9}px`,
            }}
            onClick=${() => show(number, each.hash)}
          >
            ${each.verdict ? "×" : ""}
          </button>
        `;
      })}
      ${
        number % 5 === 0
          ? html`
            <span class="tick" style=${{ top: `${TOP + (rows.size + 1) * ROW}px` }}>
              ${number}
            </span>
          `
          : null
      }
    </div>
  `;
}

// The way of the followed key in the time line.

import { CELL, ROW, TOP } from "../block/grid.js";
import { html } from "../html.js";
import { first } from "./state.js";

// From its sender's row to the relay chain's, and from there to those that it reached.
export function Way({ steps, places, from, to }) {
  const lines = [];
  let sent = null;
  let written = null;
  const at = ({ number, para }) => [
    (number - from) * CELL + CELL / 2,
    TOP + (para === undefined ? 0 : places.get(para) || 0) * ROW + 8,
  ];
  for (const step of steps) {
    const before = { written: sent, delivered: written }[step.kind]; // none past its removal
    if (before && step.number >= from && before.number <= to) {
      lines.push([...at(before), ...at(step)]);
    }
    if (step.kind === "sent") {
      sent = step;
    }
    if (step.kind === "written") {
      written = step;
    }
    if (step.kind === "expired") {
      written = null;
    }
  }
  if (!lines.length) {
    return null;
  }
  return html`
    <svg
      class="way"
      aria-hidden="true"
      style=${{ left: `${(from - first.value) * CELL}px` }}
      width=${(to - from + 1) * CELL}
      height=${(places.size + 1) * ROW}
    >
      ${lines.map(
        ([a, b, c, d]) => html`
          <path d=${`M${a} ${b}L${c} ${d}`} />
        `,
      )}
    </svg>
  `;
}

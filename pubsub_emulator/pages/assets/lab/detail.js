// The chosen block: a candidate, or a relay block.

import { html } from "../html.js";
import { Candidate } from "./candidate.js";
import { Relay } from "./relay.js";
import { chosen, columns, version } from "./state.js";

export function Detail() {
  const at = chosen.value;
  const told = version.value;
  if (!at) {
    return html`
      <p class="hint">
        Choose a block in the time line; <kbd>left</kbd> and <kbd>right</kbd> move.
      </p>
    `;
  }
  const column = columns.get(at.number);
  if (!column) {
    return html`
      <p class="hint" data-told=${told}>
        Asking for relay block ${at.number} …
      </p>
    `;
  }
  const candidate = at.hash && column.candidates.find((each) => each.hash === at.hash);
  return candidate
    ? html`
      <${Candidate} key=${at.hash} candidate=${candidate} column=${column} />
    `
    : html`
      <${Relay} column=${column} />
    `;
}

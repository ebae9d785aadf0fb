// The lines that a search found, below its field.

import { html, render } from "../html.js";

const MOST_FOUND = 40;

export class Results {
  constructor(host, choose) {
    Object.assign(this, { host, choose });
    this.at = -1; // the marked line
  }

  // Shows lines; `null` hides all.
  show(lines) {
    this.at = -1;
    this.lines = lines;
    this.host.hidden = lines === null;
    this.#draw();
  }

  hide() {
    this.host.hidden = true;
  }

  // Marks a line further down or up.
  move(by) {
    const last = Math.min(this.lines?.length ?? 0, MOST_FOUND) - 1;
    this.at = Math.max(0, Math.min(last, this.at + by));
    this.#draw();
    this.#buttons()[this.at]?.scrollIntoView({ block: "nearest" });
  }

  // Opens the marked line, or the first one.
  open() {
    this.#buttons()[Math.max(this.at, 0)]?.click();
  }

  #buttons() {
    return [...this.host.querySelectorAll("button")];
  }

  #draw() {
    const { at, lines, choose } = this;
    const list = (lines || []).slice(0, MOST_FOUND).map(
      (line, place) => html`
        <button type="button" class=${place === at ? "at" : ""} onClick=${() => choose(line)}>
          <b>${line.label}</b> ${line.note}
        </button>
      `,
    );
    const count = lines && html`<p class="hint" role="status">${told(lines.length)}</p>`;
    render([count, ...list], this.host);
  }
}

function told(found) {
  if (found > MOST_FOUND) {
    return `${MOST_FOUND} of ${found.toLocaleString("en")} found; all are lit above`;
  }
  return found ? `${found} found` : "Nothing found.";
}

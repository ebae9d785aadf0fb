// Parts that pages are made of: cards, facts, tables, lists, links, folds.

import { html } from "./html.js";
import { counted } from "./words.js";

export const MOST_ROWS = 200;

// Names and what they name; a row without a value is left out.
export function Facts({ rows }) {
  return html`
    <dl class="facts">
      ${rows
        .filter(([, value]) => value !== null && value !== undefined)
        .map(
          ([name, value]) => html`
            <dt>${name}</dt>
            <dd>${value}</dd>
          `,
        )}
    </dl>
  `;
}

// A table whose columns from `figuresFrom` on are figures.
export function Table({ head, rows, figuresFrom = head.length }) {
  const side = (at) => (at >= figuresFrom ? "figure" : null);
  return html`
    <div class="scroll" tabindex="0">
      <table class="stacked">
        <thead>
          <tr>
            ${head.map(
              (name, at) => html`
                <th class=${side(at)} scope="col">${name}</th>
              `,
            )}
          </tr>
        </thead>
        <tbody>
          ${rows.map(
            (row) => html`
              <tr>
                ${row.map(
                  (cell, at) => html`<td class=${side(at)} data-label=${head[at]}>${cell}</td>`,
                )}
              </tr>
            `,
          )}
        </tbody>
      </table>
    </div>
  `;
}

export function Fold({ title, open = true, children }) {
  return html`
    <details open=${open}>
      <summary>${title}</summary>
      ${children}
    </details>
  `;
}

// Texts below each other, the first `most` of them.
export function Lines({ texts, most = MOST_ROWS, children }) {
  return html`
    <div class="scroll tall" tabindex="0">
      <ul class="lines">
        ${texts.slice(0, most).map((text) => html`<li>${text}</li>`)}
      </ul>
    </div>
    <${More} count=${texts.length} most=${most} />
    ${children}
  `;
}

// How many of a list are not shown.
export function More({ count, most = MOST_ROWS }) {
  return count > most
    ? html`<p class="hint">${(count - most).toLocaleString("en")} more are not shown.</p>`
    : null;
}

export function Section({ title, kind = "", children }) {
  return html`
    <section class=${`card ${kind}`}>
      <h3>${title}</h3>
      ${children}
    </section>
  `;
}

export function Link({ act, kind = "", title, children }) {
  return html`
    <button type="button" class=${`link ${kind}`} title=${title} onClick=${act}>${children}</button>
  `;
}

// The verdict on a candidate, in the words and colours of every page.
export function Badge({ verdict }) {
  const kind = verdict ? "bad refused" : "good accepted";
  return html`<span class=${`badge ${kind}`}>${verdict || "accepted"}</span>`;
}

export function deliveries(count) {
  return counted(count, "delivery", "deliveries");
}

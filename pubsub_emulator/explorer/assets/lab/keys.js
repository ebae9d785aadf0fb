// Keys that can be followed, alone and with what was delivered under them.

import { best, followed } from "./state.js";
import { cut, keyName, valueWords } from "./texts.js";
import { html, many } from "./words.js";

export const MOST_ROWS = 60;

export function Deliveries({ rows }) {
  if (!rows.length) {
    return null;
  }
  return html`
    <div class="card">
      <h3>Delivered</h3>
      <ul class="keys">
        ${rows.slice(0, MOST_ROWS).map(
          (each) => html`
            <li>
              <${Key} publisher=${each.publisher} name=${each.key} /> of ${each.publisher} to${" "}
              ${each.para}
              ${
                each.value === null
                  ? ", removed"
                  : html`
                    ${" "}
                    <b>${cut(valueWords(each.value), 40)}</b>
                  `
              }
              ${
                each.blocksSincePublished === null
                  ? ""
                  : `, ${many(each.blocksSincePublished, "block")} after it was written`
              }
            </li>
          `,
        )}
      </ul>
      ${
        rows.length > MOST_ROWS
          ? html`
            <p class="hint">and ${rows.length - MOST_ROWS} more</p>
          `
          : null
      }
    </div>
  `;
}

export function Key({ publisher, name }) {
  return html`
    <button
      type="button"
      class="link key-name"
      title=${`follow ${name}; now at relay block ${best.value}`}
      onClick=${() => {
        followed.value = { publisher, key: name };
      }}
    >
      ${cut(keyName(name), 48)}
    </button>
  `;
}

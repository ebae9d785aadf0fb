// Keys that can be followed, alone and with what was delivered under them.

import { html } from "../html.js";
import { Link, More, Section } from "../parts.js";
import { counted, cut } from "../words.js";
import { best, followed } from "./state.js";
import { keyName, valueWords } from "./texts.js";

export const MOST_ROWS = 60;

export function Deliveries({ rows }) {
  if (!rows.length) {
    return null;
  }
  return html`
    <${Section} title="Delivered">
      <ul class="keys">
        ${rows.slice(0, MOST_ROWS).map(
          (each) => html`
            <li>
              <${Key} publisher=${each.publisher} name=${each.key} /> of ${each.publisher} to${" "}
              ${each.para}${given(each.value)}${age(each.blocksSincePublished)}
            </li>
          `,
        )}
      </ul>
      <${More} count=${rows.length} most=${MOST_ROWS} />
    </${Section}>
  `;
}

function given(value) {
  return value === null ? ", removed" : html`${" "}<b>${cut(valueWords(value), 40)}</b>`;
}

function age(blocks) {
  return blocks === null ? "" : `, ${counted(blocks, "block")} after it was written`;
}

export function Key({ publisher, name }) {
  const follow = () => {
    followed.value = { publisher, key: name };
  };
  return html`
    <${Link}
      kind="key-name"
      title=${`follow ${name}; now at relay block ${best.value}`}
      act=${follow}
    >
      ${cut(keyName(name), 48)}
    </${Link}>
  `;
}

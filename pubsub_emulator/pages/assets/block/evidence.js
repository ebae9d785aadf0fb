// Why a candidate was refused: each verdict with its meaning, its facts, and the bytes it is about.

import { html } from "../html.js";
import { Fold, Lines } from "../parts.js";
import { counted, cut } from "../words.js";

const MOST_SHOWN = 20;
const MOST_LETTERS = 400;

// `rows` are [verdict, words, bytes]; `meanings` are the sentences for verdicts.
export function Evidence({ rows, meanings }) {
  if (!rows.length) {
    return null;
  }
  return html`
    <ol class="evidence">
      ${rows.slice(0, MOST_SHOWN).map(
        ([verdict, words, subjects = []]) => html`
          <li>
            <b>${verdict}</b> ${meanings[verdict]}
            <p>${cut(words, MOST_LETTERS)}</p>
            <${Subjects} hashes=${subjects} />
          </li>
        `,
      )}
    </ol>
  `;
}

function Subjects({ hashes }) {
  if (!hashes.length) {
    return null;
  }
  return html`
    <${Fold}
      title=${`About ${counted(hashes.length, "string")} of bytes`}
      open=${hashes.length <= 2}
    >
      <${Lines} texts=${hashes.map((each) => `0x${each}`)} />
    </${Fold}>
  `;
}

// A relay block with what it published and delivered.

import { html } from "../html.js";
import { Badge, Facts, Lines, Link, More, Section } from "../parts.js";
import { counted, cut, size } from "../words.js";
import { show } from "./choice.js";
import { Term } from "./glossary.js";
import { Deliveries, Key, MOST_ROWS } from "./keys.js";

export function Relay({ column }) {
  const failures = column.failures.map((each) => cut(each, 400));
  const idle = column.idle.map((each) => `${each.para}: ${cut(each.why, 300)}`);
  return html`
    <article
      class="relay-block"
      data-number=${column.number}
      aria-label="The chosen relay block"
    >
      <div class="card">
        <h2>Relay block ${column.number}</h2>
        <${Facts} rows=${figures(column)} />
      </div>
      ${
        failures.length
          ? html`
            <${Section} kind="refusal" title="What failed">
              <${Lines} texts=${failures} most=${MOST_ROWS} />
            </${Section}>
          `
          : null
      }
      ${
        idle.length
          ? html`<${Section} title="Could not build"><${Lines} texts=${idle} /></${Section}>`
          : null
      }
      <${Judged} column=${column} />
      <${Written} column=${column} />
      <${Deliveries} rows=${column.deliveries} />
    </article>
  `;
}

function figures(column) {
  const time = `${(column.weight[0] / 1e9).toFixed(2)} ms`;
  return [
    ["hash", column.hash],
    ["published", `${counted(column.publishedCount, "key")}, ${column.expiredCount} expired`],
    ["queued", `${counted(column.queuedMessages, "message")}, ${size(column.queuedBytes)}`],
    [html`<${Term} word="weight" />`, `${time}, ${size(column.weight[1])} of proof`],
  ];
}

function Judged({ column }) {
  return html`
    <${Section} title=${`Candidates: ${column.candidates.length}`}>
      <ul class="keys">
        ${column.candidates.map(
          (each) => html`
            <li>
              <${Link} act=${() => show(column.number, each.hash)}>
                ${each.para} · block ${each.number}
              </${Link}>${" "}
              <${Badge} verdict=${each.verdict} />
            </li>
          `,
        )}
      </ul>
      ${column.candidates.length ? null : html`<p class="hint">None was judged in this block.</p>`}
    </${Section}>
  `;
}

// What was written to the child tries, and what expired there.
function Written({ column }) {
  const count = column.publishedCount + column.expiredCount;
  if (!count) {
    return null;
  }
  const published = column.published.slice(0, MOST_ROWS);
  const expired = column.expired.slice(0, MOST_ROWS);
  const title = html`Written to <${Term} word="child trie">child tries</${Term}>`;
  return html`
    <${Section} title=${title}>
      <ul class="keys">
        ${published.map(
          ([publisher, key, bytes]) => html`
            <li>
              <${Key} publisher=${publisher} name=${key} /> of ${publisher}, ${size(bytes)}
            </li>
          `,
        )}
        ${expired.map(
          ([publisher, key]) => html`
            <li>
              <${Key} publisher=${publisher} name=${key} /> of ${publisher} expired
            </li>
          `,
        )}
      </ul>
      <${More} count=${count} most=${published.length + expired.length} />
    </${Section}>
  `;
}

// A relay block with what it published and delivered.

import { choose } from "./choice.js";
import { Deliveries, Key, MOST_ROWS } from "./keys.js";
import { cut } from "./texts.js";
import { html, many, size, Term } from "./words.js";

export function Relay({ column }) {
  return html`
    <article
      class="relay-block"
      data-number=${column.number}
      aria-label="The chosen relay block"
    >
      <div class="card">
        <h2>Relay block ${column.number}</h2>
        <dl class="facts">
          <dt>hash</dt>
          <dd>${column.hash}</dd>
          <dt>published</dt>
          <dd>
            ${many(column.publishedCount, "key")}, ${column.expiredCount} expired
          </dd>
          <dt>queued</dt>
          <dd>
            ${many(column.queuedMessages, "message")}, ${size(column.queuedBytes)}
          </dd>
          <dt>
            <${Term} word="weight" />
          </dt>
          <dd>
            ${(column.weight[0] / 1e9).toFixed(2)} ms, ${size(column.weight[1])} of proof
          </dd>
        </dl>
      </div>
      ${
        column.failures.length
          ? html`
            <div class="card refusal">
              <h3>What failed</h3>
              <ul class="lines">
                ${column.failures.slice(0, MOST_ROWS).map(
                  (each) => html`
                    <li>${cut(each, 400)}</li>
                  `,
                )}
              </ul>
            </div>
          `
          : null
      }
      ${
        column.idle.length
          ? html`
            <div class="card">
              <h3>Could not build</h3>
              <ul class="lines">
                ${column.idle.map(
                  (each) => html`
                    <li>
                      ${each.para}: ${cut(each.why, 300)}
                    </li>
                  `,
                )}
              </ul>
            </div>
          `
          : null
      }
      <div class="card">
        <h3>Candidates</h3>
        <ul class="lines">
          ${column.candidates.map(
            (each) => html`
              <li>
                <button
                  type="button"
                  class="link"
                  onClick=${() => choose(column.number, each.hash)}
                >
                  ${each.para}, block ${each.number}
                </button>${" "}
                ${each.verdict || "accepted"}
              </li>
            `,
          )}
        </ul>
        ${column.candidates.length ? null : html`<p class="hint">None was judged.</p>`}
      </div>
      ${
        column.publishedCount + column.expiredCount
          ? html`
            <div class="card">
              <h3>
                Written to <${Term} word="child trie">child tries</${Term}>
              </h3>
              <ul class="keys">
                ${column.published.slice(0, MOST_ROWS).map(
                  ([publisher, key, bytes]) => html`
                    <li>
                      <${Key} publisher=${publisher} name=${key} /> of ${publisher}, ${size(bytes)}
                    </li>
                  `,
                )}
                ${column.expired.slice(0, MOST_ROWS).map(
                  ([publisher, key]) => html`
                    <li>
                      <${Key} publisher=${publisher} name=${key} /> of ${publisher} expired
                    </li>
                  `,
                )}
              </ul>
              ${
                column.publishedCount + column.expiredCount > MOST_ROWS
                  ? html`
                    <p class="hint">and more</p>
                  `
                  : null
              }
            </div>
          `
          : null
      }
      <${Deliveries} rows=${column.deliveries} />
    </article>
  `;
}

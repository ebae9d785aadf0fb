// The chosen block: a candidate as the page of a run shows it, or a relay block with what it published and delivered.
/* global candidateView, Run */ // of the page of a run
import { html, many, size, Term, useEffect, useRef, useState } from "./words.js";
import {
  best,
  choose,
  chosen,
  columns,
  cut,
  followed,
  keyName,
  names,
  valueWords,
  version,
} from "./store.js";
import { call } from "./rpc.js";

const MOST_ROWS = 60;

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

// The verdict at once, from the column; the proof and the rest when the node has drawn it.
function Candidate({ candidate, column }) {
  const host = useRef(null);
  const [why, setWhy] = useState("Drawing the proof …");
  const [meaning, setMeaning] = useState({});
  const [evidence, setEvidence] = useState(candidate.evidence);
  useEffect(() => {
    let gone = false;
    call("pubsub_explained", candidate.hash).then(
      async (found) => {
        if (gone) {
          return;
        }
        if (!found) {
          return setWhy("The node keeps no more than these figures of it.");
        }
        for (const [, key, name] of found.index.keys) {
          if (name) {
            names.set(`0x${key}`, name);
          }
        }
        setMeaning(found.index.verdicts);
        setEvidence(found.detail.evidence || []); // with the names of keys
        const shown = await candidateView(...one(found));
        if (gone || !host.current) {
          return;
        }
        host.current.replaceChildren(shown);
        setWhy("");
      },
      (error) => setWhy(error.message),
    );
    return () => {
      gone = true;
    };
  }, [candidate.hash]);
  return html`
    <article class="candidate" data-hash=${candidate.hash} aria-label="The chosen candidate">
      <div class=${`card verdict ${candidate.verdict ? "refusal" : ""}`}>
        <h2>
          ${candidate.para} · block ${candidate.number}${" "}
          <span class=${`badge ${candidate.verdict ? "refused" : "valid"}`}>
            ${candidate.verdict || "accepted"}
          </span>
        </h2>
        <p>
          A <${Term} word="candidate" /> of <${Term} word="collator" /> ${candidate.collator ?? "?"},
          judged for${" "}
          <button type="button" class="link" onClick=${() => choose(column.number)}>
            relay block ${column.number}
          </button>
          , ${many(candidate.proofNodes, "proof node")}, ${size(candidate.proofBytes)}
          ${
            candidate.unprunedBytes === undefined
              ? ""
              : `; unpruned ${size(candidate.unprunedBytes)}`
          }
          .
        </p>
        ${
          candidate.strategy
            ? html`
              <p>
                The collator was told to cheat: <b>${candidate.strategy}</b>.${" "}
                ${
                  candidate.verdict
                    ? "The chain refused its block and goes on without it; the next collator builds in its place."
                    : ""
                }
              </p>
            `
            : null
        }
        ${
          evidence.length
            ? html`
              <ol class="evidence">
                ${evidence.slice(0, 20).map(
                  ([verdict, words]) => html`
                    <li>
                      <b>${verdict}</b> ${meaning[verdict]}
                      <p>${cut(words, 400)}</p>
                    </li>
                  `,
                )}
              </ol>
            `
            : null
        }
      </div>
      <${Deliveries} rows=${column.deliveries.filter((each) => each.block === candidate.hash)} />
      <p class="hint" role="status">
        ${why}
      </p>
      <div ref=${host} class="drawn"></div>
    </article>
  `;
}

// What the views of the page of a run need: the run with this one candidate, and its place.
function one({ index, detail, nodes }) {
  const run = new Run(index);
  run.detail = async () => ({ ...detail, deliveries: null }); // listed above, to be followed
  run.node = async (number) => ({
    hash: nodes[number][0],
    length: nodes[number][1],
    bytes: nodes[number][2],
  });
  return [run, run.candidates[run.candidates.length - 1], () => {}];
}

function Relay({ column }) {
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

function Deliveries({ rows }) {
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

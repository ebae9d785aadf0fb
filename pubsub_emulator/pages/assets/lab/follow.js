// One key on its way: sent, queued, in the child trie, proven and delivered, expired; each with its
// block and age.

import { html, useEffect, useState } from "../html.js";
import { counted, cut } from "../words.js";
import { show } from "./choice.js";
import { Term } from "./glossary.js";
import { call } from "./rpc.js";
import { best, columns, followed, version } from "./state.js";
import { keyName } from "./texts.js";

export function Follow() {
  const at = followed.value;
  const told = version.value;
  const [entry, setEntry] = useState(null);
  useEffect(() => {
    if (!at) {
      return;
    }
    let gone = false;
    call("pubsub_entry", at.publisher, at.key).then(
      (found) => gone || setEntry(found),
      () => null, // asked again with the next block
    );
    return () => {
      gone = true;
    };
  }, [at, told]);
  if (!at) {
    return html`
      <p class="hint">
        Choose a key where it is published or delivered, and follow it along the columns.
      </p>
    `;
  }
  const steps = journey(at);
  const now = best.value;
  const go = (step) => () => show(step.number, step.hash);
  return html`
    <div class="follow" data-key=${at.key}>
      <h3>
        ${cut(keyName(at.key), 48)} of ${at.publisher}${" "}
        <button
          type="button"
          class="small"
          onClick=${() => {
            followed.value = null;
          }}
        >
          stop
        </button>
      </h3>
      <${Lifetime} entry=${entry} now=${now} />
      <ol class="journey">
        ${steps.slice(-24).map(
          (step) => html`
            <li class=${step.kind}>
              <button type="button" class="link" onClick=${go(step)}>
                relay block ${step.number}
              </button>${" "}
              ${step.words} <span class="age">${counted(now - step.number, "block")} ago</span>
            </li>
          `,
        )}
      </ol>
      ${
        steps.length
          ? null
          : html`
            <p class="hint">It was not written within the blocks that are here.</p>
          `
      }
    </div>
  `;
}

function Lifetime({ entry, now }) {
  if (!entry) {
    return html`
      <p class="ttl">
        <${Term} word="TTL" />: nothing is stored under this key now
      </p>
    `;
  }
  if (!entry.ttl) {
    return html`
      <p class="ttl">
        <${Term} word="TTL" />: no expiry
      </p>
    `;
  }
  const left = Math.max(entry.whenInserted + entry.ttl - now, 0);
  return html`
    <p class="ttl">
      <${Term} word="TTL" />: <b>${left}</b> of ${counted(entry.ttl, "block")} left${" "}
      <meter
        min="0"
        max=${entry.ttl}
        value=${left}
        low=${entry.ttl / 4}
        aria-label="blocks until the entry expires"
      ></meter>
    </p>
  `;
}

let kept = {};

// The steps of a key within the columns that are here, ascending; found once for each change of
// these.
export function journey(at) {
  if (kept.at !== at || kept.version !== version.value) {
    kept = { at, version: version.value, steps: found(at) };
  }
  return kept.steps;
}

function found({ publisher, key }) {
  const steps = [];
  for (const number of [...columns.keys()].sort((a, b) => a - b)) {
    const column = columns.get(number);
    if (column.published.some(([who, name]) => who === publisher && name === key)) {
      const sent = sender(publisher, number);
      if (sent) {
        steps.push({
          kind: "sent",
          number: sent.number,
          hash: sent.hash,
          para: publisher,
          words:
            `sent with block ${sent.height} of ${publisher},` +
            ` then ${counted(number - sent.number, "block")} in the relay's queue`,
        });
      }
      steps.push({ kind: "written", number, words: "executed: in the child trie" });
    }
    if (column.expired.some(([who, name]) => who === publisher && name === key)) {
      steps.push({ kind: "expired", number, words: "expired: removed from the child trie" });
    }
    for (const each of column.deliveries) {
      if (each.key !== key || each.publisher !== publisher) {
        continue;
      }
      const age =
        each.blocksSincePublished === null
          ? ""
          : `, ${counted(each.blocksSincePublished, "block")} after it was written`;
      steps.push({
        kind: each.value === null ? "removed" : "delivered",
        number,
        hash: each.block,
        para: each.para,
        words:
          each.value === null
            ? `proven absent, ${each.para} was told`
            : `proven to and delivered to ${each.para}${age}`,
      });
    }
  }
  return steps;
}

// The publisher's block that carried the message: its newest one before the relay block that
// executed it.
function sender(publisher, executed) {
  for (let number = executed - 1; number > executed - 64; number -= 1) {
    const found = columns
      .get(number)
      ?.candidates.findLast((each) => each.para === publisher && !each.verdict);
    if (found) {
      return { number, hash: found.hash, height: found.number };
    }
  }
  return null;
}

// Back to a block, a fork from it, and two branches beside each other.

import { signal } from "../vendor/signals.js";
import { act, call } from "./rpc.js";
import { best, branches, chosen, first, say } from "./state.js";
import { attempt, busy, lastLine } from "./steps.js";
import { readBranches } from "./store.js";
import { html, many, Term, useState } from "./words.js";

const compared = signal(null);
const MOST_COMPARED = 256;

async function head() {
  const number = best.value;
  return { number, hash: await call("chain_getBlockHash", number) };
}

// A block as the node wants it named: the one before the first is genesis, whatever its number is.
async function placeOf(number) {
  return number < first.value ? await call("chain_getBlockHash", 0) : number;
}

async function back(number) {
  await act("dev_setHead", await placeOf(number));
}

function rewind(number) {
  lastLine.value = `head ${number}`;
  return attempt(`back to ${number}`, () => back(number));
}

// Keeps this branch as it is, and goes on from a block of it under another name. The node knows
// the names, so that they outlive the page and every page shows the same ones.
async function fork(name, number) {
  await attempt(`fork ${name}`, async () => {
    await act("pubsub_fork", name, await placeOf(number));
    await readBranches();
    lastLine.value = `branch ${name}`;
    say(`on branch ${name}, from relay block ${number}`);
  });
}

async function change(to) {
  await attempt(`switch to ${to.name}`, async () => {
    await act("pubsub_switch", to.name);
    await readBranches();
    lastLine.value = `switch ${to.name}`;
    compared.value = null;
  });
}

async function compare(to) {
  const here = await head();
  const [a, b] = await Promise.all(
    [here, to].map((each) => call("pubsub_columns", each.hash, MOST_COMPARED)),
  );
  const mine = new Map(a.map((column) => [column.number, column]));
  const theirs = new Map(b.map((column) => [column.number, column]));
  const heights = [...new Set([...mine.keys(), ...theirs.keys()])]
    .sort((x, y) => x - y)
    .filter((at) => mine.get(at)?.hash !== theirs.get(at)?.hash);
  compared.value = {
    name: to.name,
    rows: heights.map((at) => [at, mine.get(at), theirs.get(at)]),
  };
}

export function Branches() {
  const [name, setName] = useState("other");
  const at = chosen.value ? chosen.value.number : best.value;
  const { name: present, others } = branches.value;
  const free = name && name !== present && !others.some((each) => each.name === name);
  return html`
    <div class="branches">
      <p>
        On <${Term} word="branch" /> <b>${present}</b>, at relay block ${best.value}.
      </p>
      <p>
        <button
          type="button"
          disabled=${busy.value || at >= best.value}
          onClick=${() => rewind(at)}
        >
          Rewind to ${at}
        </button>
      </p>
      <label class="field-row">
        <span>Name of a fork</span>
        <input
          value=${name}
          maxlength="40"
          onInput=${(event) => setName(event.target.value.trim())}
        />
      </label>
      <p>
        <button type="button" disabled=${busy.value || !free} onClick=${() => fork(name, at)}>
          Fork from ${at}
        </button>
      </p>
      <ul class="others">
        ${others.map(
          (each) => html`
            <li>
              <b>${each.name}</b> at ${each.number}${" "}
              <button
                type="button"
                class="small"
                disabled=${busy.value}
                onClick=${() => change(each)}
              >
                switch to ${each.name}
              </button>${" "}
              <button type="button" class="small" onClick=${() => compare(each)}>
                compare with ${each.name}
              </button>
            </li>
          `,
        )}
      </ul>
      ${compared.value ? html`<${Compared} ...${compared.value} />` : null}
    </div>
  `;
}

function Compared({ name, rows }) {
  return html`
    <div class="scroll" tabindex="0" role="region" aria-label="Compared branches">
      <table class="compared">
        <caption>
          ${
            rows.length
              ? `${many(rows.length, "relay block")} differ, from ${rows[0][0]} on`
              : "Both are the same, block by block."
          }
        </caption>
        <thead>
          <tr>
            <th scope="col">block</th>
            <th scope="col">${branches.value.name}</th>
            <th scope="col">${name}</th>
          </tr>
        </thead>
        <tbody>
          ${rows.map(
            ([at, a, b]) => html`
              <tr>
                <td>${at}</td>
                <td data-label=${branches.value.name}>${told(a)}</td>
                <td data-label=${name}>${told(b)}</td>
              </tr>
            `,
          )}
        </tbody>
      </table>
    </div>
  `;
}

// A relay block in one line; a dash where a branch has none at that height.
function told(column) {
  if (!column) {
    return "–";
  }
  const delivered = many(column.deliveredCount, "delivery", "deliveries");
  const refused = column.candidates
    .filter((each) => each.verdict)
    .map((each) => `, refused ${each.para}: ${each.verdict}`);
  return `${column.hash.slice(0, 10)}… ${delivered}${refused.join("")}`;
}

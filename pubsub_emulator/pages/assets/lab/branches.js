// Back to a block, a fork from it, and two branches beside each other.

import { html, useState } from "../html.js";
import { signal } from "../vendor/signals.js";
import { Compared, differences } from "./compared.js";
import { Term } from "./glossary.js";
import { act, call } from "./rpc.js";
import { best, branches, chosen, first, say } from "./state.js";
import { attempt, busy } from "./steps.js";
import { readBranches } from "./store.js";

const compared = signal(null);
const MOST_COMPARED = 256;

// A block as the node wants it named: the one before the first is genesis, whatever its number is.
async function placeOf(number) {
  return number < first.value ? await call("chain_getBlockHash", 0) : number;
}

function rewind(number) {
  return attempt(`back to ${number}`, async () =>
    act(`head ${number}`, "dev_setHead", await placeOf(number)),
  );
}

// Keeps this branch as it is, and goes on from a block of it under another name. The node knows
// the names, so that they outlive the page and every page shows the same ones.
async function fork(name, number) {
  await attempt(`fork ${name}`, async () => {
    const lines = number === best.value ? [`branch ${name}`] : [`branch ${name}`, `head ${number}`];
    await act(lines.join("\n"), "pubsub_fork", name, await placeOf(number));
    await readBranches();
    say(`on branch ${name}, from relay block ${number}`);
  });
}

async function change(to) {
  await attempt(`switch to ${to.name}`, async () => {
    await act(`switch ${to.name}`, "pubsub_switch", to.name);
    await readBranches();
    compared.value = null;
  });
}

async function compare(to) {
  const here = await call("chain_getBlockHash", best.value);
  const [mine, theirs] = await Promise.all(
    [here, to.hash].map((hash) => call("pubsub_columns", hash, MOST_COMPARED)),
  );
  compared.value = differences(mine, theirs, branches.value.name, to.name);
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

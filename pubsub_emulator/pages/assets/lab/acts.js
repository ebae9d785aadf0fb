// Acts on the network: a form each, tried on a copy before it is sent, with the call and the line
// of `pubsub step`.

import { html, useEffect, useState } from "../html.js";
import { signal } from "../vendor/signals.js";
import { ACTS } from "./actions.js";
import { choices, entry, strategies } from "./fields.js";
import { Copied, Term } from "./glossary.js";
import { reveal } from "./reveal.js";
import { act, asCall, call } from "./rpc.js";
import { names, say, tab, version } from "./state.js";
import { attempt, busy, running } from "./steps.js";

const opened = signal({ name: "publish", form: {}, turn: 0 });

// Does an action and tells the line of `pubsub step` that does the same; `null` where it fails.
async function ask(title, action) {
  const done = await attempt(title, () => act((done) => done.line, "pubsub_act", action));
  if (!done) {
    return null;
  }
  const named = action.key === undefined ? [] : [[done.action.key, action.key]];
  for (const [at, each] of (action.keys || []).entries()) {
    named.push([done.action.keys[at], each]);
  }
  for (const [key, name] of named) {
    if (!name.startsWith("0x")) {
      names.set(key, name);
    }
  }
  say(`requested: ${title}; it takes effect in the next blocks`);
  return done;
}

// Does an act with its form open beside it, filled in.
export function fill(name, form) {
  const [title, fields, make] = ACTS[name];
  tab.value = "acts";
  open(name, form);
  return ask(
    title,
    make({
      ...Object.fromEntries(fields.map((field) => [field.name, field.start ?? ""])),
      ...form,
    }),
  );
}

// Opens an act's form, filled in and not yet sent.
export function propose(name, form) {
  tab.value = "acts";
  open(name, form);
  reveal("panel");
}

function open(name, form = {}) {
  opened.value = { name, form, turn: opened.value.turn + 1 };
}

export function Acts() {
  const { name, form, turn } = opened.value;
  return html`
    <div class="acts">
      <label class="field-row">
        <span>Act</span>
        <select id="act" value=${name} onChange=${(event) => open(event.target.value)}>
          ${Object.entries(ACTS).map(
            ([each, [title]]) => html`
              <option value=${each}>${title}</option>
            `,
          )}
        </select>
      </label>
      <${Form} key=${turn} name=${name} start=${form} />
    </div>
  `;
}

function Form({ name, start }) {
  const [title, fields, make] = ACTS[name];
  const [given, setGiven] = useState(start);
  const [tried, setTried] = useState(null);
  const told = version.value;
  const form = Object.fromEntries(
    fields.map((field) => {
      const options = choices(field);
      const usual = options ? (options[0] ?? "") : field.start;
      const value = given[field.name] ?? usual;
      return [field.name, options && typeof options[0] === "number" ? Number(value) : value];
    }),
  );
  const action = make(form);
  const text = JSON.stringify(action);
  useEffect(() => {
    if (!strategies.value.length) {
      call("pubsub_strategies").then(
        (found) => {
          strategies.value = found;
        },
        () => null, // a node that is away has no strategies yet
      );
    }
  }, []);
  useEffect(() => {
    let gone = false;
    setTried(null);
    if (running.value) {
      return undefined; // a network that runs has no time for copies of itself
    }
    const soon = setTimeout(() => {
      call("pubsub_tryAct", action).then(
        (found) => gone || setTried({ ...found, text }),
        (error) => gone || setTried({ refused: error.message, verdicts: [], text }),
      );
    }, 200);
    return () => {
      gone = true;
      clearTimeout(soon);
    };
  }, [text, running.value ? 0 : told, running.value]);
  const ready = tried && tried.text === text;
  const send = async (event) => {
    event.preventDefault();
    if (!ready || tried.refused) {
      return;
    }
    await ask(title, action);
  };
  const put = (field) => (value) => setGiven({ ...given, [field.name]: value });
  return html`
    <form onSubmit=${send} aria-label=${title}>
      ${fields.map(
        (field) => html`
          <label class="field-row">
            <span>${field.label}</span>
            ${entry(field, form[field.name], put(field))}
          </label>
        `,
      )}
      ${name === "cheat" ? html`<${Gain} strategy=${form.strategy} />` : null}
      <p class=${`tried ${tried?.refused ? "no" : "yes"}`} role="status">
        ${running.value ? "Tried when the network is paused." : trial(ready, tried)}
      </p>
      <button
        type="submit"
        class="primary"
        disabled=${!ready || Boolean(tried.refused) || busy.value}
      >
        ${title}
      </button>
      <${Copied} label="JSON-RPC" text=${asCall("pubsub_act", [action])} />
      ${ready && tried.line ? html`<${Copied} label="pubsub step" text=${tried.line} />` : null}
    </form>
  `;
}

// What a cheat is for, and what meets it.
function Gain({ strategy }) {
  const cheat = strategies.value.find((each) => each.name === strategy);
  if (!cheat) {
    return null;
  }
  return html`
    <p class="hint">
      It seeks to: ${cheat.gain}.${" "}
      ${
        cheat.meets.length
          ? html`
            It must meet <b>${cheat.meets.join(" or ")}</b>.
          `
          : "Every check passes: the block is valid."
      }
    </p>
  `;
}

// The words on how the act went on a copy of the network.
function trial(ready, tried) {
  if (!ready) {
    return html`<${Term} word="dry run">Trying</${Term}> …`;
  }
  if (tried.refused) {
    return `It would fail: ${tried.refused}`;
  }
  return tried.verdicts.length
    ? `This would be sent. A block would then be refused: ${tried.verdicts.join(", ")}.`
    : "This would be sent.";
}

// Acts on the network: a form each, tried on a copy before it is sent, with the call and the line of `pubsub step`.
import { signal } from "../vendor/signals.js";
import { Copied, html, Term, useEffect, useState } from "./words.js";
import { chains, names, say, setting, tab, version } from "./store.js";
import { act, asCall, call } from "./rpc.js";
import { attempt, busy, lastLine, running } from "./steps.js";

export const strategies = signal([]);
const opened = signal({ name: "publish", form: {}, turn: 0 });

const number = (text) => (/^\d{1,15}$/.test(text.trim()) ? Number(text) : text);
const listed = (text) => text.split(/[\s,]+/).filter(Boolean);

const PUBLISHER = { name: "publisher", label: "Publisher", kind: "publisher" };
const PARA = { name: "para", label: "Chain", kind: "chain" };
const SUBSCRIBER = { name: "para", label: "Subscriber", kind: "subscriber" };
const KEYS = { name: "keys", label: "Keys", kind: "text", start: "price", hint: "names or 0x…, with commas" };

const ACTS = {
  publish: ["Publish a value", [{ ...PUBLISHER, name: "para" }, { name: "key", label: "Key", kind: "text", start: "price", hint: "a name, or 0x and 64 digits" }, { name: "value", label: "Value", kind: "text", start: "7.42" }, { name: "ttl", label: "Lifetime in blocks, 0 forever", kind: "number", start: "0" }],
    (form) => ({ kind: "publish", para: form.para, key: form.key, value: form.value, ttl: number(form.ttl) })],
  delete: ["Delete keys", [{ ...PUBLISHER, name: "para" }, KEYS], (form) => ({ kind: "delete", para: form.para, keys: listed(form.keys) })],
  subscribe: ["Subscribe to keys", [SUBSCRIBER, PUBLISHER, KEYS], (form) => ({ kind: "add_keys", para: form.para, publisher: form.publisher, keys: listed(form.keys) })],
  unsubscribe: ["Unsubscribe from keys", [SUBSCRIBER, PUBLISHER, { ...KEYS, start: "", hint: "none: all of them" }], (form) => ({ kind: "drop_keys", para: form.para, publisher: form.publisher, keys: listed(form.keys) })],
  request: ["Request relay keys", [SUBSCRIBER, { name: "keys", label: "Relay keys", kind: "text", start: "Mmr.RootHash", hint: "Pallet.Item, Paras.Heads(2000), 0x… or child:TRIE/KEY, with spaces; none: no keys" }],
    (form) => ({ kind: "request_keys", para: form.para, keys: form.keys.split(/\s+/).filter(Boolean) })],
  register: ["Register a publisher", [{ name: "para", label: "Parachain", kind: "number", start: "2001" }, { name: "deposit", label: "Deposit in plancks, empty: the usual one", kind: "number", start: "" }],
    (form) => ({ kind: "register", para: number(form.para), ...(form.deposit === "" ? {} : { deposit: number(form.deposit) }) })],
  deregister: ["Remove a publisher", [{ name: "para", label: "Parachain", kind: "number", start: "2001" }], (form) => ({ kind: "deregister", para: number(form.para) })],
  limit: ["Change a limit", [SUBSCRIBER, { name: "name", label: "Limit", kind: "choice", choices: ["max_pov_size", "max_cache_bytes", "max_trie_depth"] }, { name: "value", label: "Value", kind: "number", start: "8388608" }],
    (form) => ({ kind: "limit", para: form.para, name: form.name, value: number(form.value) })],
  cheat: ["Give a collator a cheat", [SUBSCRIBER, { name: "strategy", label: "Cheat", kind: "strategy" }, { name: "collator", label: "Collator, empty: whose turn is next", kind: "number", start: "" }],
    (form) => ({ kind: "cheat", para: form.para, strategies: [form.strategy], ...(form.collator === "" ? {} : { collator: number(form.collator) }) })],
  honest: ["Make collators honest", [PARA], (form) => ({ kind: "honest", para: form.para })],
  offline: ["Take a chain offline", [PARA], (form) => ({ kind: "offline", para: form.para })],
  online: ["Bring a chain back", [PARA], (form) => ({ kind: "offline", para: form.para, offline: false })],
};

// Does an action and tells the line of `pubsub step` that does the same; `null` where it fails.
async function ask(title, action) {
  const done = await attempt(title, () => act("pubsub_act", action));
  if (!done) return null;
  const named = action.key === undefined ? [] : [[done.action.key, action.key]];
  for (const [at, each] of (action.keys || []).entries()) named.push([done.action.keys[at], each]);
  for (const [key, name] of named) if (!name.startsWith("0x")) names.set(key, name);
  lastLine.value = done.line;
  say(`asked for: ${title}; it happens with the next blocks`);
  return done;
}

// Does an act with its form open beside it, filled in.
export function fill(name, form) {
  const [title, fields, make] = ACTS[name];
  tab.value = "acts";
  open(name, form);
  return ask(title, make({ ...Object.fromEntries(fields.map((field) => [field.name, field.start ?? ""])), ...form }));
}

function open(name, form = {}) {
  opened.value = { name, form, turn: opened.value.turn + 1 };
}

export function Acts() {
  const { name, form, turn } = opened.value;
  return html`<div class="acts"><label class="field-row"><span>Act</span><select id="act" value=${name} onChange=${(event) => open(event.target.value)}>
    ${Object.entries(ACTS).map(([each, [title]]) => html`<option value=${each}>${title}</option>`)}</select></label>
    <${Form} key=${turn} name=${name} start=${form} /></div>`;
}

function choices(field) {
  const known = setting.value;
  const all = chains.value.map((chain) => chain.para);
  if (field.kind === "publisher") return known ? [...new Set([...known.publishers.map((each) => each.para), ...all])] : [];
  if (field.kind === "subscriber") return known ? known.parachains.filter((each) => !each.onDemand).map((each) => each.para) : [];
  if (field.kind === "chain") return all;
  if (field.kind === "strategy") return strategies.value.map((each) => each.name);
  return field.choices;
}

function Form({ name, start }) {
  const [title, fields, make] = ACTS[name];
  const [given, setGiven] = useState(start);
  const [tried, setTried] = useState(null);
  const told = version.value;
  const form = Object.fromEntries(fields.map((field) => {
    const options = choices(field);
    const usual = options ? options[0] ?? "" : field.start;
    const value = given[field.name] ?? usual;
    return [field.name, options && typeof options[0] === "number" ? Number(value) : value];
  }));
  const action = make(form);
  const text = JSON.stringify(action);
  useEffect(() => {
    if (!strategies.value.length) call("pubsub_strategies").then((found) => { strategies.value = found; }, () => {});
  }, []);
  useEffect(() => {
    let gone = false;
    setTried(null);
    if (running.value) return undefined; // a network that runs has no time for copies of itself
    const soon = setTimeout(() => {
      call("pubsub_tryAct", action).then((found) => gone || setTried({ ...found, text }), (error) => gone || setTried({ refused: error.message, verdicts: [], text }));
    }, 200);
    return () => { gone = true; clearTimeout(soon); };
  }, [text, running.value ? 0 : told, running.value]);
  const ready = tried && tried.text === text;
  const send = async (event) => {
    event.preventDefault();
    if (!ready || tried.refused) return;
    await ask(title, action);
  };
  const cheat = strategies.value.find((each) => each.name === form.strategy);
  return html`<form onSubmit=${send} aria-label=${title}>
    ${fields.map((field) => html`<label class="field-row"><span>${field.label}</span>${entry(field, form[field.name], (value) => setGiven({ ...given, [field.name]: value }))}</label>`)}
    ${cheat && name === "cheat" ? html`<p class="hint">It seeks to: ${cheat.gain}. ${cheat.meets.length ? html`It must meet <b>${cheat.meets.join(" or ")}</b>.` : "No check meets it: the block is valid."}</p>` : null}
    <p class=${`tried ${tried?.refused ? "no" : "yes"}`} role="status">${running.value ? "Tried when the network is paused." : !ready ? html`<${Term} word="dry run">Trying</${Term}> …` : tried.refused ? `It would fail: ${tried.refused}` : tried.verdicts.length ? `It would work; refused then: ${tried.verdicts.join(", ")}` : "It would work."}</p>
    <button type="submit" class="primary" disabled=${!ready || Boolean(tried.refused) || busy.value}>${title}</button>
    <${Copied} label="JSON-RPC" text=${asCall("pubsub_act", [action])} />
    ${ready && tried.line ? html`<${Copied} label="pubsub step" text=${tried.line} />` : null}
  </form>`;
}

function entry(field, value, put) {
  const options = choices(field);
  const told = (event) => put(event.target.value);
  if (options) return html`<select name=${field.name} value=${String(value)} onChange=${told}>${options.map((each) => html`<option value=${String(each)}>${each}</option>`)}</select>`;
  return html`<input name=${field.name} value=${value} inputmode=${field.kind === "number" ? "numeric" : "text"} autocomplete="off" spellcheck="false" placeholder=${field.hint || ""} onInput=${told} />`;
}

// What the page knows of the network: columns by relay block, asked for when they are looked at.
import { batch, signal } from "../vendor/signals.js";
import { call, connect, subscribe } from "./rpc.js";

export const best = signal(0);
export const first = signal(1);
export const version = signal(0); // grows with every change of `columns`
export const chains = signal([]);
export const setting = signal(null);
export const dev = signal(false);
export const undos = signal([]); // { id, what, at }, the oldest first
export const branches = signal({ name: "main", others: [] }); // of the others { name, id, number, hash }
export const chosen = signal(null); // { number, hash } of a candidate, or { number } of a relay block; `newest` if it followed
export const followed = signal(null); // { publisher, key }
export const said = signal("");
export const tab = signal("acts");
export const columns = new Map();
export const names = new Map();

const MOST_AT_ONCE = 128;
const MOST_KEPT = 4096;
const asked = new Set();
const hearers = new Set();

// Calls `hear` with every new column, until what it returns is called.
export function onColumn(hear) {
  hearers.add(hear);
  return () => hearers.delete(hear);
}

export function start() {
  connect(async () => {
    const [found, known, methods] = await Promise.all([call("pubsub_scenario"), call("pubsub_keyNames"), call("rpc_methods")]);
    for (const [, key, name] of known) names.set(key, name);
    await subscribe("pubsub_subscribeColumns", advanced);
    const at = Number((await call("chain_getHeader")).number); // what is announced after this answer is newer
    batch(() => {
      setting.value = found;
      dev.value = methods.methods.includes("pubsub_act");
      first.value = found.first + 1;
      best.value = at;
      version.value += 1;
    });
    const held = columns.get(at);
    if (!held || held.hash !== (await call("chain_getBlockHash", at))) columns.clear();
    asked.clear();
    await need(Math.max(first.value, best.value - 96), best.value);
    if (!chosen.value) chooseFirst();
    else if (!pinned) follow();
    refresh();
  });
}

// Bytes as a person writes them: printable text in quotes, else digits.
export function valueWords(hex) {
  const text = hex.slice(2).replace(/../g, (pair) => String.fromCharCode(parseInt(pair, 16)));
  return /^[ -~]+$/.test(text.replace(/…$/, "")) ? `"${text}"` : hex;
}

function advanced({ rewound, number, column }) {
  if (rewound) {
    const held = columns.get(number);
    if (!held || !column || held.hash !== column.hash) columns.clear();
    for (const at of [...columns.keys()]) if (at > number) columns.delete(at);
    asked.clear();
    pinned &&= chosen.value.number < number;
  }
  if (column) put(column);
  if (number > best.value + 1) need(best.value + 1, number);
  best.value = number;
  if (!pinned) follow();
  version.value += 1;
  if (column && !rewound) for (const hear of [...hearers]) hear(column);
  refresh();
}

function put(column) {
  for (const [, key, , name] of column.published) if (name) names.set(key, name);
  columns.set(column.number, column);
  if (columns.size <= MOST_KEPT) return;
  for (const at of columns.keys()) {
    if (columns.size <= MOST_KEPT / 2) break;
    if (Math.abs(at - column.number) > MOST_KEPT / 4) {
      columns.delete(at);
      asked.delete(at);
    }
  }
}

// What the node can undo, whichever page did it.
export async function readUndos() {
  undos.value = dev.value ? await call("pubsub_undos") : [];
}

// The branches that the node keeps, whichever page made them.
export async function readBranches() {
  if (dev.value) branches.value = await call("pubsub_branches");
}

let refreshing = null;
function refresh() {
  if (refreshing) return;
  refreshing = setTimeout(async () => {
    refreshing = null;
    try {
      const found = await call("pubsub_parachains");
      chains.value = found.sort((a, b) => publishesOnly(a.para) - publishesOnly(b.para) || a.para - b.para); // subscribers first
      await readUndos();
      await readBranches();
    } catch { /* asked again when the node is back */ }
  }, 60);
}

// Asks for the columns of a range that are not here.
export async function need(from, to) {
  const wanted = [];
  for (let at = Math.max(from, first.value); at <= Math.min(to, best.value); at++) if (!columns.has(at) && !asked.has(at)) wanted.push(at);
  while (wanted.length) {
    const low = wanted[0];
    const part = wanted.filter((at) => at < low + MOST_AT_ONCE);
    wanted.splice(0, part.length);
    const high = part[part.length - 1];
    for (const at of part) asked.add(at);
    try {
      for (const column of await call("pubsub_columns", high, high - low + 1)) put(column);
    } catch {
      for (const at of part) asked.delete(at);
      return;
    }
    version.value += 1;
  }
}

let pinned = false; // whether the user has chosen another block than the newest
let row; // the parachain of the chosen candidate

function chooseFirst() {
  const newest = [...columns.values()].sort((a, b) => b.number - a.number);
  for (const column of newest) {
    const found = column.candidates.find((each) => each.verdict) || column.candidates.find((each) => each.delivered);
    if (!found) continue;
    choose(column.number, found.hash);
    pinned = false;
    return;
  }
  follow();
}

export function choose(number, hash) {
  pinned = number !== best.value;
  row = hash && columns.get(number)?.candidates.find((each) => each.hash === hash)?.para;
  chosen.value = { number, hash };
}

function follow() {
  const number = best.value;
  const hash = columns.get(number)?.candidates.findLast((each) => each.para === row)?.hash;
  chosen.value = number < first.value ? null : { number, hash, newest: true };
}

// Whether a chain reads nothing and builds only when it has something to send.
export function publishesOnly(para) {
  return Boolean(setting.value?.parachains.find((each) => each.para === para)?.onDemand);
}

export function keyName(key) {
  return names.get(key) || `${key.slice(0, 10)}…`;
}

export function cut(text, most = 120) {
  const plain = String(text);
  return plain.length > most ? `${plain.slice(0, most)}…` : plain;
}

// Says it to everybody, screen readers too.
export function say(text) {
  said.value = text;
}

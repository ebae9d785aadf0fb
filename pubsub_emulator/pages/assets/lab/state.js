// What the page knows of the network, and what is chosen and said on it.

import { signal } from "../vendor/signals.js";

export const best = signal(0);
export const first = signal(1);
export const version = signal(0); // grows with every change of `columns`
export const chains = signal([]);
export const setting = signal(null);
export const dev = signal(false);
export const branches = signal({ name: "main", others: [] }); // others: { name, id, number, hash }
export const undos = signal([]); // { id, what, at }, the oldest first
// { number, hash } of a candidate, or { number } of a relay block; `newest` if it followed
export const chosen = signal(null);
export const followed = signal(null); // { publisher, key }
export const said = signal("");
export const tab = signal("acts");
export const columns = new Map();
export const names = new Map();

// Whether a chain reads nothing and builds only when it has something to send.
export function publishesOnly(para) {
  return Boolean(setting.value?.parachains.find((each) => each.para === para)?.onDemand);
}

// Says it to everybody, screen readers too.
export function say(text) {
  said.value = text;
}

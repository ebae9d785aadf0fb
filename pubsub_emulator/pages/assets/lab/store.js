// Columns by relay block, asked for when they are looked at, and kept up to date.

import { batch } from "../vendor/signals.js";
import { chooseFirst, follow, rewind } from "./choice.js";
import { call, connect, subscribe } from "./rpc.js";
import {
  best,
  branches,
  chains,
  chosen,
  columns,
  dev,
  first,
  names,
  publishesOnly,
  setting,
  undos,
  version,
} from "./state.js";

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
    const [found, known, methods] = await Promise.all([
      call("pubsub_scenario"),
      call("pubsub_keyNames"),
      call("rpc_methods"),
    ]);
    for (const [, key, name] of known) {
      names.set(key, name);
    }
    await subscribe("pubsub_subscribeColumns", advanced);
    // what is announced after this answer is newer
    const at = Number((await call("chain_getHeader")).number);
    batch(() => {
      setting.value = found;
      dev.value = methods.methods.includes("pubsub_act");
      first.value = found.first + 1;
      best.value = at;
      version.value += 1;
    });
    const held = columns.get(at);
    if (!held || held.hash !== (await call("chain_getBlockHash", at))) {
      columns.clear();
    }
    asked.clear();
    await need(Math.max(first.value, best.value - 96), best.value);
    if (chosen.value) {
      follow();
    } else {
      chooseFirst();
    }
    refresh();
  });
}

function advanced({ rewound, number, column }) {
  if (rewound) {
    const held = columns.get(number);
    if (!held || !column || held.hash !== column.hash) {
      columns.clear();
    }
    for (const at of [...columns.keys()]) {
      if (at > number) {
        columns.delete(at);
      }
    }
    asked.clear();
    rewind(number);
  }
  if (column) {
    put(column);
  }
  if (number > best.value + 1) {
    need(best.value + 1, number);
  }
  best.value = number;
  follow();
  version.value += 1;
  if (column && !rewound) {
    for (const hear of [...hearers]) {
      hear(column);
    }
  }
  refresh();
}

function put(column) {
  for (const [, key, , name] of column.published) {
    if (name) {
      names.set(key, name);
    }
  }
  columns.set(column.number, column);
  if (columns.size <= MOST_KEPT) {
    return;
  }
  for (const at of columns.keys()) {
    if (columns.size <= MOST_KEPT / 2) {
      break;
    }
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
  if (dev.value) {
    branches.value = await call("pubsub_branches");
  }
}

let refreshing = null;
function refresh() {
  if (refreshing) {
    return;
  }
  refreshing = setTimeout(async () => {
    refreshing = null;
    try {
      const found = await call("pubsub_parachains");
      chains.value = found.sort(
        (a, b) => publishesOnly(a.para) - publishesOnly(b.para) || a.para - b.para,
      ); // subscribers first
      await readUndos();
      await readBranches();
    } catch {
      /* asked again when the node is back */
    }
  }, 60);
}

// Asks for the columns of a range that are not here.
export async function need(from, to) {
  const wanted = [];
  for (let at = Math.max(from, first.value); at <= Math.min(to, best.value); at++) {
    if (!columns.has(at) && !asked.has(at)) {
      wanted.push(at);
    }
  }
  while (wanted.length) {
    const low = wanted[0];
    const part = wanted.filter((at) => at < low + MOST_AT_ONCE);
    wanted.splice(0, part.length);
    const high = part.at(-1);
    for (const at of part) {
      asked.add(at);
    }
    try {
      for (const column of await call("pubsub_columns", high, high - low + 1)) {
        put(column);
      }
    } catch {
      for (const at of part) {
        asked.delete(at);
      }
      return;
    }
    version.value += 1;
  }
}

// Blocks on request: one, ten, until something happens, at a pace; and back again.

import { signal } from "../vendor/signals.js";
import { choose } from "./choice.js";
import { act, call, told } from "./rpc.js";
import { best, say, undos } from "./state.js";
import { onColumn, readUndos } from "./store.js";

export const running = signal(false);
export const busy = signal(false);
export const pace = signal(500);
let queue = Promise.resolve();
const MOST_WAITED = 1000;

// What can be waited for: its words, the candidate (or `true` for the relay block) where a column
// has it, the line.
export const HAPPENINGS = {
  delivery: [
    "a delivery",
    (column) => column.candidates.find((each) => each.delivered),
    "until delivery",
  ],
  refusal: [
    "a refusal",
    (column) => column.candidates.find((each) => each.verdict),
    "until verdict",
  ],
  expiry: ["an expiry", (column) => column.expiredCount > 0, "until event KeyExpired"],
  budget: [
    "a full budget",
    (column) => column.candidates.find((each) => each.stopped),
    "until stop",
  ],
};

// Has the node remember this moment, so that any page can undo what follows.
export async function remember(what) {
  await call("dev_snapshot", what);
  await readUndos();
}

// Does something that changes the network, one after the other, and says why where it cannot.
export function attempt(what, work) {
  busy.value = true;
  const done = queue.then(() => tried(what, work));
  queue = done;
  return done;
}

async function tried(what, work) {
  busy.value = true;
  try {
    await remember(what);
    return await work();
  } catch (error) {
    say(`not done: ${error.message}`);
    return null;
  } finally {
    busy.value = false;
  }
}

export async function undo() {
  running.value = false;
  try {
    await readUndos();
    const kept = undos.value.at(-1);
    if (!kept) {
      return;
    }
    if (!(await act("", "dev_restore", kept.id))) {
      throw new Error("the node has dropped that moment");
    }
    await call("dev_forget", kept.id);
    await readUndos();
    say(`undone: “${kept.what}”; at relay block ${kept.at}`);
  } catch (error) {
    say(`not undone: ${error.message}`);
  }
}

export function step(count) {
  return attempt(`step ${count}`, async () => {
    const made = await act(`step ${count}`, "dev_newBlock", { count });
    say(count === 1 ? "built a relay block" : `built ${count} relay blocks`);
    return made;
  });
}

// Builds blocks until something happens, and chooses the block where it did. Returns whether it
// happened.
export function until([words, happened, line], most = MOST_WAITED) {
  return attempt(`until ${words}`, async () => {
    let found = false;
    const stop = onColumn((column) => {
      const here = happened(column);
      if (here && !found) {
        choose(column.number, here.hash);
      }
      found ||= Boolean(here);
    });
    running.value = true;
    let done = 0;
    try {
      for (; done < most && !found && running.value; done += 1) {
        const before = best.value;
        await call("dev_newBlock", { count: 1 });
        while (best.value === before) {
          await new Promise((soon) => setTimeout(soon, 5));
        }
      }
    } finally {
      running.value = false;
      stop();
    }
    told(line || `step ${done}`, "dev_newBlock", { count: done });
    say(
      found
        ? `${words} in relay block ${best.value}`
        : `${words}: not so far, at relay block ${best.value}`,
    );
    return found;
  });
}

export async function run() {
  if (running.value) {
    running.value = false;
    return;
  }
  running.value = true;
  await remember("run").catch(() => null); // without it, Undo goes back further
  try {
    while (running.value) {
      await act("step 1", "dev_newBlock", { count: 1 });
      await new Promise((soon) => setTimeout(soon, pace.value));
    }
  } catch (error) {
    running.value = false;
    say(`paused: ${error.message}`);
  }
}

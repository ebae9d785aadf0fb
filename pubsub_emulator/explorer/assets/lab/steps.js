// Blocks on request: one, ten, until something happens, at a pace; and back again.
import { signal } from "../vendor/signals.js";
import { html, useEffect } from "./words.js";
import { best, choose, dev, onColumn, readUndos, say, undos } from "./store.js";
import { act, call } from "./rpc.js";

export const running = signal(false);
export const busy = signal(false);
export const lastLine = signal("");
const pace = signal(500);
const wanted = signal("delivery");
let queue = Promise.resolve();
const MOST_WAITED = 1000;

// What can be waited for: its words, the candidate (or `true` for the relay block) where a column has it, the line.
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
    const kept = undos.value[undos.value.length - 1];
    if (!kept) {
      return;
    }
    if (!(await act("dev_restore", kept.id))) {
      throw new Error("the node has dropped that moment");
    }
    await call("dev_forget", kept.id);
    await readUndos();
    say(`undone: ${kept.what}; at relay block ${kept.at}`);
  } catch (error) {
    say(`not undone: ${error.message}`);
  }
}

export function step(count) {
  lastLine.value = `step ${count}`;
  return attempt(`step ${count}`, async () => {
    const made = await act("dev_newBlock", { count });
    say(count === 1 ? "built a relay block" : `built ${count} relay blocks`);
    return made;
  });
}

// Builds blocks until something happens, and chooses the block where it did. Returns whether it happened.
export async function until([words, happened, line], most = MOST_WAITED) {
  lastLine.value = line;
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
        await act("dev_newBlock", { count: 1 });
        while (best.value === before) {
          await new Promise((soon) => setTimeout(soon, 5));
        }
      }
    } finally {
      running.value = false;
      stop();
    }
    if (!line) {
      lastLine.value = `step ${done}`;
    }
    say(
      found
        ? `${words} in relay block ${best.value}`
        : `${words}: not so far, at relay block ${best.value}`,
    );
    return found;
  });
}

async function run() {
  if (running.value) {
    running.value = false;
    return;
  }
  running.value = true;
  await remember("run").catch(() => {});
  lastLine.value = "step 1";
  try {
    while (running.value) {
      await act("dev_newBlock", { count: 1 });
      await new Promise((soon) => setTimeout(soon, pace.value));
    }
  } catch (error) {
    running.value = false;
    say(`paused: ${error.message}`);
  }
}

export function Steps() {
  const off = busy.value || running.value;
  useEffect(() => {
    const key = (event) => {
      if (
        !dev.value ||
        event.altKey ||
        event.ctrlKey ||
        event.metaKey ||
        /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)
      ) {
        return;
      }
      const todo = { n: () => step(1), t: () => step(10), r: run, u: undo }[event.key];
      if (todo && (event.key === "r" || !busy.value)) {
        todo();
      }
    };
    document.addEventListener("keydown", key);
    return () => document.removeEventListener("keydown", key);
  }, []);
  if (!dev.value) {
    return html`
      <p class="hint">
        This node takes no acts; start it with --dev, or <code>pubsub lab</code>.
      </p>
    `;
  }
  return html`
    <div class="steps-bar" role="toolbar" aria-label="Build blocks">
      <button
        type="button"
        class="primary"
        disabled=${off}
        onClick=${() => step(1)}
        aria-keyshortcuts="n"
      >
        Step
      </button>
      <button type="button" disabled=${off} onClick=${() => step(10)} aria-keyshortcuts="t">
        Step 10
      </button>
      <span class="joined">
        <button type="button" disabled=${off} onClick=${() => until(HAPPENINGS[wanted.value])}>
          Until
        </button>
        <select
          aria-label="Until what happens"
          value=${wanted.value}
          onChange=${(event) => {
            wanted.value = event.target.value;
          }}
        >
          ${Object.entries(HAPPENINGS).map(
            ([name, [words]]) => html`
              <option value=${name}>${words}</option>
            `,
          )}
        </select>
      </span>
      <span class="joined">
        <button
          type="button"
          aria-pressed=${running.value}
          disabled=${busy.value && !running.value}
          onClick=${run}
          aria-keyshortcuts="r"
        >
          ${running.value ? "Pause" : "Run"}
        </button>
        <select
          aria-label="Pace"
          value=${String(pace.value)}
          onChange=${(event) => {
            pace.value = Number(event.target.value);
          }}
        >
          <option value="2000">every 2 s</option>
          <option value="500">every 0.5 s</option>
          <option value="100">every 0.1 s</option>
        </select>
      </span>
      <button
        type="button"
        disabled=${off || !undos.value.length}
        onClick=${undo}
        aria-keyshortcuts="u"
      >
        Undo${undos.value.length ? ` ${undos.value[undos.value.length - 1].what}` : ""}
      </button>
    </div>
  `;
}

// The buttons that build blocks, and their keys.

import { html, useEffect } from "../html.js";
import { signal } from "../vendor/signals.js";
import { dev, undos } from "./state.js";
import { busy, HAPPENINGS, pace, run, running, step, undo, until } from "./steps.js";

const wanted = signal("delivery");

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
        Undo${undos.value.length ? ` “${undos.value.at(-1).what}”` : ""}
      </button>
    </div>
  `;
}

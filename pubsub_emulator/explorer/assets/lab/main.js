// The page: a head with the state of things, the time line, the chosen block, and beside it what
// can be done.

import { Detail } from "./detail.js";
import { Guide } from "./guide.js";
import { link } from "./rpc.js";
import { best, chains, dev, said, setting } from "./state.js";
import { start } from "./store.js";
import { Tabs } from "./tabs.js";
import { Timeline } from "./timeline.js";
import { Steps } from "./toolbar.js";
import { html, render, Term } from "./words.js";

function State() {
  const { state } = link.value;
  return html`
    <span id="state" class=${state} role="status">
      ${connection(link.value)}
    </span>
  `;
}

function connection({ state, away, why }) {
  if (state === "connecting") {
    return "connecting …";
  }
  if (state === "away") {
    return `away: trying again …${why ? ` (${why})` : ""}`;
  }
  return away ? `live again; away for ${Math.round(away / 1000)} s, nothing is missing` : "live";
}

function Lab() {
  const known = setting.value;
  return html`
    <header>
      <div class="head">
        <div class="name">
          <h1>${known ? known.name : "pubsub lab"}</h1>
          <p id="figures">
            <${Term} word="relay chain" /> at block <b id="best">${best.value}</b>,${" "}
            ${chains.value.length} parachains · <${State} />
          </p>
        </div>
        <button id="theme" type="button" aria-label="Dark or light" onClick=${theme}>
          <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
            <circle
              cx="8"
              cy="8"
              r="6"
              fill="none"
              stroke="currentColor"
              stroke-width="1.6"
            />
            <path d="M8 2a6 6 0 0 1 0 12z" fill="currentColor" />
          </svg>
        </button>
      </div>
      <${Steps} />
      <p id="said" role="status">
        ${said.value}
      </p>
    </header>
    <main>
      <${Guide} />
      <${Timeline} />
      <div class="below">
        <div id="detail">
          <${Detail} />
        </div>
        <${Tabs} />
      </div>
    </main>
    <footer>
      ${
        dev.value
          ? html`
            <kbd>n</kbd> step · <kbd>t</kbd> ten steps · <kbd>r</kbd> run, pause ·${" "}
            <kbd>u</kbd> undo ·${" "}
          `
          : null
      }
      in the time line <kbd>left</kbd> <kbd>right</kbd> <kbd>up</kbd> <kbd>down</kbd>
    </footer>
  `;
}

function theme() {
  const root = document.documentElement;
  const dark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
}

const app = document.getElementById("app");
app.replaceChildren();
render(html`<${Lab} />`, app);
start();

// The page: a head with the state of things, the time line, the chosen block, and beside it what
// can be done.

import { Head } from "../head.js";
import { html, render } from "../html.js";
import "../vendor/signals.js";
import { Detail } from "./detail.js";
import { Term } from "./glossary.js";
import { Guide } from "./guide.js";
import { link } from "./rpc.js";
import { best, chains, dev, said, setting } from "./state.js";
import { start } from "./store.js";
import { Tabs } from "./tabs.js";
import { LiveTimeline } from "./timeline.js";
import { Steps } from "./toolbar.js";

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
    return `connection lost: trying again …${why ? ` (${why})` : ""}`;
  }
  return away ? `live again after ${Math.round(away / 1000)} s; nothing is missing` : "live";
}

function Lab() {
  const known = setting.value;
  return html`
    <header class="page-head">
      <${Head} title=${known ? known.name : "pubsub lab"}>
        <${Term} word="relay chain" /> at block <b id="best">${best.value}</b>,${" "}
        ${chains.value.length} parachains · <${State} />
      </${Head}>
      <${Steps} />
      <p id="said" role="status">
        ${said.value}
      </p>
    </header>
    <main>
      <${Guide} />
      <${LiveTimeline} />
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

const app = document.getElementById("app");
app.replaceChildren();
render(html`<${Lab} />`, app);
start();

// The page: a head with the state of things, the time line, the chosen block, and beside it what can be done.
import { Copied, html, render, Term } from "./words.js";
import { best, chains, dev, followed, said, setting, start, tab } from "./store.js";
import { lastCall, link } from "./rpc.js";
import { Acts } from "./acts.js";
import { Branches } from "./branches.js";
import { Charts } from "./charts.js";
import { Detail } from "./detail.js";
import { Follow } from "./follow.js";
import { Guide } from "./guide.js";
import { lastLine, Steps } from "./steps.js";
import { Session } from "./session.js";
import { Timeline } from "./timeline.js";

const TABS = {
  acts: ["Act", Acts],
  branches: ["Branches", Branches],
  session: ["Session", Session],
  charts: ["Figures", Charts],
  accounts: ["Endpoints", Endpoints],
};

function State() {
  const { state, away, why } = link.value;
  const words =
    state === "live"
      ? away
        ? `live again; away for ${Math.round(away / 1000)} s, nothing is missing`
        : "live"
      : state === "away"
        ? `away: trying again …${why ? ` (${why})` : ""}`
        : "connecting …";
  return html`
    <span id="state" class=${state} role="status">
      ${words}
    </span>
  `;
}

function Endpoints() {
  const base = location.href.replace(/^http/, "ws").replace(/[?#].*$/, "");
  return html`
    <div class="endpoints">
      <ul class="lines">
        <li>relay chain: ${base}</li>
        ${chains.value.map(
          (chain) => html`
            <li>
              parachain ${chain.para}: ${base}
              ${chain.para}
            </li>
          `,
        )}
      </ul>
      <p>
        <a href="explorer">ledgers and tries of the newest blocks</a>,${" "}
        <a href="metrics">metrics</a>
      </p>
      ${
        dev.value
          ? html`
            <${Copied}
              label="the same in a terminal"
              text=${`pubsub step --connect ${base.replace(/\/$/, "")}`}
            />
          `
          : null
      }
    </div>
  `;
}

function Tabs() {
  const names = Object.keys(TABS).filter(
    (name) => dev.value || !["acts", "branches"].includes(name),
  );
  const open = names.includes(tab.value) ? tab.value : names[0];
  const move = (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) {
      return;
    }
    event.preventDefault();
    tab.value = names[(names.indexOf(open) + by + names.length) % names.length];
    document.getElementById(`tab-${tab.value}`).focus();
  };
  const Body = TABS[open][1];
  return html`
    <aside aria-label="Acts and figures">
      <div role="tablist" aria-label="Acts and figures" class="tabs" onKeyDown=${move}>
        ${names.map(
          (name) => html`
            <button
              type="button"
              role="tab"
              id=${`tab-${name}`}
              aria-controls="panel"
              aria-selected=${name === open}
              tabindex=${name === open ? 0 : -1}
              onClick=${() => {
                tab.value = name;
              }}
            >
              ${TABS[name][0]}
            </button>
          `,
        )}
      </div>
      <div
        role="tabpanel"
        id="panel"
        aria-labelledby=${`tab-${open}`}
        tabindex="0"
        class="card"
      >
        <${Body} />
      </div>
      ${
        lastCall.value
          ? html`
            <section class="card last" aria-label="What was sent last">
              <${Copied} label="sent last" text=${lastCall.value} />
              ${lastLine.value ? html`<${Copied} label="pubsub step" text=${lastLine.value} />` : null}
            </section>
          `
          : null
      }
      ${
        followed.value
          ? html`
            <section class="card" aria-label="The followed key">
              <${Follow} />
            </section>
          `
          : null
      }
    </aside>
  `;
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

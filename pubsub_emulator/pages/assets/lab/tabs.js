// Beside the chosen block: what can be done, what was sent last, and the followed key.

import { html } from "../html.js";
import { Acts } from "./acts.js";
import { Branches } from "./branches.js";
import { Charts } from "./charts.js";
import { Follow } from "./follow.js";
import { Copied } from "./glossary.js";
import { sent } from "./rpc.js";
import { Session } from "./session.js";
import { chains, dev, followed, tab } from "./state.js";

const TABS = {
  acts: ["Act", Acts],
  branches: ["Branches", Branches],
  session: ["Session", Session],
  charts: ["Figures", Charts],
  accounts: ["Endpoints", Endpoints],
};

function Endpoints() {
  const base = location.href.replace(/^http/, "ws").replace(/[?#].*$/, "");
  return html`
    <div class="endpoints">
      <ul class="lines">
        <li>relay chain: ${base}</li>
        ${chains.value.map(
          (chain) => html`
            <li>
              parachain ${chain.para}: ${`${base}${chain.para}`}
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

export function Tabs() {
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
        sent.value
          ? html`
            <section class="card last" aria-label="What was sent last">
              <${Copied} label="sent last" text=${sent.value.call} />
              ${
                sent.value.line
                  ? html`<${Copied} label="pubsub step" text=${sent.value.line} />`
                  : null
              }
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

// What is shown of a candidate that was chosen.

import { CandidateParts } from "../block/candidate.js";
import { Evidence } from "../block/evidence.js";
import { html } from "../html.js";
import { Badge, Section } from "../parts.js";

export function CandidateView({ run, block, detail, go }) {
  const title = `${run.chainName(block.chain.id)} · block ${block.number}`;
  return html`
    <article data-block=${`c${block.at}`}>
      <div class="title">
        <h2>${title} <${Badge} verdict=${block.verdict} /></h2>
        <div class="steps">
          <${Step} block=${block} by=${-1} go=${go} />
          <${Step} block=${block} by=${1} go=${go} />
        </div>
      </div>
      ${block.verdict ? html`<${Refusal} run=${run} block=${block} detail=${detail} />` : null}
      <${CandidateParts} run=${run} block=${block} detail=${detail} go=${go} />
    </article>
  `;
}

function Refusal({ run, block, detail }) {
  return html`
    <${Section} kind="refusal" title="Why it was refused">
      <${Evidence} rows=${detail.evidence} meanings=${run.verdicts} />
      ${
        block.strategy
          ? html`
            <p class="hint">
              The network was told to have this author cheat: ${block.strategy}.
            </p>
          `
          : null
      }
    </${Section}>
  `;
}

// A button to the chain's block before or after.
function Step({ block, by, go }) {
  const other = block.chain.blocks[block.place + by];
  return html`
    <button
      type="button"
      aria-label=${by < 0 ? "Block before" : "Block after"}
      disabled=${!other}
      onClick=${() => go(`c${other.at}`)}
    >
      <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
        <path
          d=${by < 0 ? "M10 3 5 8l5 5" : "M6 3l5 5-5 5"}
          fill="none"
          stroke="currentColor"
          stroke-width="1.8"
        />
      </svg>
    </button>
  `;
}

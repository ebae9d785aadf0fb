// What is shown of a relay block that was chosen.

import { Events } from "../block/candidate.js";
import { html } from "../html.js";
import { Badge, deliveries, Facts, Lines, Link, Section } from "../parts.js";
import { counted } from "../words.js";

const FEW_KEYS = 12;

export function RelayView({ run, block, detail, go }) {
  const judged = run.candidates.filter((each) => each.relay === block.number);
  const names = block.keys.map((each) => run.keyName(each).name);
  const many = names.length > FEW_KEYS;
  const published = many ? counted(names.length, "key") : names.join(", ") || "nothing";
  return html`
    <article data-block=${`r${block.number}`}>
      <div class="title"><h2>Relay block ${block.number}</h2></div>
      <${Facts}
        rows=${[
          ["hash", `0x${block.hash}`],
          ["state root", `0x${block.root}`],
          ["published", published],
        ]}
      />
      ${
        many
          ? html`
            <${Section} title=${`Published: ${published}`}><${Lines} texts=${names} /></${Section}>
          `
          : null
      }
      <${Section} title=${`Candidates: ${judged.length}`}>
        ${
          judged.length
            ? html`<${Judged} run=${run} judged=${judged} go=${go} />`
            : html`<p class="hint">None was judged in this block.</p>`
        }
      </${Section}>
      ${
        detail.messages.length
          ? html`
            <${Section} title=${`Upward messages: ${detail.messages.length}`}>
              <${Lines} texts=${detail.messages} />
            </${Section}>
          `
          : null
      }
      <${Events} rows=${detail.events} />
    </article>
  `;
}

function Judged({ run, judged, go }) {
  return html`
    <ul class="links">
      ${judged.map(
        (each) => html`
          <li>
            <${Link} act=${() => go(`c${each.at}`)}>
              ${run.chainName(each.chain.id)} · block ${each.number}
            </${Link}>${" "}
            <${Outcome} candidate=${each} />
          </li>
        `,
      )}
    </ul>
  `;
}

// The verdict of a refused candidate, or what an accepted one was delivered.
function Outcome({ candidate }) {
  if (candidate.verdict) {
    return html`<${Badge} verdict=${candidate.verdict} />`;
  }
  return candidate.keys.length ? deliveries(candidate.keys.length) : null;
}

// A candidate as the page of a run shows it, and what can be done to the next one.

import { CandidateParts } from "../block/candidate.js";
import { Evidence } from "../block/evidence.js";
import { Run } from "../block/run.js";
import { html, useEffect, useState } from "../html.js";
import { Badge, Link } from "../parts.js";
import { counted, size } from "../words.js";
import { show } from "./choice.js";
import { Term } from "./glossary.js";
import { Deliveries } from "./keys.js";
import { call } from "./rpc.js";
import { names } from "./state.js";
import { Tampering } from "./tampering.js";

const REFUSED =
  "The chain refused its block and goes on without it; the next collator builds in its place.";

// The verdict at once, from the column; the proof and the rest when the node has drawn it.
export function Candidate({ candidate, column }) {
  const [why, setWhy] = useState("Drawing the proof …");
  const [drawn, setDrawn] = useState(null);
  useEffect(() => {
    let gone = false;
    call("pubsub_explained", candidate.hash).then(
      (found) => {
        if (gone) {
          return;
        }
        if (!found) {
          setWhy("The node keeps no more than these figures of it.");
          return;
        }
        for (const [, key, name] of found.index.keys) {
          if (name) {
            names.set(`0x${key}`, name);
          }
        }
        setDrawn(one(found));
        setWhy("");
      },
      (error) => gone || setWhy(error.message),
    );
    return () => {
      gone = true;
    };
  }, [candidate.hash]);
  const delivered = column.deliveries.filter((each) => each.block === candidate.hash);
  return html`
    <article class="candidate" data-hash=${candidate.hash} aria-label="The chosen candidate">
      <${Verdict} candidate=${candidate} column=${column} drawn=${drawn} />
      <${Deliveries} rows=${delivered} />
      <p class="hint" role="status">${why}</p>
      ${
        drawn
          ? html`
            <div class="drawn">
              <${CandidateParts}
                ...${drawn}
                go=${() => show(column.number)}
                tools=${(part) => html`<${Tampering} part=${part} para=${candidate.para} />`}
              />
            </div>
          `
          : null
      }
    </article>
  `;
}

function Verdict({ candidate, column, drawn }) {
  const full = candidate.unprunedBytes;
  const unpruned = full === undefined ? "" : `; unpruned ${size(full)}`;
  const figures = `${counted(candidate.proofNodes, "proof node")}, ${size(candidate.proofBytes)}`;
  // with the names of keys, once they are known
  const evidence = drawn?.detail.evidence || candidate.evidence;
  const told = candidate.strategy
    ? html`
      <p>
        The collator was told to cheat: <b>${candidate.strategy}</b>.${" "}
        ${candidate.verdict ? REFUSED : ""}
      </p>
    `
    : null;
  return html`
    <div class=${`card verdict ${candidate.verdict ? "refusal" : ""}`}>
      <h2>
        ${candidate.para} · block ${candidate.number}${" "}
        <${Badge} verdict=${candidate.verdict} />
      </h2>
      <p>
        A <${Term} word="candidate" /> of <${Term} word="collator" />${" "}
        ${candidate.collator ?? "?"}, judged for${" "}
        <${Link} act=${() => show(column.number)}>relay block ${column.number}</${Link}>,${" "}
        ${figures}${unpruned}.
      </p>
      ${told}
      <${Evidence} rows=${evidence} meanings=${drawn?.run.verdicts || {}} />
    </div>
  `;
}

// What the views of a block need: the run with this one candidate, its block and details.
function one({ index, detail, nodes }) {
  const run = new Run(index, {
    node: (number) => {
      const [hash, length, bytes] = nodes[number];
      return Promise.resolve({ hash, length, bytes });
    },
  });
  const shown = { ...detail, deliveries: null }; // listed above, to be followed
  return { run, block: run.candidates.at(-1), detail: shown };
}

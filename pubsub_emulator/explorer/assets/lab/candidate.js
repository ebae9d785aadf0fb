// A candidate as the page of a run shows it.

import { choose } from "./choice.js";
import { Deliveries } from "./keys.js";
import { call } from "./rpc.js";
import { names } from "./state.js";
import { cut } from "./texts.js";
import { html, many, size, Term, useEffect, useRef, useState } from "./words.js";

const REFUSED =
  "The chain refused its block and goes on without it; the next collator builds in its place.";

// The verdict at once, from the column; the proof and the rest when the node has drawn it.
export function Candidate({ candidate, column }) {
  const host = useRef(null);
  const [why, setWhy] = useState("Drawing the proof …");
  const [meaning, setMeaning] = useState({});
  const [evidence, setEvidence] = useState(candidate.evidence);
  useEffect(() => {
    let gone = false;
    call("pubsub_explained", candidate.hash).then(
      async (found) => {
        if (gone) {
          return;
        }
        if (!found) {
          return setWhy("The node keeps no more than these figures of it.");
        }
        for (const [, key, name] of found.index.keys) {
          if (name) {
            names.set(`0x${key}`, name);
          }
        }
        setMeaning(found.index.verdicts);
        setEvidence(found.detail.evidence || []); // with the names of keys
        const shown = await candidateView(...one(found));
        if (gone || !host.current) {
          return;
        }
        host.current.replaceChildren(shown);
        setWhy("");
      },
      (error) => setWhy(error.message),
    );
    return () => {
      gone = true;
    };
  }, [candidate.hash]);
  const full = candidate.unprunedBytes;
  const unpruned = full === undefined ? "" : `; unpruned ${size(full)}`;
  return html`
    <article class="candidate" data-hash=${candidate.hash} aria-label="The chosen candidate">
      <div class=${`card verdict ${candidate.verdict ? "refusal" : ""}`}>
        <h2>
          ${candidate.para} · block ${candidate.number}${" "}
          <span class=${`badge ${candidate.verdict ? "refused" : "valid"}`}>
            ${candidate.verdict || "accepted"}
          </span>
        </h2>
        <p>
          A <${Term} word="candidate" /> of <${Term} word="collator" />${" "}
          ${candidate.collator ?? "?"}, judged for${" "}
          <button type="button" class="link" onClick=${() => choose(column.number)}>
            relay block ${column.number}
          </button>
          , ${many(candidate.proofNodes, "proof node")}, ${size(candidate.proofBytes)}${unpruned}.
        </p>
        ${
          candidate.strategy
            ? html`
              <p>
                The collator was told to cheat: <b>${candidate.strategy}</b>.${" "}
                ${candidate.verdict ? REFUSED : ""}
              </p>
            `
            : null
        }
        ${
          evidence.length
            ? html`
              <ol class="evidence">
                ${evidence.slice(0, 20).map(
                  ([verdict, words]) => html`
                    <li>
                      <b>${verdict}</b> ${meaning[verdict]}
                      <p>${cut(words, 400)}</p>
                    </li>
                  `,
                )}
              </ol>
            `
            : null
        }
      </div>
      <${Deliveries} rows=${column.deliveries.filter((each) => each.block === candidate.hash)} />
      <p class="hint" role="status">
        ${why}
      </p>
      <div ref=${host} class="drawn"></div>
    </article>
  `;
}

// What the views of the page of a run need: the run with this one candidate, and its place.
function one({ index, detail, nodes }) {
  const run = new Run(index);
  run.detail = async () => ({ ...detail, deliveries: null }); // listed above, to be followed
  run.node = async (number) => ({
    hash: nodes[number][0],
    length: nodes[number][1],
    bytes: nodes[number][2],
  });
  return [run, run.candidates.at(-1), () => null];
}

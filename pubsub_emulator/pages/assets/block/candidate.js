// The parts of a candidate that every page shows: its proof, ledger, deliveries, changes, events.

import { html } from "../html.js";
import { Facts, Fold, Lines, Link, MOST_ROWS, More, Section, Table } from "../parts.js";
import { counted, short, size } from "../words.js";
import { Inherent } from "./inherent.js";
import { Ledger } from "./ledger.js";
import { Trie } from "./trie.js";

// `go` is called with the name of a block to be shown. `tools` makes what a page offers to do with
// a part of the block's input.
export function CandidateParts({ run, block, detail, go, tools }) {
  const stopped = "The walk stopped at the budget: the cursor is where the next block continues.";
  return html`
    ${block.stopped ? html`<p class="note">${stopped}</p>` : null}
    <${Section} title=${`Proof: ${counted(block.nodes, "node")}`}>
      <${Trie} run=${run} detail=${detail} />
    </${Section}>
    <${Section} title="Where its bytes went">
      <${Ledger} run=${run} ledger=${detail.ledger} refused=${Boolean(block.verdict)} />
    </${Section}>
    <${Inherent} detail=${detail} tools=${tools} />
    <${Deliveries} run=${run} rows=${detail.deliveries} />
    ${
      detail.changes
        ? html`<${Section} title="What it wrote"><${Changes} rows=${detail.changes} /></${Section}>`
        : null
    }
    <${Events} rows=${detail.events} />
    <${Section} title="The block">
      <${Facts} rows=${about(run, block, detail, go)} />
    </${Section}>
  `;
}

export function Events({ rows }) {
  return rows?.length
    ? html`<${Section} title=${`Events: ${rows.length}`}><${Lines} texts=${rows} /></${Section}>`
    : null;
}

function Deliveries({ run, rows }) {
  if (!rows?.length) {
    return null;
  }
  const head = ["publisher", "key", "", "value", "size", "lifetime"];
  const cells = rows.slice(0, MOST_ROWS).map(([key, length, value, ttl, failed]) => {
    const { para, name } = run.keyName(key);
    if (length === null) {
      return [run.chainName(para), name, "removed", "", "", ttl];
    }
    const what = failed ? "updated, handler failed" : "updated";
    return [run.chainName(para), name, what, value, size(length), ttl];
  });
  return html`
    <${Section} title=${`Deliveries: ${rows.length.toLocaleString("en")}`}>
      <${Table} head=${head} rows=${cells} />
      <${More} count=${rows.length} />
    </${Section}>
  `;
}

function Changes({ rows }) {
  const head = ["storage item", "of", "before", "after"];
  // a space of no width after the dot lets a line break there
  const cells = (found) =>
    found.map(([item, where, before, after]) => [
      item.replace(".", "​."),
      where,
      before || "–",
      after || "–",
    ]);
  const remembered = rows.filter((row) => !row[4]);
  const kept = rows.filter((row) => row[4]);
  return html`
    ${
      remembered.length
        ? html`<${Table} head=${head} rows=${cells(remembered)} />`
        : html`<p class="hint">Nothing but the block's own bookkeeping.</p>`
    }
    ${
      kept.length
        ? html`
          <${Fold} title=${`Bookkeeping of every block (${kept.length})`} open=${false}>
            <${Table} head=${head} rows=${cells(kept)} />
          </${Fold}>
        `
        : null
    }
  `;
}

function about(run, block, detail, go) {
  const { chain } = block;
  const relay = `relay block ${block.relay}`;
  const known = run.relayAt.has(block.relay);
  const turn = `turn of collator ${block.author + 1} of ${chain.collators.length}`;
  return [
    [
      "judged in",
      known ? html`<${Link} act=${() => go(`r${block.relay}`)}>${relay}</${Link}>` : relay,
    ],
    ["relay parent", `block ${block.parent}, storage root ${short(detail.relayRoot)}`],
    ["slot", `${block.slot}, ${turn}, ${short(chain.collators[block.author] || "")}`],
    ["hash", `0x${block.hash}`],
    ["parent", `0x${detail.parent || parentHash(block)}`],
    ["state root", `0x${detail.root}`],
    ["cache policy", chain.subscribes ? chain.cache : null],
  ];
}

// The hash of the newest valid block before this one, which may be from before the record starts.
function parentHash(block) {
  for (let at = block.place - 1; at >= 0; at--) {
    const before = block.chain.blocks[at];
    if (!before.verdict) {
      return before.hash;
    }
  }
  return block.chain.first;
}

// Where a block's bytes went (PS-70).

import { html } from "../html.js";
import { Facts, Fold, Table } from "../parts.js";
import { counted, percent, size } from "../words.js";

const SHARES = [
  ["static", "static keys", "in the proof, and free"],
  ["requested", "requested keys", "in the proof, and free unless the runtime charges them"],
  ["top", "top paths", "the way to each publisher's root"],
  ["child", "child nodes", "the way to changed keys"],
  ["value", "values", "detached values"],
  ["rows", "delivered rows", "charge for reading what was last delivered"],
  ["cache", "cache reads", "charge for reading the cache"],
  ["maps", "maps", "charge for the two maps read before the walk"],
];

const HEAD = [
  "publisher",
  "state",
  "top path",
  "child nodes",
  "values",
  "rows",
  "cache",
  "from cache",
  "full proof",
];

function shares(ledger) {
  const sum = (at) => ledger.publishers.reduce((total, row) => total + row[at], 0);
  return {
    static: ledger.static,
    requested: ledger.requested,
    top: sum(2),
    child: sum(3),
    value: sum(4),
    rows: sum(5),
    cache: sum(6),
    maps: ledger.maps,
  };
}

export function Ledger({ run, ledger, refused }) {
  if (!ledger) {
    return html`
      <p class="hint">
        The relay chain has no such block: nothing could be read, and nothing was counted.
      </p>
    `;
  }
  const parts = shares(ledger);
  const whole = Object.values(parts).reduce((total, part) => total + part, 0);
  const shown = SHARES.filter(([name]) => parts[name]);
  return html`
    ${
      refused
        ? html`
          <p class="hint">The block is refused; this is how far reading its proof came.</p>
        `
        : null
    }
    <div class="bar" role="img" aria-label="shares of the block's bytes">
      ${shown.map(
        ([name, words]) => html`
          <i
            class=${`k-${name}`}
            style=${`flex-grow:${parts[name]}`}
            title=${`${words}: ${size(parts[name])}`}
          ></i>
        `,
      )}
    </div>
    <ul class="key">
      ${shown.map(
        ([name, words, why]) => html`
          <li title=${why}>
            <i class=${`k-${name}`}></i>${words} <b>${size(parts[name])}</b>${" "}
            ${percent(parts[name], whole)}
          </li>
        `,
      )}
    </ul>
    <${Facts} rows=${figures(ledger, refused)} />
    <${Publishers} run=${run} publishers=${ledger.publishers} />
  `;
}

// The rows of figures below the bar.
function figures(ledger, refused) {
  const unchanged = ledger.publishers.filter((row) => row[1] === "unchanged");
  const unread = unchanged.reduce((total, row) => total + Math.max(row[8] - row[2], 0), 0);
  const cached = ledger.publishers.reduce((total, row) => total + row[7], 0);
  const used = `${size(ledger.used)} used of ${size(ledger.budget)}`;
  const left = size(Math.max(ledger.budget - ledger.used, 0));
  const saved = percent(ledger.full - ledger.proof, ledger.full);
  return [
    [
      "budget",
      `${used} (${percent(ledger.used, ledger.budget)}), ${left} unused;` +
        ` messages take ${size(ledger.messages)} beside it`,
    ],
    [
      "proof",
      `${counted(ledger.nodes, "node")}, ${size(ledger.proof)};` +
        ` the full proof of all subscribed keys: ${size(ledger.full)}` +
        (refused ? "" : `, so pruning saves ${saved}`),
    ],
    [
      "unchanged roots",
      unchanged.length
        ? `${counted(unchanged.length, "publisher")} unread, ${size(unread)} saved`
        : "none",
    ],
    [
      "cache",
      cached ? `${size(cached)} of nodes came from the cache` : "no nodes came from the cache",
    ],
    [
      "own state read",
      `${size(ledger.ownState)} added to the parachain's storage proof,` +
        ` ${size(ledger.cacheState)} of it by the cache`,
    ],
    [
      "weight",
      refused
        ? null
        : `${(ledger.weight[0] / 1e6).toFixed(1)} µs of ref_time,` +
          ` ${size(ledger.weight[1])} of proof_size`,
    ],
  ];
}

function Publishers({ run, publishers }) {
  if (!publishers.length) {
    return null;
  }
  const rows = publishers.map(([para, state, ...weights]) => [
    run.chainName(para),
    state,
    ...weights.map((weight) => (weight ? size(weight) : "·")),
  ]);
  return html`
    <${Fold} title=${`By publisher (${rows.length})`} open=${rows.length <= 8}>
      <${Table} head=${HEAD} rows=${rows} figuresFrom=${2} />
    </${Fold}>
  `;
}

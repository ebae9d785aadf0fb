// The figures of blocks that charts show.

import { size } from "../words.js";

const sum = (list, of) => list.reduce((total, each) => total + (of(each) || 0), 0);
const included = (column) => column.candidates.filter((each) => !each.verdict);

// Each chart: its title, what it says, how a figure is written, and its lines from the columns in
// sight.
export const CHARTS = [
  [
    "Proof bytes by publisher",
    "What accepted blocks carry to prove each publisher's keys; the five with most.",
    size,
    (shown) => {
      const totals = new Map();
      for (const column of shown) {
        for (const each of included(column)) {
          for (const [para, bytes] of each.publishers) {
            totals.set(para, (totals.get(para) || 0) + bytes);
          }
        }
      }
      const top = [...totals]
        .sort((a, b) => b[1] - a[1])
        .slice(0, 5)
        .map(([para]) => para);
      return top.map((para) => [
        String(para),
        (column) =>
          sum(included(column), (each) =>
            sum(each.publishers, ([who, bytes]) => (who === para ? bytes : 0)),
          ),
      ]);
    },
  ],
  [
    "Pruned beside unpruned",
    "The proofs of accepted blocks, and what full proofs of all that is subscribed would weigh.",
    size,
    () => [
      ["pruned", (column) => sum(included(column), (each) => each.proofBytes)],
      [
        "unpruned",
        (column) => sum(included(column), (each) => each.unprunedBytes ?? each.proofBytes),
      ],
    ],
  ],
  [
    "Saved by caches",
    "Nodes that a parachain has in its own cache, so that no proof carries them.",
    size,
    () => [["from the cache", (column) => sum(included(column), (each) => each.cachedBytes)]],
  ],
  [
    "Latency in blocks",
    "Relay blocks from an entry's write to its delivery, the mean of a block's deliveries.",
    (value) => value.toFixed(1),
    () => [
      [
        "from written to delivered",
        (column) => {
          const ages = column.deliveries
            .map((each) => each.blocksSincePublished)
            .filter((age) => age !== null);
          return ages.length ? sum(ages, (age) => age) / ages.length : null;
        },
      ],
    ],
  ],
  [
    "Weight: time",
    "The first dimension of the relay blocks' weight.",
    (value) => `${value.toFixed(1)} ms`,
    () => [["ref_time", (column) => column.weight[0] / 1e9]],
  ],
  [
    "Weight: bytes",
    "The second dimension, and beside it the bytes of the candidates' proofs.",
    size,
    () => [
      ["proof_size", (column) => column.weight[1]],
      ["proofs of candidates", (column) => sum(column.candidates, (each) => each.proofBytes)],
    ],
  ],
  [
    "Messages in the relay's queues",
    "Upward messages that wait to be executed.",
    String,
    () => [["waiting", (column) => column.queuedMessages]],
  ],
  ["Bytes in the relay's queues", "", size, () => [["waiting", (column) => column.queuedBytes]]],
];

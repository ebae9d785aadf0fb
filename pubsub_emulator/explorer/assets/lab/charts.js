// Figures along blocks: small charts that move with the blocks; the pointer or the arrow keys read them.
import { html, size, useEffect, useRef, useState } from "./words.js";
import uPlot from "../vendor/uplot.js"; // after `words`, which mends the browser's language
import { best, columns, first, version } from "./store.js";

const SHOWN = 120;
const COLOURS = ["--k-top", "--k-value", "--k-rows", "--k-maps", "--k-static", "--k-cache"];

const sum = (list, of) => list.reduce((total, each) => total + (of(each) || 0), 0);
const included = (column) => column.candidates.filter((each) => !each.verdict);

// Each chart: its title, what it says, how a figure is written, and its lines from the columns in sight.
const CHARTS = [
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

export function Charts() {
  const told = version.value;
  const numbers = [];
  for (let at = Math.max(first.value, best.value - SHOWN + 1); at <= best.value; at++) {
    if (columns.has(at)) {
      numbers.push(at);
    }
  }
  return html`
    <div class="charts" data-told=${told}>
      ${CHARTS.map(
        ([title, says, written, lines]) => html`
          <${Chart}
            key=${title}
            title=${title}
            says=${says}
            written=${written}
            numbers=${numbers}
            lines=${lines(numbers.map((at) => columns.get(at)))}
          />
        `,
      )}
    </div>
  `;
}

function Chart({ title, says, written, numbers, lines }) {
  const host = useRef(null);
  const plot = useRef(null);
  const cursor = useRef(null);
  const [read, setRead] = useState("");
  const data = [
    numbers,
    ...lines.map(([, figure]) => numbers.map((at) => figure(columns.get(at)))),
  ];
  const named = lines.map(([name]) => name).join();
  const words = (at) =>
    `relay block ${numbers[at]}: ${lines.map(([name], line) => `${name} ${data[line + 1][at] === null ? "none" : written(data[line + 1][at])}`).join(", ")}`;
  const telling = useRef(null);
  telling.current = words;
  useEffect(() => {
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--faint");
    const axis = {
      stroke: ink,
      grid: { stroke: style.getPropertyValue("--line"), width: 1 },
      ticks: { show: false },
      font: "11px system-ui",
    };
    const made = new uPlot(
      {
        width: host.current.clientWidth,
        height: 110,
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false } },
        scales: {
          x: { time: false },
          y: { range: (_, low, high) => [0, Math.max(high, 1) * 1.1] },
        },
        hooks: {
          setCursor: [
            (drawn) =>
              setRead(
                drawn.cursor.idx === null || drawn.cursor.left < 0
                  ? ""
                  : telling.current(drawn.cursor.idx),
              ),
          ],
        },
        axes: [
          { ...axis, size: 22 },
          { ...axis, size: 58, values: (_, all) => all.map((each) => written(each)) },
        ],
        series: [
          {},
          ...lines.map(([label], at) => ({
            label,
            stroke: style.getPropertyValue(COLOURS[at]),
            width: 1.5,
            points: { show: (made) => made.data[at + 1].includes(null), size: 4 },
          })),
        ],
      },
      data,
      host.current,
    );
    plot.current = made;
    const watch = new ResizeObserver(() =>
      made.setSize({ width: host.current.clientWidth, height: 110 }),
    );
    watch.observe(host.current);
    return () => {
      watch.disconnect();
      made.destroy();
    };
  }, [named]);
  useEffect(() => {
    plot.current?.setData(data);
  });
  const key = (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined || !numbers.length) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    const at = Math.min(Math.max((cursor.current ?? numbers.length) + by, 0), numbers.length - 1);
    cursor.current = at;
    plot.current.setCursor({ left: plot.current.valToPos(numbers[at], "x"), top: 0 });
    setRead(words(at));
  };
  const last = numbers.length - 1;
  return html`
    <figure class="chart">
      <figcaption>
        ${title}
        ${says ? html`<span>${says}</span>` : null}
      </figcaption>
      <div
        class="plot"
        ref=${host}
        tabindex="0"
        role="group"
        aria-label=${`${title}; left and right read it`}
        onKeyDown=${key}
      ></div>
      <ul class="key">
        ${lines.map(
          ([name], at) => html`
            <li>
              <i class=${`line-${at}`}></i>
              ${name}${" "}
              <b>
                ${last < 0 || data[at + 1][last] === null ? "–" : written(data[at + 1][last])}
              </b>
            </li>
          `,
        )}
      </ul>
      <p class="read" role="status">
        ${read}
      </p>
    </figure>
  `;
}

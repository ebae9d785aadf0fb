// Figures along blocks: small charts that move with the blocks; the pointer or the arrow keys read
// them.

import { html, useEffect, useRef, useState } from "../html.js";
import { CHARTS } from "./figures.js";
// after `words.js`, which mends the browser's language
import { uPlot } from "./plot.js";
import { best, columns, first, version } from "./state.js";

const SHOWN = 120;
const COLOURS = ["--one", "--two", "--three", "--four", "--five", "--six"];

const STEPS = {
  ArrowLeft: -1,
  ArrowRight: 1,
  Home: Number.NEGATIVE_INFINITY,
  End: Number.POSITIVE_INFINITY,
};

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
  const words = (at) => {
    const figures = lines.map(([name], line) => {
      const figure = data[line + 1][at];
      return `${name} ${figure === null ? "none" : written(figure)}`;
    });
    return `relay block ${numbers[at]}: ${figures.join(", ")}`;
  };
  const telling = useRef(null);
  telling.current = words;
  useEffect(() => {
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--muted");
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
          y: { range: (_plot, _low, high) => [0, Math.max(high, 1) * 1.1] },
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
          { ...axis, size: 58, values: (_plot, all) => all.map((each) => written(each)) },
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
    const by = STEPS[event.key];
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

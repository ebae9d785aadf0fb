// Blocks along time: a column a relay block, a row a chain. Only the columns in sight are drawn and asked for.
import { Component, html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./words.js";
import {
  best,
  chains,
  choose,
  chosen,
  columns,
  first,
  followed,
  need,
  publishesOnly,
  version,
} from "./store.js";
import { journey } from "./follow.js";

const CELL = 20;
const ROW = 26;
const TOP = 4;
const BESIDE = 12;
const NONE = [];

const LEGEND = html`
  <p class="colours">
    <span>
      <i class="cell delivers"></i>delivers
    </span>
    <span>
      <i class="cell quiet"></i>nothing new
    </span>
    <span>
      <i class="cell stopped"></i>stopped at the budget
    </span>
    <span>
      <i class="cell refused">×</i>refused
    </span>
    <span>
      <i class="cell news"></i>relay block that publishes
    </span>
    <span>
      <i class="cell hit"></i>the followed key
    </span>
  </p>
`;

export function kindOf(candidate) {
  return candidate.verdict
    ? "refused"
    : candidate.stopped
      ? "stopped"
      : candidate.delivered
        ? "delivers"
        : "quiet";
}

export function Timeline() {
  const strip = useRef(null);
  const [left, setLeft] = useState(0);
  const [wide, setWide] = useState(600);
  const atEnd = useRef(true);
  const count = Math.max(best.value - first.value + 1, 0);
  const changed = version.value;
  useEffect(() => {
    const watch = new ResizeObserver(() => setWide(strip.current.clientWidth));
    watch.observe(strip.current);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (atEnd.current) {
      strip.current.scrollLeft = strip.current.scrollWidth;
    }
  }, [count, wide]);
  const from = first.value + Math.max(0, Math.floor(left / CELL) - BESIDE);
  const to = Math.min(best.value, first.value + Math.ceil((left + wide) / CELL) + BESIDE);
  useEffect(() => {
    const soon = setTimeout(() => need(from, to), 40);
    return () => clearTimeout(soon);
  }, [from, to, changed]);
  useEffect(() => {
    const at = chosen.value;
    if (!at || at.newest || !strip.current) {
      return;
    }
    const x = (at.number - first.value) * CELL;
    const view = strip.current;
    if (x < view.scrollLeft || x > view.scrollLeft + view.clientWidth - CELL) {
      view.scrollLeft = x - view.clientWidth / 2;
    }
  }, [chosen.value]);

  const rows = useMemo(
    () => new Map(chains.value.map((chain, at) => [chain.para, at + 1])),
    [chains.value.map((chain) => chain.para).join()],
  );
  const shown = [];
  for (let at = from; at <= to; at++) {
    shown.push(at);
  }
  const scrolled = () => {
    const view = strip.current;
    atEnd.current = view.scrollLeft + view.clientWidth >= view.scrollWidth - CELL;
    setLeft(Math.round(view.scrollLeft / (CELL * 4)) * CELL * 4);
  };
  const way = useMemo(
    () => (followed.value ? journey(followed.value) : NONE),
    [followed.value, followed.value && changed],
  );
  const hits = useMemo(() => new Set(way.map((step) => step.hash || step.number)), [way]);
  const high = (chains.value.length + 1) * ROW + 20;
  return html`
    <section class="time" aria-label="Blocks along time">
      <div class="rows" style=${{ height: `${high}px` }}>
        <span>relay chain</span>
        ${chains.value.map(
          (chain) => html`
            <span key=${chain.para} title=${`parachain ${chain.para}`}>
              ${chain.para}${" "}
              <small>
                ${
                  chain.offline ? "offline" : publishesOnly(chain.para) ? "publisher" : "subscriber"
                }
              </small>
            </span>
          `,
        )}
      </div>
      <div
        class="strip"
        ref=${strip}
        tabindex="0"
        role="group"
        aria-label="Blocks along time; left and right move, up and down change the chain"
        onScroll=${scrolled}
        onKeyDown=${move}
      >
        <div
          class="sheet"
          style=${{ width: `${count * CELL + TOP}px`, height: `${high}px` }}
        >
          ${shown.map(
            (at) => html`
              <${Column}
                key=${at}
                number=${at}
                column=${columns.get(at)}
                rows=${rows}
                x=${(at - first.value) * CELL}
                chosen=${chosen.value?.number === at ? chosen.value : null}
                hits=${hits}
              />
            `,
          )}
          <${Way} steps=${way} rows=${rows} from=${from} to=${to} />
        </div>
      </div>
    </section>
    ${LEGEND}
  `;

  function move(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    const across = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const here = chosen.value || { number: best.value };
    const para =
      here.hash &&
      columns.get(here.number)?.candidates.find((each) => each.hash === here.hash)?.para;
    if (step !== undefined) {
      go(Math.min(Math.max(here.number + step, first.value), best.value), para);
    } else if (across) {
      const list = [undefined, ...chains.value.map((chain) => chain.para)];
      go(here.number, list[Math.min(Math.max(list.indexOf(para) + across, 0), list.length - 1)]);
    } else {
      return;
    }
    event.preventDefault();
  }

  function go(number, para) {
    choose(number, columns.get(number)?.candidates.findLast((each) => each.para === para)?.hash);
  }
}

class Column extends Component {
  shouldComponentUpdate(next) {
    return ["column", "rows", "x", "chosen", "hits"].some(
      (name) => next[name] !== this.props[name],
    );
  }

  render(props) {
    return drawn(props);
  }
}

// The way of the followed key: from its sender's row to the relay chain's, and from there to those that it reached.
function Way({ steps, rows, from, to }) {
  const lines = [];
  let sent = null;
  let written = null;
  const at = ({ number, para }) => [
    (number - from) * CELL + CELL / 2,
    TOP + (para === undefined ? 0 : rows.get(para) || 0) * ROW + 8,
  ];
  for (const step of steps) {
    const before = step.kind === "written" ? sent : step.kind === "delivered" ? written : null; // none past its removal
    if (before && step.number >= from && before.number <= to) {
      lines.push([...at(before), ...at(step)]);
    }
    if (step.kind === "sent") {
      sent = step;
    }
    if (step.kind === "written") {
      written = step;
    }
    if (step.kind === "expired") {
      written = null;
    }
  }
  if (!lines.length) {
    return null;
  }
  return html`
    <svg
      class="way"
      aria-hidden="true"
      style=${{ left: `${(from - first.value) * CELL}px` }}
      width=${(to - from + 1) * CELL}
      height=${(rows.size + 1) * ROW}
    >
      ${lines.map(
        ([a, b, c, d]) => html`
          <path d=${`M${a} ${b}L${c} ${d}`} />
        `,
      )}
    </svg>
  `;
}

function drawn({ number, column, rows, x, chosen, hits }) {
  const mark = (kind, here, hit) => `cell ${kind}${here ? " here" : ""}${hit ? " hit" : ""}`;
  const here = chosen;
  const seen = new Map();
  const several = (para) => column.candidates.filter((each) => each.para === para).length > 1;
  return html`
    <div class="column" style=${{ left: `${x}px` }}>
      <button
        type="button"
        tabindex="-1"
        class=${mark(
          column?.publishedCount ? "news" : "relay",
          here && !chosen.hash,
          hits.has(number),
        )}
        aria-label=${`relay block ${number}`}
        onClick=${() => choose(number)}
      ></button>
      ${(column?.candidates || []).map((each) => {
        const nth = seen.get(each.para) || 0;
        seen.set(each.para, nth + 1);
        const words = `parachain ${each.para}, block ${each.number} in relay block ${number}: ${each.verdict || (each.delivered ? `${each.delivered} delivered` : "nothing new")}`;
        return html`
          <button
            type="button"
            tabindex="-1"
            key=${each.hash + nth}
            class=${`${mark(kindOf(each), here && chosen.hash === each.hash, hits.has(each.hash))}${several(each.para) ? " half" : ""}`}
            title=${words}
            aria-label=${words}
            style=${{
              top: `${TOP + (rows.get(each.para) || 0) * ROW + Math.min(nth, 1) * 9}px`,
            }}
            onClick=${() => choose(number, each.hash)}
          >
            ${each.verdict ? "×" : ""}
          </button>
        `;
      })}
      ${
        number % 5 === 0
          ? html`
            <span class="tick" style=${{ top: `${TOP + (rows.size + 1) * ROW}px` }}>
              ${number}
            </span>
          `
          : null
      }
    </div>
  `;
}

// Blocks along time: a column a relay block, a row a chain. Only the columns in sight are drawn and
// asked for.

import { KINDS } from "../block/kinds.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../html.js";
import { choose } from "./choice.js";
import { Column } from "./column.js";
import { journey } from "./follow.js";
import { CELL, ROW, TOP } from "./grid.js";
import { best, chains, chosen, columns, first, followed, publishesOnly, version } from "./state.js";
import { need } from "./store.js";
import { Way } from "./way.js";

const BESIDE = 12;
const NONE = [];

const LEGEND = html`
  <p class="colours">
    ${Object.entries({ ...KINDS, hit: "the followed key" }).map(
      ([kind, words]) => html`
        <span>
          <i class=${`cell ${kind}`}>${kind === "refused" ? "×" : ""}</i>${words}
        </span>
      `,
    )}
  </p>
`;

const STEPS = {
  ArrowLeft: -1,
  ArrowRight: 1,
  Home: Number.NEGATIVE_INFINITY,
  End: Number.POSITIVE_INFINITY,
};

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
              <small>${role(chain)}</small>
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
    const step = STEPS[event.key];
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

function role(chain) {
  if (chain.offline) {
    return "offline";
  }
  return publishesOnly(chain.para) ? "publisher" : "subscriber";
}

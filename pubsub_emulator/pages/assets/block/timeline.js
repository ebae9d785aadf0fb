// Blocks along time: a column for each relay block, a row for each chain, a square for each
// candidate. Only the columns in sight are drawn. The page of a run and the live page both have it.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../html.js";
import { Column } from "./column.js";
import { CELL, ROW, TOP } from "./grid.js";
import { KINDS } from "./kinds.js";
import { moved, moves } from "./moves.js";

const BESIDE = 12; // columns on each side of the window that are drawn as well

// `first` and `last` are numbers of relay blocks, `rows` the chains: `{ id, note, title }`.
// `columnAt(number)` returns `{ publishes, squares }`, or nothing if the column is not known yet.
// `chosen` is a place (see moves.js), `hits` the names of marked squares, which `dims` the others;
// `hit` says in the legend what is marked. `onMove` and `onOpen` get the place that a key or a
// click leads to, `onSight` the first and last number that are drawn, again for each `version`. A
// `live` line follows its end. `over` draws on top of the squares.
export function Timeline(props) {
  const { first, last, rows, columnAt, chosen, hits, dims, hit, live, onSight, version } = props;
  const time = useRef(null);
  const strip = useRef(null);
  const [left, setLeft] = useState(0);
  const wide = useWidth(strip);
  const atEnd = useRef(live);
  const count = Math.max(last - first + 1, 0);
  useLayoutEffect(() => {
    if (atEnd.current) {
      strip.current.scrollLeft = strip.current.scrollWidth;
    }
  }, [count, wide]);
  const from = first + Math.max(0, Math.floor(left / CELL) - BESIDE);
  const to = Math.min(last, first + Math.ceil((left + wide) / CELL) + BESIDE);
  useEffect(() => {
    const soon = setTimeout(() => onSight?.(from, to), 40);
    return () => clearTimeout(soon);
  }, [from, to, version]);
  const ids = rows.map((row) => row.id).join();
  const places = useMemo(() => new Map(rows.map((row, at) => [row.id, at + 1])), [ids]);
  useEffect(() => {
    if (chosen && !chosen.newest) {
      const square = columnAt(chosen.number)?.squares.find((each) => each.name === chosen.name);
      bringInSight(strip.current, "Left", "Width", (chosen.number - first) * CELL, CELL);
      bringInSight(time.current, "Top", "Height", (places.get(square?.row) || 0) * ROW, ROW);
    }
  }, [chosen?.number, chosen?.name, first, ids]);
  const scrolled = () => {
    const view = strip.current;
    atEnd.current = live && view.scrollLeft + view.clientWidth >= view.scrollWidth - CELL;
    setLeft(Math.round(view.scrollLeft / (CELL * 4)) * CELL * 4);
  };
  const pressed = (event) => {
    if (moves(event.key)) {
      event.preventDefault();
      const place = moved(event.key, chosen || { number: last }, props);
      if (place) {
        props.onMove(place);
      }
    }
  };
  const height = `${(rows.length + 1) * ROW + 20}px`;
  return html`
    <section class="time" ref=${time} aria-label="Blocks along time">
      <${Names} rows=${rows} height=${height} />
      <div
        class=${`strip${dims ? " dim" : ""}`}
        ref=${strip}
        tabindex="0"
        role="group"
        aria-label="Blocks along time; left and right move, up and down change the chain"
        onScroll=${scrolled}
        onKeyDown=${pressed}
      >
        <div class="sheet" style=${{ width: `${count * CELL + TOP}px`, height }}>
          ${numbers(from, to).map(
            (at) => html`
              <${Column}
                key=${at}
                number=${at}
                column=${columnAt(at)}
                places=${places}
                x=${(at - first) * CELL}
                chosen=${chosen?.number === at ? chosen : null}
                hits=${hits}
                onOpen=${props.onOpen}
              />
            `,
          )}
          ${props.over?.(from, to, places)}
        </div>
      </div>
    </section>
    <${Legend} hit=${hit} />
  `;
}

// The width of an element, which follows the window.
function useWidth(element) {
  const [wide, setWide] = useState(600);
  useEffect(() => {
    const watch = new ResizeObserver(() => setWide(element.current.clientWidth));
    watch.observe(element.current);
    return () => watch.disconnect();
  }, []);
  return wide;
}

// Scrolls `view` along one side so that a part of it, `from` so many pixels on, is seen.
function bringInSight(view, side, length, from, size) {
  const before = view[`scroll${side}`];
  const inner = view[`client${length}`];
  if (from < before || from > before + inner - size) {
    view[`scroll${side}`] = from - inner / 2;
  }
}

function numbers(from, to) {
  return Array.from({ length: Math.max(to - from + 1, 0) }, (_, at) => from + at);
}

function Names({ rows, height }) {
  return html`
    <div class="rows" style=${{ height }}>
      <span>relay chain</span>
      ${rows.map(
        (row) => html`
          <span key=${row.id} title=${row.title}>${row.id} <small>${row.note}</small></span>
        `,
      )}
    </div>
  `;
}

function Legend({ hit }) {
  return html`
    <p class="colours">
      ${Object.entries({ ...KINDS, hit }).map(
        ([kind, words]) => html`
          <span>
            <i class=${`cell ${kind}`}>${kind === "refused" ? "×" : ""}</i>${words}
          </span>
        `,
      )}
    </p>
  `;
}

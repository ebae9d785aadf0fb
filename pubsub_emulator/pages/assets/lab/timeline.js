// The time line of the live page: columns are read when they come in sight, and a key is followed.

import { role, squareOf } from "../block/kinds.js";
import { Timeline } from "../block/timeline.js";
import { html, useMemo } from "../html.js";
import { choose, show } from "./choice.js";
import { journey } from "./follow.js";
import { best, chains, chosen, columns, first, followed, publishesOnly, version } from "./state.js";
import { need } from "./store.js";
import { Way } from "./way.js";

const NONE = [];
const drawn = new WeakMap(); // columns as the time line has them, by columns as the node has them

export function LiveTimeline() {
  const changed = version.value;
  const way = useMemo(
    () => (followed.value ? journey(followed.value) : NONE),
    [followed.value, followed.value && changed],
  );
  const hits = useMemo(() => new Set(way.map((step) => step.hash || step.number)), [way]);
  const at = chosen.value;
  return html`
    <${Timeline}
      first=${first.value}
      last=${best.value}
      rows=${chains.value.map(row)}
      columnAt=${columnAt}
      chosen=${at && { number: at.number, name: at.hash, newest: at.newest }}
      hits=${hits}
      hit="the followed key"
      live=${true}
      version=${changed}
      onSight=${need}
      onMove=${({ number, name }) => choose(number, name)}
      onOpen=${({ number, name }) => show(number, name)}
      over=${(from, to, places) => html`
        <${Way} steps=${way} places=${places} from=${from} to=${to} />
      `}
    />
  `;
}

function row(chain) {
  const note = chain.offline ? "offline" : role(!publishesOnly(chain.para));
  return { id: chain.para, note, title: `parachain ${chain.para}, ${note}` };
}

function columnAt(number) {
  const column = columns.get(number);
  if (column && !drawn.has(column)) {
    drawn.set(column, {
      publishes: column.publishedCount > 0,
      squares: column.candidates.map((each) =>
        squareOf({ ...each, name: each.hash, chain: each.para, relay: number }),
      ),
    });
  }
  return drawn.get(column);
}

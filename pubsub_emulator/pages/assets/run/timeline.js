// The time line of the page of a run, which its search, its keys and its address lead.

import { role, squareOf } from "../block/kinds.js";
import { moved, nearest } from "../block/moves.js";
import { Timeline } from "../block/timeline.js";
import { html, render } from "../html.js";

export class RunTimeline {
  // `go` gets the name of a block that was chosen: `c` and a candidate's place in the run, or `r`
  // and a relay block's number.
  constructor(run, host, go) {
    Object.assign(this, { run, host, go });
    this.columns = columnsOf(run);
    this.chains = [];
    this.hits = new Set();
    this.dims = false;
    this.chosen = null;
  }

  // Has a row for each of these chains.
  show(chains) {
    this.chains = chains;
    this.#draw();
  }

  // Marks a block and brings it in sight.
  select(name) {
    this.chosen = this.#place(name);
    this.#draw();
  }

  // Dims all squares but those that a search found; `null` ends that.
  light(found) {
    const marks = (found || []).map((name) => this.#place(name));
    this.hits = new Set(marks.map((place) => place.name ?? place.number));
    this.dims = found !== null;
    this.#draw();
  }

  // Goes where a key leads.
  move(key) {
    this.#open(this.chosen && moved(key, this.chosen, this.#line()));
  }

  // Goes to a chain's block that is nearest in time to a relay block.
  goNearest(chain, relay) {
    this.#open(nearest(chain.id, relay, this.#line()));
  }

  #open(place) {
    if (place) {
      this.go(place.name ?? `r${place.number}`);
    }
  }

  #place(name) {
    const block = this.run.candidate(name);
    return block ? { number: block.relay, name } : { number: Number(name.slice(1)) };
  }

  #line() {
    const { relay } = this.run;
    return {
      first: relay.length ? relay[0].number : 1,
      last: relay.length ? relay.at(-1).number : 0,
      rows: this.chains.map((chain) => this.#row(chain)),
      columnAt: (number) => this.columns.get(number),
    };
  }

  #row(chain) {
    const does = role(chain.subscribes);
    const title = `parachain ${this.run.chainName(chain.id)}, ${does}`;
    return { id: chain.id, note: chain.name || does, title };
  }

  #draw() {
    const open = (place) => this.#open(place);
    render(
      html`
        <${Timeline}
          ...${this.#line()}
          chosen=${this.chosen}
          hits=${this.hits}
          dims=${this.dims}
          hit="found by the search"
          live=${false}
          onMove=${open}
          onOpen=${open}
        />
      `,
      this.host,
    );
  }
}

// What the time line has of each relay block: all candidates, also of chains that are not shown.
function columnsOf(run) {
  const columns = new Map();
  for (const { number, keys } of run.relay) {
    columns.set(number, { publishes: keys.length > 0, squares: [] });
  }
  for (const block of run.candidates) {
    columns.get(block.relay)?.squares.push(
      squareOf({
        ...block,
        name: `c${block.at}`,
        chain: run.chainName(block.para),
        delivered: block.keys.length,
      }),
    );
  }
  return columns;
}

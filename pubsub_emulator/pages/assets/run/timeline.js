// Blocks along time: a column for each relay block, a row for each chain, a square for each
// candidate.

import { KINDS, kindOf } from "../block/kinds.js";
import { html, render } from "../html.js";
import { deliveries } from "../parts.js";
import { counted, escaped } from "../words.js";

const CELL = 12;
const SIDE = 9;
const TOP = 7; // above the row of the relay chain

function cross(x, y) {
  const side = SIDE - 4;
  return `<path d="M${x + 2} ${y + 2}l${side} ${side}m0-${side}l-${side} ${side}"/>`;
}

function Legend() {
  return html`
    <p class="colours">
      ${Object.entries(KINDS).map(([kind, words]) => {
        const shape =
          `<g class="${kind}"><rect class="${kind}" x="1" y="1" width="${SIDE}"` +
          ` height="${SIDE}" rx="2"/>${kind === "refused" ? cross(1, 1) : ""}</g>`;
        return html`
          <span>
            <svg width="12" height="12" dangerouslySetInnerHTML=${{ __html: shape }}></svg>${words}
          </span>
        `;
      })}
    </p>
  `;
}

export class Timeline {
  constructor(run, host, go) {
    Object.assign(this, { run, host, go });
    this.first = run.relay.length ? run.relay[0].number : 0;
    render(
      html`
        <div class="names"></div>
        <div
          class="strip"
          tabindex="0"
          role="group"
          aria-label="Blocks along time; arrow keys move from block to block"
        ></div>
        <${Legend} />
      `,
      host,
    );
    this.names = host.querySelector(".names");
    this.strip = host.querySelector(".strip");
    this.strip.addEventListener("click", (event) => {
      const mark = event.target.closest("[data-c],[data-r]");
      if (mark) {
        go(mark.dataset.c === undefined ? `r${mark.dataset.r}` : `c${mark.dataset.c}`);
      }
    });
  }

  show(chains) {
    this.chains = chains;
    const { run, first } = this;
    let y = TOP + 20;
    let marks = "";
    let labels = "";
    for (const number of run.relayAt.keys()) {
      const x = (number - first) * CELL;
      const kind = run.relayAt.get(number).keys.length ? "relay news" : "relay";
      marks +=
        `<rect class="${kind}" data-r="${number}" x="${x + 1}" y="${TOP}"` +
        ` width="${SIDE}" height="${SIDE}" rx="2"><title>relay block ${number}</title></rect>`;
      if (number % 10 === 0) {
        marks += `<text x="${x + 5}" y="${TOP + 18}" text-anchor="middle">${number}</text>`;
      }
    }
    labels += `<span style="top:${TOP - 4}px" title="relay chain">relay chain</span>`;
    for (const chain of chains) {
      const counts = new Map();
      let most = 1;
      y += 4;
      for (const block of chain.blocks) {
        const count = counts.get(block.relay) || 0;
        counts.set(block.relay, count + 1);
        most = Math.max(most, count + 1);
        marks += this.square(block, (block.relay - first) * CELL + 1, y + count * (SIDE + 2));
      }
      const label = escaped(run.chainName(chain.id));
      labels += `<span style="top:${y - 3}px" title="${label}">${label}</span>`;
      y += most * (SIDE + 2);
    }
    const width = run.relay.length * CELL + 4;
    this.names.innerHTML = labels;
    this.names.style.minHeight = `${y + 6}px`;
    this.strip.innerHTML =
      `<svg width="${width}" height="${y + 6}" role="img"` +
      ` aria-label="${counted(run.candidates.length, "candidate")}">${marks}</svg>`;
    this.squares = new Map();
    for (const mark of this.strip.querySelectorAll("[data-c],[data-r]")) {
      this.squares.set(
        mark.dataset.c === undefined ? `r${mark.dataset.r}` : `c${mark.dataset.c}`,
        mark,
      );
    }
  }

  square(block, x, y) {
    const count = block.keys.length;
    const delivered = count ? deliveries(count) : KINDS.quiet;
    const chain = this.run.chainName(block.chain.id);
    const words = `${chain}, block ${block.number}: ${block.verdict || delivered}`;
    const body = `<rect x="${x}" y="${y}" width="${SIDE}" height="${SIDE}" rx="2"/>`;
    const mark = block.verdict ? cross(x, y) : "";
    const title = `<title>${escaped(words)}</title>`;
    const kind = kindOf(block.verdict, block.stopped, count);
    return `<g class="${kind}" data-c="${block.at}">${title}${body}${mark}</g>`;
  }

  select(name) {
    this.selected?.classList.remove("here");
    const mark = this.squares.get(name);
    this.selected = mark;
    if (!mark) {
      return;
    }
    mark.classList.add("here");
    const box = mark.getBBox();
    const view = this.strip;
    if (box.x < view.scrollLeft + 20 || box.x > view.scrollLeft + view.clientWidth - 40) {
      view.scrollLeft = box.x - view.clientWidth / 2;
    }
  }

  // Dims all squares but those that a search found; none given ends that.
  light(found) {
    this.strip.classList.toggle("dim", found !== null);
    for (const mark of this.strip.querySelectorAll(".hit")) {
      mark.classList.remove("hit");
    }
    if (found) {
      for (const name of found) {
        this.squares.get(name)?.classList.add("hit");
      }
    }
  }
}

// The name of a chain's block that is nearest in time; empty if the chain has none.
export function nearest(chain, relay) {
  let best = null;
  for (const block of chain.blocks) {
    if (!best || Math.abs(block.relay - relay) < Math.abs(best.relay - relay)) {
      best = block;
    }
  }
  return best ? `c${best.at}` : "";
}

// First steps for who sees the page for the first time: acts that end with a cheat that is caught.

import { html, useRef } from "../html.js";
import { signal } from "../vendor/signals.js";
import { fill } from "./acts.js";
import { reveal } from "./reveal.js";
import {
  best,
  columns,
  dev,
  first,
  followed,
  publishesOnly,
  setting,
  undos,
  version,
} from "./state.js";
import { busy, HAPPENINGS, running, until } from "./steps.js";
import { onColumn } from "./store.js";

const KEY = "price";
const MOST_BLOCKS = 40;
// Of each step that was done: the relay block that has it, its hash once it is built, its undo.
const marks = signal([]);

const BEFORE =
  "Nothing is built until you ask. Each step is an act that you can change and repeat in the" +
  " forms below; Undo takes the last one back.";
const AFTER =
  "Now try another cheat, fork from a block before it under Branches and compare, or save all of" +
  " it under Session.";

// Each step: its title, what it does in this network, its button, and the work, which returns
// whether it is done.
const STEPS = [
  [
    "Publish",
    ({ publisher }) =>
      `Parachain ${publisher} writes ${KEY} = 7.42 on the relay chain, valid for 40 blocks.`,
    "Publish it",
    async ({ publisher }) =>
      remembered(await fill("publish", { para: publisher, key: KEY, value: "7.42", ttl: "40" })),
  ],
  [
    "Subscribe",
    ({ subscriber }) => `Parachain ${subscriber} asks for that key.`,
    "Subscribe to it",
    ({ publisher, subscriber }) => fill("subscribe", { para: subscriber, publisher, keys: KEY }),
  ],
  [
    "Deliver",
    ({ subscriber }) =>
      `Blocks are built until ${subscriber} has the value, with a proof.` +
      " The orange line in the time line is its way.",
    "Build blocks",
    ({ publisher }) => {
      followed.value = { publisher, key: known };
      return until(
        [
          `${KEY} delivered`,
          (column) =>
            given(column) && column.candidates.find((each) => each.hash === given(column).block),
          "",
        ],
        MOST_BLOCKS,
      );
    },
  ],
  [
    "Cheat",
    ({ subscriber }) =>
      `The next collator of ${subscriber} is told to leave a node out of its proof.`,
    "Give it the cheat",
    ({ subscriber }) => fill("cheat", { para: subscriber, strategy: "omit-node" }),
  ],
  [
    "Caught",
    () =>
      "Blocks are built until one is refused." +
      " Below it stand the check that failed and the proof, with the missing node in red.",
    "Build blocks",
    () => until(HAPPENINGS.refusal, MOST_BLOCKS),
  ],
];

let known = null;
const given = (column) => column.deliveries.find((each) => each.key === known);
const remembered = (answer) => {
  known = answer?.action.key ?? known;
  return answer;
};

// Whether a step is part of the branch that the network is on: in a block of it, or waiting for the
// next one.
function holds({ number, hash, undo }) {
  if (!hash) {
    return number === best.value + 1 && undos.value.some((each) => each.id === undo);
  }
  const held = columns.get(number);
  return number <= best.value && (!held || held.hash === hash);
}

onColumn(({ number, hash }) => {
  const waits = (mark) =>
    !mark.hash && mark.number === number && undos.value.some((each) => each.id === mark.undo);
  marks.value = marks.value.map((mark) => (waits(mark) ? { ...mark, hash } : mark));
});

export function Guide() {
  const fresh = useRef(null);
  if (!dev.value || !setting.value) {
    return null;
  }
  const publisher = setting.value.publishers[0]?.para;
  const subscriber = setting.value.parachains.find((each) => !publishesOnly(each.para))?.para;
  if (publisher === undefined || subscriber === undefined) {
    return null;
  }
  fresh.current ??= best.value <= first.value + 1;
  const places = { publisher, subscriber };
  const broken = marks.value.findIndex((mark) => !holds(mark));
  const done = broken < 0 ? marks.value.length : broken;
  const go = async (at) => {
    const began = best.value;
    if (!(await STEPS[at][3](places))) {
      return;
    }
    const builds = at === 2 || at === 4;
    const number = builds ? best.value : began + 1;
    marks.value = [
      ...marks.value.slice(0, at),
      { number, hash: columns.get(number)?.hash, undo: undos.value.at(-1)?.id },
    ];
    if (builds && innerWidth <= 1000) {
      reveal("detail");
    }
  };
  return html`
    <details class="guide" data-told=${version.value} open=${fresh.current}>
      <summary>First steps: see a value delivered, and a cheat caught</summary>
      <ol>
        ${STEPS.map(
          ([title, words, button], at) => html`
            <li class=${placed(at, done)}>
              <h3>
                ${at + 1}. ${title}
                ${at < done ? ", done" : ""}
              </h3>
              <p>${words(places)}</p>
              <button
                type="button"
                class=${at === done ? "primary" : ""}
                disabled=${at !== done || busy.value || running.value}
                onClick=${() => go(at)}
              >
                ${button}
              </button>
            </li>
          `,
        )}
      </ol>
      <p class="hint">
        ${done < STEPS.length ? BEFORE : AFTER}
      </p>
    </details>
  `;
}

// The class of a step.
function placed(at, done) {
  if (at < done) {
    return "did";
  }
  return at === done ? "now" : "";
}

// The chosen block: the user's choice, or the newest one.

import { reveal } from "./reveal.js";
import { best, chosen, columns, first } from "./state.js";

let pinned = false; // whether the user has chosen another block than the newest
let row; // the parachain of the chosen candidate

export function chooseFirst() {
  const newest = [...columns.values()].sort((a, b) => b.number - a.number);
  for (const column of newest) {
    const found =
      column.candidates.find((each) => each.verdict) ||
      column.candidates.find((each) => each.delivered);
    if (!found) {
      continue;
    }
    choose(column.number, found.hash);
    pinned = false;
    return;
  }
  follow();
}

// The blocks from a number on are gone, and the choice with them.
export function rewind(number) {
  pinned &&= chosen.value.number < number;
}

export function choose(number, hash) {
  pinned = number !== best.value;
  row = hash && columns.get(number)?.candidates.find((each) => each.hash === hash)?.para;
  chosen.value = { number, hash };
}

// Chooses a block and, where its card is out of sight, brings that into view.
export function show(number, hash) {
  choose(number, hash);
  if (innerWidth <= 1000) {
    reveal("detail");
  }
}

// Chooses the newest block, unless the user has chosen another.
export function follow() {
  if (pinned) {
    return;
  }
  const number = best.value;
  const hash = columns.get(number)?.candidates.findLast((each) => each.para === row)?.hash;
  chosen.value = number < first.value ? null : { number, hash, newest: true };
}

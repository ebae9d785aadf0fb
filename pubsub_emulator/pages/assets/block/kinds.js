// The kinds of squares in a time line, with their words.

import { deliveries } from "../parts.js";

export const KINDS = {
  delivers: "delivers",
  quiet: "nothing new",
  stopped: "stopped at the budget",
  refused: "refused",
  news: "relay block that publishes",
};

// The square of a candidate. It is chosen by its `name`; `chain` is the chain's id and name.
export function squareOf({ name, para, chain, number, relay, verdict, stopped, delivered }) {
  const outcome = verdict || (delivered ? deliveries(delivered) : KINDS.quiet);
  return {
    name,
    row: para,
    kind: kindOf(verdict, stopped, delivered),
    words: `parachain ${chain}, block ${number} in relay block ${relay}: ${outcome}`,
  };
}

function kindOf(verdict, stopped, delivered) {
  if (verdict) {
    return "refused";
  }
  if (stopped) {
    return "stopped";
  }
  return delivered ? "delivers" : "quiet";
}

// What a chain does, as its row says it.
export function role(subscribes) {
  return subscribes ? "subscriber" : "publisher";
}

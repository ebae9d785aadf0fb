// The kinds of squares in a time line, with their words.

export const KINDS = {
  delivers: "delivers",
  quiet: "nothing new",
  stopped: "stopped at the budget",
  refused: "refused",
  news: "relay block that publishes",
};

// The kind of a candidate with that verdict, that stopped at the budget or not, with so many
// deliveries.
export function kindOf(verdict, stopped, delivered) {
  if (verdict) {
    return "refused";
  }
  if (stopped) {
    return "stopped";
  }
  return delivered ? "delivers" : "quiet";
}

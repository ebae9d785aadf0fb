// Where a block's bytes went (PS-70).

const SHARES = [
  ["static", "static keys", "in the proof, and free"],
  ["requested", "requested keys", "in the proof, and free unless the runtime charges them"],
  ["top", "top paths", "the way to each publisher's root"],
  ["child", "child nodes", "the way to changed keys"],
  ["value", "values", "detached values"],
  ["rows", "delivered rows", "charge for reading what was last delivered"],
  ["cache", "cache reads", "charge for reading the cache"],
  ["maps", "maps", "charge for the two maps read before the walk"],
];

function shares(ledger) {
  const sum = (at) => ledger.publishers.reduce((total, row) => total + row[at], 0);
  return { static: ledger.static, requested: ledger.requested, top: sum(2), child: sum(3), value: sum(4), rows: sum(5), cache: sum(6), maps: ledger.maps };
}

function ledgerView(run, ledger, refused) {
  if (!ledger) return element("p", { class: "hint" }, "The relay chain has no such block: nothing could be read, and nothing was counted.");
  const parts = shares(ledger);
  const whole = Object.values(parts).reduce((a, b) => a + b, 0);
  const bar = element("div", { class: "bar", role: "img", "aria-label": "shares of the block's bytes" });
  const key = element("ul", { class: "key" });
  for (const [name, words, why] of SHARES) {
    if (!parts[name]) continue;
    bar.append(element("i", { class: `k-${name}`, style: `flex-grow:${parts[name]}`, title: `${words}: ${bytes(parts[name])}` }));
    key.append(element("li", { title: why }, element("i", { class: `k-${name}` }), `${words} `, element("b", {}, bytes(parts[name])), ` ${percent(parts[name], whole)}`));
  }
  const unchanged = ledger.publishers.filter((row) => row[1] === "unchanged");
  const unread = unchanged.reduce((total, row) => total + Math.max(row[8] - row[2], 0), 0);
  const cached = ledger.publishers.reduce((total, row) => total + row[7], 0);
  return element(
    "div",
    {},
    refused ? element("p", { class: "hint" }, "The block is refused; this is how far reading its proof came.") : null,
    bar,
    key,
    facts([
      ["budget", `${bytes(ledger.used)} used of ${bytes(ledger.budget)} (${percent(ledger.used, ledger.budget)}), ${bytes(Math.max(ledger.budget - ledger.used, 0))} unused; messages take ${bytes(ledger.messages)} beside it`],
      ["proof", `${plural(ledger.nodes, "node")}, ${bytes(ledger.proof)}; the full proof of all subscribed keys: ${bytes(ledger.full)}${refused ? "" : `, so pruning saves ${percent(ledger.full - ledger.proof, ledger.full)}`}`],
      ["unchanged roots", unchanged.length ? `${plural(unchanged.length, "publisher")} unread, ${bytes(unread)} saved` : "none"],
      ["cache", cached ? `${bytes(cached)} of nodes came from the cache` : "no nodes came from the cache"],
      ["own state read", `${bytes(ledger.ownState)} added to the parachain's storage proof, ${bytes(ledger.cacheState)} of it by the cache`],
      ["weight", refused ? null : `${(ledger.weight[0] / 1e6).toFixed(1)} µs of ref_time, ${bytes(ledger.weight[1])} of proof_size`],
    ]),
    ledger.publishers.length ? publishersTable(run, ledger) : null,
  );
}

function publishersTable(run, ledger) {
  const head = ["publisher", "state", "top path", "child nodes", "values", "rows", "cache", "from cache", "full proof"];
  const rows = ledger.publishers.map(([para, state, ...figures]) => [run.chainName(para), state, ...figures.map((each) => (each ? bytes(each) : "·"))]);
  return fold(`By publisher (${rows.length})`, table(head, rows, 2), rows.length <= 8);
}

function facts(rows) {
  const list = element("dl", { class: "facts" });
  for (const [name, value] of rows) if (value !== null && value !== undefined) list.append(element("dt", {}, name), element("dd", {}, value));
  return list;
}

function table(head, rows, figuresFrom = head.length) {
  const side = (at) => (at >= figuresFrom ? "figure" : null);
  const body = element("tbody");
  for (const row of rows) {
    const line = element("tr");
    row.forEach((cell, at) => line.append(element("td", { class: side(at), "data-label": head[at] }, cell)));
    body.append(line);
  }
  const top = element("tr");
  head.forEach((cell, at) => top.append(element("th", { class: side(at), scope: "col" }, cell)));
  return element("div", { class: "scroll", tabindex: "0" }, element("table", {}, element("thead", {}, top), body));
}

function fold(title, content, open = true) {
  const made = element("details", {}, element("summary", {}, title), content);
  made.open = open;
  return made;
}

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
  return {
    static: ledger.static,
    requested: ledger.requested,
    top: sum(2),
    child: sum(3),
    value: sum(4),
    rows: sum(5),
    cache: sum(6),
    maps: ledger.maps,
  };
}

function ledgerView(run, ledger, refused) {
  if (!ledger) {
    return element(
      "p",
      { class: "hint" },
      "The relay chain has no such block: nothing could be read, and nothing was counted.",
    );
  }
  const parts = shares(ledger);
  const whole = Object.values(parts).reduce((a, b) => a + b, 0);
  const bar = element("div", {
    class: "bar",
    role: "img",
    "aria-label": "shares of the block's bytes",
  });
  const key = element("ul", { class: "key" });
  for (const [name, words, why] of SHARES) {
    if (!parts[name]) {
      continue;
    }
    bar.append(
      element("i", {
        class: `k-${name}`,
        style: `flex-grow:${parts[name]}`,
        title: `${words}: ${bytes(parts[name])}`,
      }),
    );
    key.append(
      element(
        "li",
        { title: why },
        element("i", { class: `k-${name}` }),
        `${words} `,
        element("b", {}, bytes(parts[name])),
        ` ${percent(parts[name], whole)}`,
      ),
    );
  }
  return element(
    "div",
    {},
    refused
      ? element(
          "p",
          { class: "hint" },
          "The block is refused; this is how far reading its proof came.",
        )
      : null,
    bar,
    key,
    facts(figures(ledger, refused)),
    ledger.publishers.length ? publishersTable(run, ledger) : null,
  );
}

// The rows of figures below the bar.
function figures(ledger, refused) {
  const unchanged = ledger.publishers.filter((row) => row[1] === "unchanged");
  const unread = unchanged.reduce((total, row) => total + Math.max(row[8] - row[2], 0), 0);
  const cached = ledger.publishers.reduce((total, row) => total + row[7], 0);
  const used = `${bytes(ledger.used)} used of ${bytes(ledger.budget)}`;
  const left = bytes(Math.max(ledger.budget - ledger.used, 0));
  const saved = percent(ledger.full - ledger.proof, ledger.full);
  return [
    [
      "budget",
      `${used} (${percent(ledger.used, ledger.budget)}), ${left} unused;` +
        ` messages take ${bytes(ledger.messages)} beside it`,
    ],
    [
      "proof",
      `${plural(ledger.nodes, "node")}, ${bytes(ledger.proof)};` +
        ` the full proof of all subscribed keys: ${bytes(ledger.full)}` +
        (refused ? "" : `, so pruning saves ${saved}`),
    ],
    [
      "unchanged roots",
      unchanged.length
        ? `${plural(unchanged.length, "publisher")} unread, ${bytes(unread)} saved`
        : "none",
    ],
    [
      "cache",
      cached ? `${bytes(cached)} of nodes came from the cache` : "no nodes came from the cache",
    ],
    [
      "own state read",
      `${bytes(ledger.ownState)} added to the parachain's storage proof,` +
        ` ${bytes(ledger.cacheState)} of it by the cache`,
    ],
    [
      "weight",
      refused
        ? null
        : `${(ledger.weight[0] / 1e6).toFixed(1)} µs of ref_time,` +
          ` ${bytes(ledger.weight[1])} of proof_size`,
    ],
  ];
}

function publishersTable(run, ledger) {
  const head = [
    "publisher",
    "state",
    "top path",
    "child nodes",
    "values",
    "rows",
    "cache",
    "from cache",
    "full proof",
  ];
  const rows = ledger.publishers.map(([para, state, ...figures]) => [
    run.chainName(para),
    state,
    ...figures.map((each) => (each ? bytes(each) : "·")),
  ]);
  return fold(`By publisher (${rows.length})`, table(head, rows, 2), rows.length <= 8);
}

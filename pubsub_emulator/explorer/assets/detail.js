// What is shown of a candidate that was chosen.

async function candidateView(run, block, go) {
  const detail = await run.detail(block);
  const { chain } = block;
  const parent = detail.parent || parentHash(block);
  const verdict = block.verdict
    ? element("span", { class: "badge refused" }, block.verdict)
    : element("span", { class: "badge valid" }, "valid");
  const head = element(
    "div",
    { class: "title" },
    element("h2", {}, `${run.chainName(chain.id)} · block ${block.number} `, verdict),
    element("div", { class: "steps" }, stepButton(block, -1, go), stepButton(block, 1, go)),
  );
  const relay = run.relayAt.get(block.relay);
  const about = facts([
    [
      "judged in",
      relay
        ? link(`relay block ${block.relay}`, () => go(`r${block.relay}`))
        : `relay block ${block.relay}`,
    ],
    ["relay parent", `block ${block.parent}, storage root ${short(detail.relayRoot)}`],
    [
      "slot",
      `${block.slot}, turn of collator ${block.author + 1} of ${chain.collators.length},` +
        ` ${short(chain.collators[block.author] || "")}`,
    ],
    ["hash", `0x${block.hash}`],
    ["parent", `0x${parent}`],
    ["state root", `0x${detail.root}`],
    [
      "messages",
      detail.messages[0] + detail.messages[1]
        ? `${detail.messages[0]} downward, ${detail.messages[1]} horizontal`
        : null,
    ],
    ["cache policy", chain.subscribes ? chain.cache : null],
  ]);
  const parts = block.verdict ? [head, evidence(run, block, detail)] : [head];
  if (block.stopped) {
    parts.push(
      note("The walk stopped at the budget: the cursor is where the next block continues."),
    );
  }
  parts.push(section(`Proof: ${plural(block.nodes, "node")}`, trieView(run, detail)));
  parts.push(
    section("Where its bytes went", ledgerView(run, detail.ledger, Boolean(block.verdict))),
  );
  if (detail.deliveries?.length) {
    parts.push(
      section(
        `Deliveries: ${detail.deliveries.length.toLocaleString("en")}`,
        deliveries(run, detail.deliveries),
      ),
    );
  }
  if (detail.changes) {
    parts.push(section("What it wrote", changes(detail.changes)));
  }
  if (detail.events?.length) {
    parts.push(section(`Events: ${detail.events.length}`, lines(detail.events)));
  }
  parts.push(section("The block", about));
  return element("article", { "data-block": `c${block.at}` }, ...parts);
}

// The hash of the newest valid block before this one, which may be from before the record starts.
function parentHash(block) {
  for (let at = block.place - 1; at >= 0; at--) {
    const before = block.chain.blocks[at];
    if (!before.verdict) {
      return before.hash;
    }
  }
  return block.chain.first;
}

function evidence(run, block, detail) {
  const list = element("ol", { class: "evidence" });
  for (const [verdict, words, subjects] of detail.evidence) {
    const item = element(
      "li",
      {},
      element("b", {}, verdict),
      ` ${run.verdicts[verdict] || ""}`,
      element("p", {}, words),
    );
    if (subjects.length) {
      item.append(
        fold(
          `About ${plural(subjects.length, "string")} of bytes`,
          lines(subjects.slice(0, MOST_ROWS).map((each) => `0x${each}`)),
          subjects.length <= 2,
        ),
      );
    }
    list.append(item);
  }
  const cheat = block.strategy
    ? element(
        "p",
        { class: "hint" },
        `The network was told to have this author cheat: ${block.strategy}.`,
      )
    : null;
  return element(
    "section",
    { class: "card refusal" },
    element("h3", {}, "Why it was refused"),
    list,
    cheat,
  );
}

function deliveries(run, rows) {
  const shown = rows.slice(0, MOST_ROWS).map(([key, size, value, ttl, failed]) => {
    const { para, name } = run.keyName(key);
    if (size === null) {
      return [run.chainName(para), name, "removed", "", "", ttl];
    }
    const what = failed ? "updated, handler failed" : "updated";
    return [run.chainName(para), name, what, value, bytes(size), ttl];
  });
  return more(rows.length, table(["publisher", "key", "", "value", "size", "lifetime"], shown));
}

function changes(rows) {
  const cells = (found) =>
    found.map(([item, where, before, after]) => [
      item.replace(".", "​."),
      where,
      before || "–",
      after || "–",
    ]);
  const head = ["storage item", "of", "before", "after"];
  const remembered = rows.filter((row) => !row[4]);
  const kept = rows.filter((row) => row[4]);
  return element(
    "div",
    {},
    remembered.length
      ? table(head, cells(remembered))
      : element("p", { class: "hint" }, "Nothing but the block's own bookkeeping."),
    kept.length
      ? fold(`Bookkeeping of every block (${kept.length})`, table(head, cells(kept)), false)
      : null,
  );
}

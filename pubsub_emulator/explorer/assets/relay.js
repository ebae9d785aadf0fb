// What is shown of a relay block that was chosen.

const FEW_KEYS = 12;

async function relayView(run, number, go) {
  const block = run.relayAt.get(number);
  const detail = await run.relayDetail(block);
  const judged = run.candidates.filter((each) => each.relay === number);
  const names = block.keys.map((each) => run.keyName(each).name);
  const many = names.length > FEW_KEYS;
  const list = element("ul", { class: "links" });
  for (const each of judged) {
    const label = `${run.chainName(each.chain.id)} · block ${each.number}`;
    list.append(
      element(
        "li",
        {},
        link(label, () => go(`c${each.at}`)),
        outcome(each),
      ),
    );
  }
  return element(
    "article",
    { "data-block": `r${number}` },
    element("div", { class: "title" }, element("h2", {}, `Relay block ${number}`)),
    facts([
      ["hash", `0x${block.hash}`],
      ["state root", `0x${block.root}`],
      ["published", many ? plural(names.length, "key") : names.join(", ") || "nothing"],
    ]),
    many ? section(`Published: ${plural(names.length, "key")}`, lines(names)) : null,
    section(
      `Candidates: ${judged.length}`,
      judged.length ? list : element("p", { class: "hint" }, "None was judged in this block."),
    ),
    detail.messages.length
      ? section(`Upward messages: ${detail.messages.length}`, lines(detail.messages))
      : null,
    detail.events.length ? section(`Events: ${detail.events.length}`, lines(detail.events)) : null,
  );
}

// The verdict of a refused candidate, or what a valid one was delivered.
function outcome(candidate) {
  if (candidate.verdict) {
    return element("span", { class: "badge refused" }, candidate.verdict);
  }
  const count = candidate.keys.length;
  return count ? ` ${plural(count, "delivery", "deliveries")}` : null;
}

// Parts that views are made of: sections, tables, lists, links.

const MOST_ROWS = 200;

function facts(rows) {
  const list = element("dl", { class: "facts" });
  for (const [name, value] of rows) {
    if (value !== null && value !== undefined) {
      list.append(element("dt", {}, name), element("dd", {}, value));
    }
  }
  return list;
}

function table(head, rows, figuresFrom = head.length) {
  const side = (at) => (at >= figuresFrom ? "figure" : null);
  const body = element("tbody");
  for (const row of rows) {
    const line = element("tr");
    for (const [at, cell] of row.entries()) {
      line.append(element("td", { class: side(at), "data-label": head[at] }, cell));
    }
    body.append(line);
  }
  const top = element("tr");
  for (const [at, cell] of head.entries()) {
    top.append(element("th", { class: side(at), scope: "col" }, cell));
  }
  return element(
    "div",
    { class: "scroll", tabindex: "0" },
    element("table", {}, element("thead", {}, top), body),
  );
}

function fold(title, content, open = true) {
  const made = element("details", {}, element("summary", {}, title), content);
  made.open = open;
  return made;
}

function lines(texts) {
  const list = element("ul", { class: "lines" });
  for (const text of texts.slice(0, MOST_ROWS)) {
    list.append(element("li", {}, text));
  }
  return more(texts.length, element("div", { class: "scroll tall", tabindex: "0" }, list));
}

function more(count, shown) {
  return count > MOST_ROWS
    ? element(
        "div",
        {},
        shown,
        element(
          "p",
          { class: "hint" },
          `${(count - MOST_ROWS).toLocaleString("en")} more are not shown.`,
        ),
      )
    : shown;
}

function section(title, ...content) {
  return element("section", { class: "card" }, element("h3", {}, title), ...content);
}

function note(text) {
  return element("p", { class: "note" }, text);
}

function link(text, act) {
  return element("button", { type: "button", class: "link", onclick: act }, text);
}

function stepButton(block, by, go) {
  const other = block.chain.blocks[block.place + by];
  const attributes = {
    type: "button",
    "aria-label": by < 0 ? "Block before" : "Block after",
    onclick: () => other && go(`c${other.at}`),
  };
  if (!other) {
    attributes.disabled = "";
  }
  return element("button", attributes, icon(by < 0 ? "M10 3 5 8l5 5" : "M6 3l5 5-5 5"));
}

function icon(path) {
  const made = element("span", { class: "icon" });
  made.innerHTML =
    '<svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">' +
    `<path d="${path}" fill="none" stroke="currentColor" stroke-width="1.8"/></svg>`;
  return made;
}

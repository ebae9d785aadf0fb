// A block's input from the relay chain besides its proof: requested keys, messages, headers.

import { html } from "../html.js";
import { More, Section, Table } from "../parts.js";
import { size } from "../words.js";

const LISTS = {
  requested: {
    title: "Requested keys",
    none: "The runtime requests no keys besides its subscriptions.",
    head: ["key", "proven to be"],
    cells: (rows) => rows,
  },
  messages: {
    title: "Messages taken in",
    none: "No message was waiting, or none was taken in.",
    head: ["from", "sent at", "there", "size", "message or hash"],
    cells: (rows) =>
      rows.map(([from, at, how, length, words]) => [
        from,
        at,
        how,
        length < 0 ? "–" : size(length),
        words,
      ]),
  },
  descendants: {
    title: "Descendants of the relay parent",
    none: "The chain builds on the tip of the relay chain, so it states no further headers.",
    head: ["number", "hash", "storage root"],
    cells: (rows) => rows,
  },
};

// The three lists of a candidate. A list without rows is shown if something can be done with it.
export function Inherent({ detail, tools }) {
  const rows = {
    requested: detail.requested,
    messages: detail.inbound,
    descendants: detail.descendants,
  };
  const counts = { ...countsOf(rows), messages: detail.messages };
  return Object.keys(LISTS)
    .filter((part) => tools || rows[part].length)
    .map(
      (part) => html`
        <${List} part=${part} rows=${rows[part]} count=${counts[part]} tools=${tools} />
      `,
    );
}

function countsOf(rows) {
  return Object.fromEntries(Object.entries(rows).map(([part, list]) => [part, list.length]));
}

function List({ part, rows, count, tools }) {
  const { title, none, head, cells } = LISTS[part];
  return html`
    <${Section} kind=${`input-${part}`} title=${`${title}: ${count}`}>
      ${
        rows.length
          ? html`<${Table} head=${head} rows=${cells(rows)} />`
          : html`<p class="hint">${none}</p>`
      }
      <${More} count=${count} most=${rows.length} />
      ${tools?.(part)}
    </${Section}>
  `;
}

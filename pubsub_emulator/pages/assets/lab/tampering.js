// What can be done with a part of a block's input: the cheats that tamper with it, each in a form
// that is filled in and not yet sent.

import { html } from "../html.js";
import { propose } from "./acts.js";
import { dev } from "./state.js";

const OFFERS = {
  requested: [
    ["request", {}, "Request other relay keys"],
    ["cheat", { strategy: "omit-requested-key" }, "Keep a value back"],
    ["cheat", { strategy: "omit-requested-absence" }, "Leave open whether a key is there"],
    ["cheat", { strategy: "omit-requested-trie" }, "Leave out a child trie"],
  ],
  messages: [
    ["cheat", { strategy: "drop-message" }, "Leave a message out"],
    ["cheat", { strategy: "alter-message" }, "Alter a message"],
    ["cheat", { strategy: "hold-back-downward" }, "Hash all downward messages"],
    ["cheat", { strategy: "hold-back-horizontal" }, "Hash horizontal messages"],
    ["cheat", { strategy: "hash-before-full" }, "Hash an earlier message"],
    ["cheat", { strategy: "hash-of-no-message" }, "Add the hash of no message"],
  ],
  descendants: [["cheat", { strategy: "unwanted-descendants" }, "Add a header"]],
};

export function Tampering({ part, para }) {
  if (!dev.value) {
    return null;
  }
  return html`
    <p class="hint">With the next block of ${para}:</p>
    <p class="saves">
      ${OFFERS[part].map(
        ([act, form, words]) => html`
          <button type="button" class="small" onClick=${() => propose(act, { para, ...form })}>
            ${words}
          </button>
        `,
      )}
    </p>
  `;
}

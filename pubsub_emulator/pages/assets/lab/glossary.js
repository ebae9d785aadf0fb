// The words of the glossary, each with a tip where it is first used, and texts to copy.

import { html, useState } from "../html.js";

const GLOSSARY = {
  "relay chain":
    "The chain that keeps what publishers publish, and includes the blocks of parachains.",
  candidate: "A parachain block that a collator proposes; it is judged and included, or refused.",
  collator: "Who builds the blocks of a parachain, in turns.",
  proof:
    "The trie nodes that prove values of the relay chain's state, without the rest of the state.",
  budget: "The bytes that messages and proof of one block may take.",
  verdict: "The first rule that a refused candidate breaks.",
  publisher: "A parachain that writes keys into a trie of its own on the relay chain.",
  subscriber: "A parachain that is proven, and delivered, what it subscribes to.",
  "child trie":
    "The trie of one publisher on the relay chain; its root stands in the relay chain's state.",
  TTL: "Relay blocks for which an entry is valid; 0 is forever.",
  "dry run": "The act is tried on a copy of the network that is thrown away.",
  weight: "What a block costs: time of the processor, and bytes of proof.",
  branch: "A line of blocks from a fork on; the network goes on along one of them.",
};

// A word with its tip, shown while it is pointed at or has the focus.
export function Term({ word, children }) {
  const [open, setOpen] = useState(false);
  const toggle = (shown) => () => setOpen(shown);
  return html`
    <span class="term" onMouseEnter=${toggle(true)} onMouseLeave=${toggle(false)}>
      <button
        type="button"
        class="word"
        aria-expanded=${open}
        onFocus=${toggle(true)}
        onBlur=${toggle(false)}
        onKeyDown=${(event) => event.key === "Escape" && setOpen(false)}
      >
        ${children || word}
      </button>
      ${
        open
          ? html`
            <span class="tip" role="tooltip">
              ${GLOSSARY[word]}
            </span>
          `
          : null
      }
    </span>
  `;
}

// Text of the page to the clipboard; where that is not allowed, it stays to be marked by hand.
export function Copied({ label, text }) {
  const copy = () => navigator.clipboard?.writeText(text).catch(() => null);
  return html`
    <div class="copied">
      <span class="label">${label}</span>
      <code tabindex="0">${text}</code>
      <button type="button" class="small" onClick=${copy} aria-label=${`Copy: ${label}`}>
        copy
      </button>
    </div>
  `;
}

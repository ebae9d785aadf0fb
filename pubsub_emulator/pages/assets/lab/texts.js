// How keys and values are written.

import { names } from "./state.js";

// Bytes as a person writes them: printable text in quotes, else digits.
export function valueWords(hex) {
  const text = hex
    .slice(2)
    .replace(/../g, (pair) => String.fromCharCode(Number.parseInt(pair, 16)));
  return /^[ -~]+$/.test(text.replace(/…$/, "")) ? `"${text}"` : hex;
}

export function keyName(key) {
  return names.get(key) || `${key.slice(0, 10)}…`;
}

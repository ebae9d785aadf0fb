// Figures and hashes in words, the same as those of `pages/words.py`.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

// A number with commas and so many digits behind the point, rounded as Python does.
function figure(count, digits = 0) {
  return count.toLocaleString("en", {
    roundingMode: "halfEven",
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

// Bytes in binary units; a dash where nobody knows how many.
export function size(count) {
  if (count === null || count === undefined) {
    return "–";
  }
  let value = count;
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit + 1 < UNITS.length) {
    value /= 1024;
    unit += 1;
  }
  return `${figure(value, unit ? 1 : 0)} ${UNITS[unit]}`;
}

// A number with a noun.
export function counted(count, one, many = `${one}s`) {
  return `${figure(count)} ${count === 1 ? one : many}`;
}

// A share, with a decimal if it is below 10 %.
export function percent(part, whole) {
  if (!whole) {
    return "none";
  }
  const share = (100 * part) / whole;
  if (share !== 0 && Math.abs(share) < 0.05) {
    return "under 0.1 %";
  }
  return `${figure(share, Math.abs(share) >= 10 || share === 0 ? 0 : 1)} %`;
}

// A hash or key, given without 0x, in few characters.
export function short(hex) {
  return hex.length <= 16 ? `0x${hex}` : `0x${hex.slice(0, 8)}…${hex.slice(-4)}`;
}

// A text of at most so many characters.
export function cut(text, most = 120) {
  const plain = String(text);
  return plain.length > most ? `${plain.slice(0, most)}…` : plain;
}

// Text as HTML has it, for drawings that are made as text.
export function escaped(text) {
  return String(text).replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
}

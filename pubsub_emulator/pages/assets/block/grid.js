// Measures of the time line, in pixels.

export const CELL = 20;
export const ROW = 26;
export const TOP = 4;
const SQUARE = 16;

// Where a square is in its column. Several candidates of one chain share the height of one square.
export function placed(row, nth, count) {
  const step = (SQUARE + 1) / count;
  return { top: TOP + row * ROW + nth * step, height: step - 1 };
}

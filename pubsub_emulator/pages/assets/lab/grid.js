// Measures of the time line, in pixels.

export const CELL = 20;
export const ROW = 26;
export const TOP = 4;

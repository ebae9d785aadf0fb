// The library that draws figures over time; it asks for the reader's language at once.

import "./language.js";

import uPlot from "../vendor/uplot.js";

export { uPlot };

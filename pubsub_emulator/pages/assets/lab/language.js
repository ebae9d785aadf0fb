// The reader's language, for libraries that need one: in a C locale it is no language tag, and
// uPlot would throw.
try {
  new Intl.NumberFormat(navigator.language);
} catch {
  Object.defineProperty(navigator, "language", { value: "en" });
}

// Bringing into view what a click has changed elsewhere on the page.

const NARROW = 1000; // pixels up to which the page has one column

// On a narrow page, the element goes to the top of the window; on a wide one it is moved only as
// far as it is out of sight.
export function reveal(id) {
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const block = innerWidth <= NARROW ? "start" : "nearest";
  requestAnimationFrame(() =>
    document.getElementById(id)?.scrollIntoView({ block, behavior: still ? "auto" : "smooth" }),
  );
}

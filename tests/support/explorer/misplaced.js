() => {
  const faults = [];
  const words = (each) =>
    `${each.tagName.toLowerCase()}.${each.className}: ${each.textContent.trim().slice(0, 40)}`;
  const shown = (each) => each.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const scrolls = (each) =>
    each.closest(".scroll, .strip, .field, .time, code, .plot, pre, .hidden, svg, option");
  const texts = [];
  for (const each of document.querySelectorAll("body *")) {
    if (!shown(each) || scrolls(each)) {
      continue;
    }
    const own = [...each.childNodes].filter((node) => node.nodeType === 3 && node.data.trim());
    if (!own.length) {
      continue;
    }
    if (
      each.scrollWidth > each.clientWidth + 1 &&
      each.clientWidth &&
      getComputedStyle(each).overflowX !== "visible"
    ) {
      faults.push(`clipped: ${words(each)}`);
    }
    for (const node of own) {
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const box of range.getClientRects()) {
        const card = each.closest(".card")?.getBoundingClientRect();
        if (card && box.right > card.right + 1) {
          faults.push(`outside of its card: ${words(each)}`);
        }
        if (box.left < -1 || box.right > innerWidth + 1) {
          faults.push(`cut at the side: ${words(each)}`);
        }
        if (!each.closest("header")) {
          texts.push([each, box]);
        }
      }
    }
  }
  texts.sort(([, x], [, y]) => x.top - y.top);
  for (let a = 0; a < texts.length; a++) {
    for (let b = a + 1; b < texts.length; b++) {
      const [one, x] = texts[a];
      const [two, y] = texts[b];
      if (y.top >= x.bottom - 4) {
        break; // nor is any that begins below
      }
      const wide = Math.min(x.right, y.right) - Math.max(x.left, y.left);
      if (wide <= 2 || y.bottom - y.top <= 4 || one.contains(two) || two.contains(one)) {
        continue;
      }
      faults.push(`overlap: ${words(one)} and ${words(two)}`);
    }
  }
  return faults.slice(0, 10);
};

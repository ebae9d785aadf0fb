// The lines that a search found, below its field.

const MOST_FOUND = 40;

class Results {
  constructor(host, choose) {
    Object.assign(this, { host, choose });
    this.at = -1; // the marked line
  }

  // Shows lines; `null` hides all.
  show(lines) {
    this.at = -1;
    this.host.hidden = lines === null;
    if (lines === null) {
      this.host.replaceChildren();
      return;
    }
    const count = element("p", { class: "hint", role: "status" }, this.count(lines.length));
    const buttons = lines.slice(0, MOST_FOUND).map((line) => this.button(line));
    this.host.replaceChildren(count, ...buttons);
  }

  hide() {
    this.host.hidden = true;
  }

  // Marks a line further down or up.
  move(by) {
    const buttons = this.buttons();
    this.at = Math.max(0, Math.min(buttons.length - 1, this.at + by));
    for (const [at, button] of buttons.entries()) {
      button.classList.toggle("at", at === this.at);
    }
    buttons[this.at]?.scrollIntoView({ block: "nearest" });
  }

  // Opens the marked line, or the first one.
  open() {
    this.buttons()[Math.max(this.at, 0)]?.click();
  }

  buttons() {
    return [...this.host.querySelectorAll("button")];
  }

  button(line) {
    return element(
      "button",
      { type: "button", onclick: () => this.choose(line) },
      element("b", {}, line.label),
      line.note ? ` ${line.note}` : "",
    );
  }

  count(found) {
    if (found > MOST_FOUND) {
      return `${MOST_FOUND} of ${found.toLocaleString("en")} found; all are lit above`;
    }
    return found ? `${found} found` : "Nothing found.";
  }
}

// Search and font size. What is found is shown by highlights; both work without the server.

const PANES = ".mj-source, .mj-task, .mj-reference, .mj-checklist, .mj-response, .mj-second";
const MOST = 2000;
const SIZES = [0.85, 0.925, 1, 1.125, 1.25, 1.4, 1.6];
const SIZE = "medjury-size";
function find(words) {
  const pattern = new RegExp(words.trim().replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\s+/g, "\\s+"), "giu");
  const found = [];
  for (const pane of document.querySelectorAll(PANES)) {
    const reading = read(pane);
    for (const { index, 0: hit } of reading.text.matchAll(pattern)) {
      if (found.length === MOST) return found;
      found.push({ pane, range: rangeOf(reading, index, index + hit.length) });
    }
  }
  return found;
}

class Reader {
  constructor(switchTyped) {
    this.found = [];
    this.at = 0;
    this.input = node("input", { type: "text", "aria-label": say("Find in the texts"), placeholder: say("Find in the texts  /"), maxlength: "200", spellcheck: "false" });
    this.count = node("span", { class: "count", role: "status" });
    this.steps = [["‹", -1, say("Previous place found")], ["›", 1, say("Next place found")]].map(([text, by, name]) => this.button(text, name, () => this.go(by)));
    const sizes = [["A−", -1, say("A− Smaller text")], ["A", 0, say("A Normal text size")], ["A+", 1, say("A+ Larger text")]].map(([text, by, name]) => this.button(text, name, () => this.resize(by)));
    this.asTyped = this.button(say("As typed"), say("As typed: show headings, tables and the like as they were typed (V)"), switchTyped);
    this.bar = node("div", { class: "mj-reader", role: "group", "aria-label": say("Reading aids") },
      node("span", { class: "find", role: "search" }, this.input, this.count, ...this.steps), node("span", { class: "sizes" }, this.asTyped, ...sizes));
    this.input.addEventListener("input", () => this.search());
    this.input.addEventListener("keydown", (event) => this.typed(event));
    this.resize(null);
    this.show();
  }

  button(text, name, does) {
    const made = node("button", { type: "button", "aria-label": name, title: name }, text);
    made.addEventListener("click", does);
    return made;
  }

  open() {
    this.input.select();
    this.input.focus();
  }

  typed(event) {
    if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      this.go(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      this.clear();
      document.querySelector(".mj-response")?.focus({ preventScroll: true });
    }
  }

  clear() {
    this.input.value = "";
    this.search();
  }

  search() {
    this.found = this.input.value.trim() === "" ? [] : find(this.input.value);
    this.at = 0;
    this.show(true);
  }

  go(by) {
    if (this.found.some((one) => !one.pane.isConnected)) this.found = find(this.input.value);
    if (this.found.length === 0) return;
    this.at = (this.at + by + this.found.length) % this.found.length;
    this.show(true);
  }

  show(move = false) {
    const { found, at } = this;
    const here = found[at];
    paint("mj-found", found.filter((_, n) => n !== at).map((one) => one.range), 2);
    paint("mj-here", here ? [here.range] : [], 4);
    if (here && move) {
      here.range.startContainer.parentElement.closest("details:not([open])")?.setAttribute("open", "");
      bringIntoView(here.pane, here.range);
    }
    const most = found.length === MOST ? "+" : "";
    this.count.textContent = this.input.value.trim() === "" ? "" : here ? say("{number} of {total}", { number: at + 1, total: `${found.length}${most}` }) : say("none");
    for (const one of this.steps) one.disabled = found.length === 0;
  }

  resize(by) {
    const stored = Number(sessionStorage.getItem(SIZE) ?? 1);
    const at = Math.max(0, SIZES.indexOf(stored));
    const size = by === null ? SIZES[at] : by === 0 ? 1 : SIZES[Math.min(SIZES.length - 1, Math.max(0, at + by))];
    sessionStorage.setItem(SIZE, size);
    document.documentElement.style.setProperty("--mj-size", size);
  }
}

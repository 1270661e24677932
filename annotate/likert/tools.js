// The tools of the rating room: flags, marks, and the way back. Drawn only where the form has them.

const FLAG_TEXTS = [[NO_CONTEXT, "Not enough context", "N"], ["names_author", "Names its author", "A"], ["flag", "Flag", "F"]];
const KIND_TEXTS = { wrong: ["Wrong", "W"], missing: ["Missing", "M"], unsupported: ["Unsupported", "N"] };

function tool(text, letter, attributes = {}) {
  return node("button", { type: "button", class: "tool", ...attributes }, text, key(letter));
}

function toolRow() {
  const flags = FLAG_TEXTS.map(([flag, text, letter]) => tool(text, letter, { "data-flag": flag, "aria-pressed": "false" }));
  return node("div", { class: "tools" },
    tool("Mark", "S", { "data-does": "mark", "aria-pressed": "false" }), ...flags,
    tool("Recuse", "R", { "data-does": "recuse" }), tool("Keys", "?", { "data-does": "help" }));
}

function markingBar(entry) {
  const kinds = KINDS.map((kind) => tool(KIND_TEXTS[kind][0], KIND_TEXTS[kind][1], { "data-kind": kind, class: `tool kind ${kind}` }));
  const choice = node("select", { "aria-label": "Criterion of the mark" }, ...entry.criteria.map((one) => node("option", { value: one.name }, one.label)));
  const quote = node("p", { class: "quote", role: "status" });
  const how = node("p", { class: "how" }, key("↑"), key("↓"), " sentence ", key("←"), key("→"), " word ", key("Shift"), " longer or shorter");
  const bar = node("div", { class: "marking", role: "group", "aria-label": "Mark this stretch" }, quote,
    node("div", { class: "kinds" }, ...kinds, node("span", {}, "for"), choice, tool("Stop", "Esc", { "data-does": "mark" })), how);
  return { bar, choice, quote, how };
}

function notice(entry) {
  if (entry.mode === "after") return node("p", { class: "notice" }, node("span", {}, "Submitted. This is how you rated it; the reference stands on the left."));
  if (!entry.rated) return "";
  const at = new Date(entry.rated).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  const told = `You rated this on ${at}; submitting again replaces it (the earlier rating is kept).`;
  return node("p", { class: "notice" }, node("span", {}, told), tool("Back to the next response", "B", { "data-does": "next" }));
}

function showTools(view, entry, marker, quotes) {
  const locked = entry.stage !== "rating";
  view.back.disabled = !entry.previous || entry.stage === "submitting" || entry.stage === "leaving";
  for (const one of view.row.querySelectorAll("[data-flag]")) {
    one.setAttribute("aria-pressed", `${entry.flags.includes(one.dataset.flag)}`);
    one.disabled = locked;
  }
  const mark = view.row.querySelector("[data-does=mark]");
  mark.setAttribute("aria-pressed", `${marker.at !== null}`);
  mark.disabled = locked;
  view.row.querySelector("[data-does=recuse]").disabled = locked || entry.rated !== "";
  showMarking(view, entry, marker);
  showChips(view, entry, quotes, locked);
  set(view.ask, locked || entry.error || !needsWhy(entry) ? "" : whyText(entry));
}

function whyText(entry) {
  const { label } = entry.criteria.find((one) => one.name === entry.why.criterion);
  return `${label} is low: write one line why (C), or mark where in the response (S).`;
}

function showMarking(view, entry, marker) {
  const { bar, choice, quote, how } = view.marking;
  const on = marker.at !== null && entry.stage === "rating";
  if (on && !bar.hasAttribute("data-on")) choice.value = markedCriterion(view, entry);
  bar.toggleAttribute("data-on", on);
  view.box.toggleAttribute("data-marking", on);
  how.toggleAttribute("data-off", marker.byMouse);
  set(quote, on ? `“${marker.quote(marker.at, 110)}”` : "");
}

// A mark is for what is being rated; where a low score waits for its reason, for that.
function markedCriterion(view, entry) {
  return needsWhy(entry) ? entry.why.criterion : entry.active ?? view.last ?? entry.criteria[0].name;
}

function showChips(view, entry, quotes, locked) {
  const drawn = JSON.stringify([entry.spans, quotes, locked]);
  if (view.drawn === drawn) return;
  view.drawn = drawn;
  view.chips.replaceChildren(...entry.spans.map((span, place) => chip(entry, span, quotes[place], place, locked)));
}

function chip(entry, span, quote, place, locked) {
  const { label } = entry.criteria.find((one) => one.name === span.criterion) ?? { label: span.criterion };
  const [kind] = KIND_TEXTS[span.error];
  const show = node("button", { type: "button", class: "go", "data-show": place }, node("b", {}, kind), ` ${label}: “${quote}”`);
  const remove = node("button", { type: "button", class: "remove", "data-remove": place, "aria-label": `Remove mark: ${kind}, ${label}, ${quote}` }, "×");
  remove.disabled = locked;
  return node("li", { class: span.error }, show, remove);
}

// The tools of the rating room: flags, marks, and the way back.

const FLAG_TEXTS = [[NO_CONTEXT, "Not enough context", "N"], [BOTH_UNSAFE, "Both unsafe", "X"], ["names_author", "Names its author", "A"], ["flag", "Flag", "F"]];
const IN_TEXT = { source: "In the source: ", second: "In the second response: " };

function tool(text, letter, attributes = {}) {
  return node("button", { type: "button", class: "tool", ...attributes }, text, ...(letter ? [key(letter)] : []));
}

function titled(name) {
  return name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");
}

function toolRow(entry) {
  const flags = FLAG_TEXTS.filter(([flag]) => flag !== BOTH_UNSAFE || entry.pair).map(([flag, text, letter]) => tool(say(text), letter, { "data-flag": flag, "aria-pressed": "false" }));
  const recuse = entry.training ? [] : [tool(say("Recuse"), "R", { "data-does": "recuse" })];
  return node("div", { class: "tools" },
    tool(say("Mark"), "S", { "data-does": "mark", "aria-pressed": "false" }), ...flags, ...recuse, tool(say("Keys"), "?", { "data-does": "help" }));
}

function markingBar(entry) {
  const letters = errorKeys(entry.errors);
  const kinds = entry.errors.map((error) => tool(say(titled(error)), (letters[error] ?? "").toUpperCase(), { "data-kind": error, class: `tool kind ${error}` }));
  const choice = node("select", { "aria-label": say("Criterion of the mark") }, ...entry.criteria.map((one) => node("option", { value: one.name }, one.label)));
  const severity = node("select", { "aria-label": say("Severity of the mark") }, node("option", { value: "" }, say("severity not said")), ...entry.severities.map((one) => node("option", { value: one }, say(one))));
  const link = node("select", { "aria-label": say("Goes with") });
  const note = node("input", { type: "text", maxlength: 2000, "aria-label": say("Note on the mark"), placeholder: say("Note (optional)") });
  const quote = node("p", { class: "quote", role: "status" });
  const how = node("p", { class: "how" }, key("↑"), key("↓"), say(" sentence "), key("←"), key("→"), say(" word "), key("Shift"), say(" longer or shorter "), key("X"), say(" other text"));
  const bar = node("div", { class: "marking", role: "group", "aria-label": say("Mark this stretch") }, quote,
    node("div", { class: "kinds" }, node("span", {}, "for"), choice, severity, link, note),
    node("div", { class: "kinds" }, ...kinds, tool(say("Stop"), "Esc", { "data-does": "mark" })), how);
  return { bar, choice, severity, link, note, quote, how, letters };
}

function notice(entry) {
  if (entry.mode === "after") return node("p", { class: "notice" }, node("span", {}, say("Submitted. This is how you rated it; the reference stands on the left.")));
  if (!entry.rated) return "";
  const at = new Date(entry.rated).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  const told = say("You rated this on {at}; submitting again replaces it (the earlier rating is kept).", { at });
  return node("p", { class: "notice" }, node("span", {}, told), tool(say("Back to the next response"), "B", { "data-does": "next" }));
}

function showTools(view, entry, marker, quotes) {
  const locked = !isOpen(entry);
  view.back.disabled = !entry.previous || entry.stage === "submitting" || entry.stage === "leaving";
  for (const one of view.row.querySelectorAll("[data-flag]")) {
    one.setAttribute("aria-pressed", `${entry.flags.includes(one.dataset.flag)}`);
    one.disabled = locked;
  }
  const mark = view.row.querySelector("[data-does=mark]");
  mark.setAttribute("aria-pressed", `${marker.at !== null}`);
  mark.disabled = locked;
  const recuse = view.row.querySelector("[data-does=recuse]");
  if (recuse) recuse.disabled = locked || entry.rated !== "";
  showMarking(view, entry, marker);
  showChips(view, entry, quotes, locked);
  set(view.ask, locked || entry.error || !needsWhy(entry) ? "" : whyText(entry));
}

function whyText(entry) {
  const { label } = entry.criteria.find((one) => one.name === entry.why.criterion);
  return say("{label} is low: write one line why (C), or mark where in the response (S).", { label });
}

function showMarking(view, entry, marker) {
  const { bar, choice, severity, link, note, quote, how } = view.marking;
  const on = marker.at !== null && isOpen(entry);
  const old = entry.spans[marker.changing];
  if (on && !bar.hasAttribute("data-on")) {
    choice.value = old?.criterion ?? markedCriterion(entry);
    severity.value = old?.severity ?? "";
    note.value = old?.note ?? "";
    bar.dataset.side = "";
  }
  if (on && bar.dataset.side !== marker.side) {
    offerLinks(link, entry, marker, old?.side === marker.side ? old.linked : null);
    bar.dataset.side = marker.side;
  }
  bar.toggleAttribute("data-on", on);
  view.criteria.toggleAttribute("data-marking", on);
  how.toggleAttribute("data-off", marker.byMouse);
  const where = IN_TEXT[marker.side] ? say(IN_TEXT[marker.side]) : "";
  set(quote, on ? `${where}“${marker.quote(marker.at, 110)}”` : "");
}

// A stretch can go with one that is marked in the other text.
function offerLinks(link, entry, marker, chosen) {
  const others = entry.spans.map((span, place) => [span, place]).filter(([span]) => span.side !== marker.side);
  link.hidden = others.length === 0;
  link.replaceChildren(node("option", { value: "" }, say("goes with no other mark")),
    ...others.map(([span, place]) => node("option", { value: place }, say("goes with {error}: “{quote}”", { error: say(titled(span.error)), quote: marker.quoteOf(entry, span, 30) }))));
  link.value = chosen === null ? "" : `${chosen}`;
}

// A mark is for what is being rated; where a low score waits for its reason, for that.
function markedCriterion(entry) {
  return needsWhy(entry) ? entry.why.criterion : entry.active ?? entry.criteria[0].name;
}

function showChips(view, entry, quotes, locked) {
  const drawn = JSON.stringify([entry.spans, quotes, locked]);
  if (view.drawn === drawn) return;
  view.drawn = drawn;
  view.chips.replaceChildren(...entry.spans.map((span, place) => chip(entry, span, quotes[place], place, locked)));
}

function chip(entry, span, quote, place, locked) {
  const { label } = entry.criteria.find((one) => one.name === span.criterion) ?? { label: span.criterion };
  const said = [span.severity && say(span.severity), span.side === "source" ? say("in the source") : span.side === "second" ? say("in the second response") : "", span.linked === null ? "" : say("with {number}", { number: span.linked + 1 }), span.note].filter(Boolean).join(", ");
  const show = node("button", { type: "button", class: "go", "data-show": place }, `${place + 1} `, node("b", {}, say(titled(span.error))), ` ${label}${said ? ` (${said})` : ""}: “${quote}”`);
  const change = node("button", { type: "button", class: "change", "data-change": place, "aria-label": say("Change mark {number}", { number: place + 1 }) }, "✎");
  const remove = node("button", { type: "button", class: "remove", "data-remove": place, "aria-label": say("Remove mark: {what}", { what: [say(titled(span.error)), label, quote].join(", ") }) }, "×");
  change.disabled = remove.disabled = locked;
  return node("li", { class: span.error }, show, change, remove);
}

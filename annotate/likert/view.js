// Drawing. Every text goes in as text, never as markup.

const FULL_LABELS = 7;

function node(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// Up to the first stop an anchor mostly fits a cell, which cuts the rest with dots; never at a comma,
// where half a sentence may say the opposite. The whole stands below.
function short(anchor) {
  return anchor.split(/[:;.]/)[0].trim();
}

function digitKeys(points) {
  return points.every((point) => point >= 0 && point <= 9);
}

function cell(criterion, group, point, count) {
  const anchor = criterion.anchors[point] ?? "";
  const input = node("input", { type: "radio", name: group, value: point });
  input.setAttribute("aria-label", anchor ? `${point} ${anchor}` : `${point}`);
  const label = count <= FULL_LABELS ? [node("span", { class: "short" }, short(anchor))] : [];
  const text = node("span", { class: "face" }, node("span", { class: "point" }, `${point}`), ...label);
  return node("label", { class: "cell", title: anchor }, input, text);
}

function block(criterion, place, points) {
  const legend = node(
    "legend", {},
    node("span", { class: "name" }, criterion.label), " ",
    node("span", { class: "question" }, criterion.question),
  );
  const cells = points.map((point) => cell(criterion, `criterion-${place}`, point, points.length));
  const row = node("div", { class: "cells", style: `--count:${points.length}` }, ...cells);
  return node("fieldset", { class: "criterion", "data-name": criterion.name }, legend, row);
}

function anchorList(criterion) {
  const numbers = Object.keys(criterion.anchors).map(Number).sort((a, b) => a - b);
  const lines = numbers.map((point) =>
    node("li", { "data-point": point }, node("b", {}, `${point}`), criterion.anchors[point]));
  return node("ul", { class: "anchors", "aria-hidden": "true", "data-name": criterion.name }, ...lines);
}

function key(text) {
  return node("kbd", {}, text);
}

function hint(does, ...keys) {
  return node("span", {}, ...keys, ` ${does}`);
}

function hints(points) {
  const rate = digitKeys(points)
    ? [hint("rate", key(`${points[0]}`), "–", key(`${points.at(-1)}`))]
    : [hint("rate: type the number", key(`${points[0]}`), "–", key(`${points.at(-1)}`)), hint("step", key("←"), " ", key("→")), hint("next criterion", key("Enter"))];
  const rest = [hint("undo", key("U")), hint("comment", key("C")), hint("submit", key("Ctrl"), "+", key("Enter"))];
  return node("p", { class: "hints" }, ...rate, ...rest);
}

function draw(root, entry) {
  const view = {
    blocks: entry.criteria.map((one, place) => block(one, place, entry.points)),
    lists: entry.criteria.map(anchorList),
    comment: node("textarea", { rows: 2, maxlength: 20000, "aria-label": commentLabel(entry), placeholder: commentLabel(entry) }),
    button: node("button", { type: "submit", class: "main" }, "Submit and next"),
    alert: node("p", { class: "alert", role: "alert" }),
    status: node("p", { class: "status", role: "status" }),
    hovered: null,
  };
  view.box = node("div", { class: "legendbox" }, ...view.lists);
  if (entry.tools) addTools(view, entry);
  const row = view.row ?? hints(entry.points);
  const [back, over] = entry.tools ? [[view.back], [view.chips, view.ask]] : [[], []];
  view.form = node(
    "form", { class: "likert", "aria-label": "Your rating", novalidate: "" },
    entry.tools ? notice(entry) : "", ...view.blocks,
    node("div", { class: "foot" },
      view.box, ...over, view.alert,
      node("div", { class: "last" }, ...back, view.comment, view.button),
      node("div", { class: "below" }, row, view.status)),
  );
  view.comment.value = entry.comment;
  root.replaceChildren(view.form);
  return view;
}

function addTools(view, entry) {
  view.marking = markingBar(entry);
  view.box.append(view.marking.bar);
  view.chips = node("ul", { class: "chips", "aria-label": "Marked in the response" });
  view.ask = node("p", { class: "ask", role: "status" });
  view.back = tool("Previous", "P", { "data-does": "previous" });
  view.row = toolRow();
}

function show(view, entry, late) {
  const locked = entry.stage !== "rating";
  view.form.toggleAttribute("data-locked", locked && entry.stage !== "after");
  view.form.toggleAttribute("data-after", entry.stage === "after");
  view.blocks.forEach((one) => showBlock(one, entry, locked));
  showAnchors(view, entry);
  if (view.comment.value !== entry.comment) view.comment.value = entry.comment;
  label(view.comment, commentLabel(entry));
  view.comment.readOnly = locked;
  view.button.disabled = locked && entry.stage !== "after";
  view.button.textContent = buttonText(entry);
  view.button.toggleAttribute("data-ready", entry.stage === "after" || (missing(entry).length === 0 && !needsWhy(entry)));
  set(view.alert, entry.error || awayText(entry));
  set(view.status, statusText(entry, late));
}

// A low score needs a line of comment or a marked stretch; before one is given this says when.
function commentLabel(entry) {
  const asked = entry.why.points.length > 0 && entry.criteria.find((one) => one.name === entry.why.criterion);
  if (!asked) return "Comment (optional)";
  return needsWhy(entry) ? `Comment (needed: ${asked.label} is low)` : `Comment (optional unless ${asked.label} is low)`;
}

function label(input, text) {
  if (input.placeholder === text) return;
  input.placeholder = text;
  input.setAttribute("aria-label", text);
}

function buttonText(entry) {
  if (entry.stage === "after") return "Next";
  if (entry.stage === "submitting") return "Submitting…";
  return entry.rated ? "Submit again" : "Submit and next";
}

function set(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function showBlock(one, entry, locked) {
  const { name } = one.dataset;
  one.toggleAttribute("data-active", name === entry.active && !locked);
  one.toggleAttribute("data-rated", name in entry.scores);
  for (const input of one.querySelectorAll("input")) {
    input.checked = entry.scores[name] === Number(input.value);
    input.disabled = locked;
  }
}

function showAnchors(view, entry) {
  const [name, point] = view.hovered ?? [entry.active ?? view.last ?? entry.criteria[0].name, null];
  view.last = name;
  for (const list of view.lists) {
    const shown = list.dataset.name === name;
    list.toggleAttribute("data-shown", shown);
    if (shown) lightUp(view.box, list, point ?? entry.scores[name]);
  }
}

// A long list is cut to the window's height: the line in question is brought into view.
function lightUp(box, list, point) {
  for (const line of list.children) {
    const lit = Number(line.dataset.point) === point;
    line.toggleAttribute("data-lit", lit);
    if (lit) box.scrollTop = line.offsetTop - (box.clientHeight - line.offsetHeight) / 2;
  }
}

// The study cannot be reached: what was entered is in this page alone until it can.
function awayText(entry) {
  if (!entry.away) return "";
  return entry.stage === "submitting"
    ? "Not stored yet, as the study cannot be reached just now; nothing is lost: keep this page open, it submits again by itself."
    : "The study cannot be reached just now, but nothing you entered is lost: keep this page open, it tries again by itself.";
}

function statusText(entry, late) {
  if (entry.stage === "submitting") return late ? "Not received yet, sending again…" : "";
  if (entry.stage === "after" || entry.stage === "leaving") return late ? "Not received yet, sending again…" : "";
  if (!isSaved(entry)) return late ? "Not saved yet, sending again…" : "Saving…";
  if (entry.rated) return entry.unsent || entry.past.length > 0 ? "Changed, not submitted" : "";
  return entry.seq > 0 ? "Draft saved" : "";
}

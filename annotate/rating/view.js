// Drawing the form. Every text goes in as text, never as markup. The criterion that is being rated
// shows what each point means, whole, in its cells; the others show their points on one line.

const FULL_LABELS = 7;

function node(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function button(text, attributes = {}) {
  return node("button", { type: "button", ...attributes }, text);
}

// Whether one digit is enough for every point of every criterion.
function digitKeys(entry) {
  return entry.pair || entry.criteria.every(({ points }) => points.every((point) => point >= 0 && point <= 9));
}

const ANSWER_WORDS = { not_applicable: "Not applicable", cannot_tell: "Cannot tell" };

// A point as it is shown: of a pair the key that gives it, from the first much better to the second.
function faceOf(criterion, point) {
  if (!criterion.pair || point === undefined) return scoreText(point);
  return criterion.anchors[point] ?? criterion.points.indexOf(point) + 1;
}

function cell(criterion, group, point, count) {
  const anchor = criterion.anchors[point] ?? "";
  const face = criterion.pair ? criterion.points.indexOf(point) + 1 : point;
  const input = node("input", { type: "radio", name: group, value: point });
  input.setAttribute("aria-label", anchor ? `${face} ${anchor}` : `${face}`);
  const meaning = count <= FULL_LABELS && anchor ? [node("span", { class: "anchor" }, anchor)] : [];
  const text = node("span", { class: "face" }, node("span", { class: "point" }, `${face}`), ...meaning);
  return node("label", { class: "cell", title: anchor }, input, text);
}

// An answer in the place of a score: its words, and the key that gives it.
function answerCell(answer, group) {
  const words = say(ANSWER_WORDS[answer]);
  const input = node("input", { type: "radio", name: group, value: answer, "aria-label": words });
  const letter = Object.keys(ANSWER_KEYS).find((one) => ANSWER_KEYS[one] === answer);
  return node("label", { class: "cell instead" }, input, node("span", { class: "face" }, words, " ", key(letter.toUpperCase())));
}

function block(criterion, place) {
  const { points, answers } = criterion;
  const legend = node(
    "legend", {},
    node("span", { class: "name" }, criterion.label), " ",
    node("span", { class: "question" }, criterion.question),
  );
  const cells = points.map((point) => cell(criterion, `criterion-${place}`, point, points.length));
  cells.push(...answers.map((answer) => answerCell(answer, `criterion-${place}`)));
  const row = node("div", { class: "cells", style: `--count:${cells.length}` }, ...cells);
  const list = points.length > FULL_LABELS ? [anchorList(criterion)] : [];
  return node("fieldset", { class: "criterion", "data-name": criterion.name }, legend, row, ...list);
}

// A scale too long for words in its cells has them below.
function anchorList(criterion) {
  const numbers = Object.keys(criterion.anchors).map(Number).sort((a, b) => a - b);
  const lines = numbers.map((point) =>
    node("li", { "data-point": point }, node("b", {}, `${point}`), criterion.anchors[point]));
  return node("ul", { class: "anchors", "aria-hidden": "true" }, ...lines);
}

// A score as it is written, or the words of an answer in its place.
function scoreText(chosen) {
  return chosen in ANSWER_WORDS ? say(ANSWER_WORDS[chosen]) : chosen;
}

function key(text) {
  return node("kbd", {}, text);
}

function draw(root, entry) {
  const view = {
    blocks: entry.criteria.map((one, place) => block(one, place)),
    comment: node("textarea", { rows: 2, maxlength: 20000, dir: "auto" }),
    odd: node("input", { type: "text", class: "odd", maxlength: 2000, dir: "auto", placeholder: say("What is odd? One line for the coordinator"), "aria-label": say("What is odd") }),
    about: node("select", { class: "about", "aria-label": say("What the comment is about") },
      node("option", { value: WHOLE }, say("On the whole")), ...entry.criteria.map((one) => node("option", { value: one.name }, say("On {label}", { label: one.label.toLowerCase() })))),
    button: node("button", { type: "submit", class: "main" }, say("Submit and next")),
    alert: node("p", { class: "alert", role: "alert" }),
    signIn: node("a", { href: "/login", target: "_blank", rel: "opener" }, say("Sign in")),
    status: node("p", { class: "status", role: "status" }),
    yours: node("div", { class: "yours", role: "alert" }),
    ask: node("p", { class: "ask", role: "status" }),
    chips: node("ul", { class: "chips", "aria-label": say("Marked in the texts") }),
    back: tool(say("Previous"), "P", { "data-does": "previous" }),
    row: toolRow(entry),
    marking: markingBar(entry),
  };
  view.criteria = node("div", { class: "criteria" }, ...view.blocks, view.marking.bar);
  view.form = node(
    "form", { class: "likert", "aria-label": say("Your rating"), novalidate: "" },
    notice(entry), view.criteria,
    node("div", { class: "foot" },
      view.chips, view.ask, view.yours, view.alert, view.odd,
      node("div", { class: "last" }, view.back, view.about, view.comment, view.button),
      node("div", { class: "below" }, view.row, view.status)),
  );
  view.form.toggleAttribute("data-checked", entry.checked === true);
  root.replaceChildren(view.form);
  return view;
}

function show(view, entry, late) {
  const locked = !isOpen(entry);
  view.form.toggleAttribute("data-locked", locked && entry.stage !== "after");
  view.form.toggleAttribute("data-after", entry.stage === "after");
  view.blocks.forEach((one) => showBlock(one, entry, locked));
  showComment(view, entry);
  view.comment.readOnly = locked && !(overruledIn(entry) && entry.writing);
  view.button.disabled = entry.stage !== "rating" && entry.stage !== "after";
  view.button.textContent = buttonText(entry);
  view.button.toggleAttribute("data-ready", entry.stage === "after" || (missing(entry).length === 0 && !needsWhy(entry)));
  const alert = entry.error || awayText(entry);
  const isOut = entry.away === "signed out" && alert !== entry.error;
  if (!isOut) set(view.alert, alert);
  else if (!view.signIn.isConnected) view.alert.replaceChildren(alert, " ", view.signIn);
  view.odd.hidden = !entry.flags.includes(FLAG) || entry.stage === "after";
  view.odd.readOnly = locked;
  if (view.odd.value !== entry.odd) view.odd.value = entry.odd;
  showYours(view.yours, entry);
  set(view.status, statusText(entry, late));
}

// The field is not touched while its text is the entry's: the caret and what is being composed stay.
function showComment(view, entry) {
  const text = remarkOn(entry);
  if (view.comment.value !== text) view.comment.value = text;
  if (view.about.value !== entry.about) view.about.value = entry.about;
  for (const option of view.about.options) {
    const said = (option.value === WHOLE ? entry.comment : entry.comments[option.value] ?? "").trim() !== "";
    const plain = option.textContent.replace(/ •$/, "");
    set(option, said ? `${plain} •` : plain);
  }
  label(view.comment, commentLabel(entry));
}

// A low score needs a line of comment or a marked stretch; before one is given this says when.
function commentLabel(entry) {
  const about = entry.criteria.find((one) => one.name === entry.about);
  if (about) return say("Comment on {label} (optional)", { label: about.label.toLowerCase() });
  const asked = entry.why.points.length > 0 && entry.criteria.find((one) => one.name === entry.why.criterion);
  if (!asked) return say("Comment (optional)");
  const { label } = asked;
  return needsWhy(entry) ? say("Comment (needed: {label} is low)", { label }) : say("Comment (optional unless {label} is low)", { label });
}

function label(input, text) {
  if (input.placeholder === text) return;
  input.placeholder = text;
  input.setAttribute("aria-label", text);
}

function buttonText(entry) {
  if (entry.stage === "after") return say("Next");
  if (entry.stage === "submitting") return say("Submitting…");
  return entry.rated ? say("Submit again") : say("Submit and next");
}

function set(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function showBlock(one, entry, locked) {
  const { name } = one.dataset;
  const last = entry.active === null && !locked ? entry.criteria.find((other) => other.name === entry.latest) ?? entry.criteria.at(-1) : null;
  one.toggleAttribute("data-active", name === entry.active && !locked);
  one.toggleAttribute("data-open", (name === entry.active && !locked) || name === last?.name);
  one.toggleAttribute("data-rated", name in entry.scores);
  for (const input of one.querySelectorAll("input")) {
    input.checked = entry.scores[name] === chosenOf(input.value);
    input.disabled = locked;
  }
  for (const line of one.querySelectorAll("li")) line.toggleAttribute("data-lit", Number(line.dataset.point) === entry.scores[name]);
}

// Another page overruled what was entered here: it can be put back, or let go.
function showYours(box, entry) {
  const mine = overruledIn(entry);
  const drawn = JSON.stringify(mine);
  if (box.dataset.drawn === drawn) return;
  box.dataset.drawn = drawn;
  if (!mine) {
    box.replaceChildren();
    return;
  }
  const said = [mine.comment, ...Object.values(mine.comments)].filter(Boolean).join(" / ");
  const scores = entry.criteria.map((one) => `${one.label} ${faceOf(one, mine.scores[one.name]) ?? "–"}`).join(", ");
  box.replaceChildren(
    node("p", {}, say("This response was changed in another window; what is stored is shown. What you had entered in this one: ")),
    node("p", { class: "mine" }, said ? `${scores}. “${said}”` : `${scores}.`),
    node("div", { class: "ends" }, button(say("Use what I had entered here"), { "data-does": "putBack" }), button(say("Keep what is stored"), { "data-does": "letGo" })),
  );
}

// The study cannot be reached: what was entered is in this browser alone until it can.
function awayText(entry) {
  if (!entry.away) return "";
  if (entry.unkept) return say("The study cannot be reached just now, and this browser keeps nothing: do not close or reload this page until it says that all is stored. It is sent by itself.");
  if (entry.away === "signed out") return say("You are signed out; nothing you entered is lost: it is kept in this browser, and stored by itself once you are signed in again.");
  return entry.stage === "submitting"
    ? say("Not stored yet, as the study cannot be reached just now; nothing is lost: it is kept in this browser and submitted by itself.")
    : say("The study cannot be reached just now, but nothing you entered is lost: it is kept in this browser and stored by itself. You can go on.");
}

function statusText(entry, late) {
  if (entry.stage !== "rating") return late && entry.stage !== "after" ? say("Not received yet, sending again…") : "";
  if (!isSaved(entry) && entry.error) return say("Not saved");
  if (!isSaved(entry)) return late ? say("Not saved yet, sending again…") : say("Saving…");
  if (entry.rated) return entry.unsent || entry.past.length > 0 ? say("Changed, not submitted") : "";
  return entry.version > 0 ? say("Draft saved") : "";
}

// The text above does not move as one criterion closes and the next opens.
function keepHeight(criteria, marking) {
  const { width, height: now } = criteria.getBoundingClientRect();
  const height = Math.max(now, marking.getBoundingClientRect().height);
  const before = criteria.dataset.width === `${width}` ? Number.parseFloat(criteria.style.minHeight || "0") : 0;
  criteria.dataset.width = `${width}`;
  criteria.style.minHeight = `${Math.max(before, Math.ceil(height))}px`;
}

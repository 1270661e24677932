// The survey of a taxonomy: one card at a time, and a button for each category it may belong to. What
// is entered is an entry like a rating's: a card's score is the category's number, so that drafts, the
// line, undo and what this browser keeps are the same.

function isCard(entry, name) {
  return name !== null && entry.survey.names.has(name);
}

// Take up what a survey has beside an entry.
function beginSurvey(shown) {
  const entry = begin(shown);
  const { cards, categories, questions, later, round, answered } = shown;
  entry.survey = { cards, categories, questions, later, round, answered, names: new Set(cards.map((one) => one.name)) };
  return entry;
}

// The card that is shown: the one that was chosen, else the first that is not placed; null for none.
function cardOf(entry) {
  if (isCard(entry, entry.active)) return entry.active;
  return entry.survey.cards.find(({ name }) => !(name in entry.scores))?.name ?? null;
}

// Go on to the next card that is not placed.
function nextCard(entry, name) {
  const names = entry.survey.cards.map((one) => one.name);
  const at = names.indexOf(name);
  entry.active = [...names.slice(at + 1), ...names.slice(0, at)].find((one) => !(one in entry.scores)) ?? null;
}

// Put the card that is shown into a category, and show the next.
function placeCard(life, category) {
  const { entry } = life;
  const name = cardOf(entry);
  if (name === null || !score(entry, name, category)) return;
  nextCard(entry, name);
  life.view.card.focus({ preventScroll: true });
  life.sendSoon();
}

function turnCard(life, direction) {
  const names = life.entry.survey.cards.map((one) => one.name);
  const at = names.indexOf(cardOf(life.entry));
  const next = at < 0 ? (direction > 0 ? 0 : names.length - 1) : (at + direction + names.length) % names.length;
  bringCard(life, names[next]);
}

function bringCard(life, name) {
  life.entry.active = name;
  life.refresh();
  life.view.card.focus();
}

function rateWhole(life, name, point) {
  if (score(life.entry, name, point)) life.sendSoon();
}

function writeOnCard({ view }) { (view.note.hidden ? view.comment : view.note).focus(); }

function placedCount(entry) {
  return entry.survey.cards.filter(({ name }) => name in entry.scores).length;
}

function categoryButton(category, place) {
  const about = [category.definition, category.counts ? `Counts when ${category.counts}.` : "", category.performer ? `Done by ${category.performer}.` : ""];
  const made = button("", { class: "mj-category", "data-place": place });
  made.append(key(`${place}`), node("span", { class: "mj-named" }, node("b", {}, category.name), ...about.filter(Boolean).map((text) => node("small", {}, text))));
  return made;
}

function scaleRow(name, label, question, points) {
  const cells = points.map((point) => {
    const input = node("input", { type: "radio", name: `whole-${name}`, value: point, "aria-label": `${point}` });
    return node("label", { class: "cell" }, input, node("span", { class: "face" }, node("span", { class: "point" }, `${point}`)));
  });
  return node("fieldset", { class: "criterion", "data-whole": name, "data-active": "" },
    node("legend", {}, node("span", { class: "name" }, label), " ", node("span", { class: "question" }, `${question} 1 not at all, 5 completely`)),
    node("div", { class: "cells", style: `--count:${points.length}` }, ...cells));
}

function drawSurvey(life) {
  const { entry } = life;
  const { categories, questions, cards, later, round } = entry.survey;
  const view = {
    survey: true,
    count: node("p", { class: "mj-placed", role: "status" }),
    card: node("div", { class: "mj-card", tabindex: -1, role: "group", "aria-label": "Card" }),
    note: node("textarea", { rows: 2, maxlength: 2000, class: "mj-on-card" }),
    before: button("Card before", { "data-turn": -1 }),
    after: button("Next card", { "data-turn": 1 }),
    back: tool("Undo", "U", { "data-undo": "" }),
    keys: tool("Keys", "?", { "data-help": "" }),
    places: categories.map((one, at) => categoryButton(one, at + 1)),
    piles: categories.map((one) => node("ul", { class: "chips", "aria-label": one.name })),
    wholes: Object.entries(questions).map(([name, question]) => scaleRow(name, entry.criteria.find((one) => one.name === name).label, question, entry.points)),
    comment: node("textarea", { rows: 2, maxlength: 20000, placeholder: "Comment on the whole (optional)", "aria-label": "Comment on the whole (optional)" }),
    button: node("button", { type: "submit", class: "main" }, "Submit"),
    later: button("Later: rate responses first", { "data-later": "" }),
    alert: node("p", { class: "alert", role: "alert" }),
    status: node("p", { class: "status", role: "status" }),
    yours: node("div", { class: "yours", role: "alert" }),
  };
  view.later.hidden = !later;
  const piles = categories.map((one, at) => node("div", { class: "mj-pile" }, node("h3", {}, one.name), view.piles[at]));
  view.form = node("form", { class: "likert mj-survey", novalidate: "", "aria-label": "Survey" },
    node("h1", {}, "Where does it belong?"),
    node("p", { class: "mj-intro" }, `Round ${round}: place ${cards.length} cards, each where you would put it yourself. Press a category, or its number. What you enter is saved as you go.`),
    view.count,
    node("div", { class: "mj-sort" },
      node("div", { class: "mj-deal" }, view.card, view.note, node("div", { class: "tools" }, view.before, view.after, view.back, view.keys)),
      node("div", { class: "mj-places", role: "group", "aria-label": "Categories" }, ...view.places)),
    node("h2", {}, "Placed so far"), node("p", { class: "mj-intro" }, "Press a card to place it anew."), node("div", { class: "mj-piles" }, ...piles),
    node("h2", {}, "On the whole"), ...view.wholes, view.comment,
    view.yours, view.alert, node("div", { class: "ends" }, view.status, view.later, view.button));
  life.frame.left.replaceChildren(...(life.frame.aside ? [life.frame.aside] : []));
  life.frame.right.replaceChildren(view.form);
  life.frame.page("survey");
  listenSurvey(life, view);
  return view;
}

function listenSurvey(life, view) {
  const { form } = view;
  form.addEventListener("submit", (event) => { event.preventDefault(); life.submit(); });
  form.addEventListener("click", (event) => {
    const made = event.target.closest("button");
    if (!made) return;
    const { place, turn, card, choice } = made.dataset;
    if (place) placeCard(life, Number(place));
    else if (turn) turnCard(life, Number(turn));
    else if (card) bringCard(life, card);
    else if ("undo" in made.dataset) life.undo();
    else if ("help" in made.dataset) life.help();
    else if ("later" in made.dataset) life.go("next");
    else if (choice === "mine") life.putBack();
    else if (choice === "stored") life.letGo();
  });
  form.addEventListener("change", (event) => {
    const whole = event.target.closest("[data-whole]");
    if (whole) rateWhole(life, whole.dataset.whole, Number(event.target.value));
  });
  view.note.addEventListener("input", () => {
    const { entry } = life;
    const name = cardOf(entry);
    if (name === null || !isOpen(entry)) return;
    entry.active = name;
    entry.comments[name] = view.note.value;
    changed(entry);
    life.sendSoon();
  });
  view.comment.addEventListener("input", () => {
    if (!isOpen(life.entry)) return;
    life.entry.comment = view.comment.value;
    changed(life.entry);
    life.sendSoon();
  });
}

function showSurvey(view, entry, late) {
  const { cards } = entry.survey;
  const open = isOpen(entry);
  const placed = placedCount(entry);
  set(view.count, `${placed} of ${cards.length} placed`);
  showCard(view, entry);
  const name = cardOf(entry);
  view.places.forEach((one, at) => {
    one.disabled = !open || name === null;
    one.setAttribute("aria-pressed", `${name !== null && entry.scores[name] === at + 1}`);
  });
  showPiles(view, entry);
  for (const one of view.wholes) {
    const point = entry.scores[one.dataset.whole];
    one.toggleAttribute("data-rated", point !== undefined);
    for (const input of one.querySelectorAll("input")) {
      input.checked = Number(input.value) === point;
      input.disabled = !open;
    }
  }
  if (view.comment.value !== entry.comment) view.comment.value = entry.comment;
  view.comment.readOnly = view.note.readOnly = !open;
  view.button.disabled = entry.stage !== "rating";
  view.later.disabled = !open;
  set(view.button, entry.stage === "submitting" ? "Submitting…" : entry.survey.answered ? "Submit again" : "Submit");
  view.button.toggleAttribute("data-ready", unrated(entry).length === 0);
  set(view.alert, entry.error || awayText(entry));
  showOverruled(view.yours, entry);
  set(view.status, statusText(entry, late));
}

function showCard(view, entry) {
  const card = entry.survey.cards.find((one) => one.name === cardOf(entry));
  const drawn = card?.name ?? "";
  if (view.drawn !== drawn) {
    view.drawn = drawn;
    const detail = card?.detail.length ? [node("ul", {}, ...card.detail.map((line) => node("li", {}, line)))] : [];
    view.card.replaceChildren(...(card ? [node("h2", {}, card.text), ...detail] : [node("h2", {}, "All cards are placed"), node("p", {}, "Rate the two questions on the whole below, and submit.")]));
  }
  view.note.hidden = !card;
  const about = card ? entry.comments[card.name] ?? "" : "";
  if (view.note.value !== about) view.note.value = about;
  label(view.note, "Comment on this card (optional)");
}

function showPiles(view, entry) {
  const { cards } = entry.survey;
  const drawn = JSON.stringify([entry.scores, cardOf(entry)]);
  if (view.piled === drawn) return;
  view.piled = drawn;
  view.piles.forEach((pile, at) => {
    const own = cards.filter(({ name }) => entry.scores[name] === at + 1);
    pile.replaceChildren(...own.map(({ name, text }) => node("li", {}, button(text, { "data-card": name, class: "go", "aria-current": `${name === cardOf(entry)}` }))));
  });
}

// Another window has sent other answers meanwhile: what was entered here can be put back.
function showOverruled(place, entry) {
  const mine = overruledIn(entry);
  if (!mine) { place.replaceChildren(); return; }
  if (place.childNodes.length > 0) return;
  const count = Object.keys(mine.scores).length;
  place.replaceChildren(node("p", {}, `Your answers were changed in another window; those are shown. Here you had entered ${count}.`),
    node("div", { class: "ends" }, button("Keep what is shown", { "data-choice": "stored" }), button("Put back what I entered here", { "data-choice": "mine" })));
}

// What stands in the way of submitting, in words.
function surveyRefusal(entry) {
  if (overruledIn(entry)) return "Choose first: what is stored, or what you had entered here.";
  const left = entry.survey.cards.length - placedCount(entry);
  const whole = unrated(entry).filter(({ name }) => !isCard(entry, name)).map((one) => one.label);
  const told = [...(left > 0 ? [`${left} ${left === 1 ? "card" : "cards"}`] : []), ...whole];
  return told.length > 0 ? `Not answered yet: ${told.join(", ")}` : "";
}

// Digits place the card, arrows turn to another, C writes a comment on it, U undoes, Ctrl and Enter
// submit.
function surveyCommand(event, target, life) {
  if (event.isComposing || event.altKey) return null;
  if (event.ctrlKey || event.metaKey) return event.key === "Enter" && !event.repeat ? { does: "submit" } : null;
  if (isWritten(target)) return event.key === "Escape" ? onCard(({ view }) => view.card.focus()) : null;
  if (life.keysOff) return null;
  const { survey, points } = life.entry;
  const digit = Number(event.key);
  const whole = isElement(target, "input[type=radio]") ? target.closest("[data-whole]").dataset.whole : null;
  if (whole && points.includes(digit)) return onCard(() => rateWhole(life, whole, digit));
  if (!whole && !event.repeat && digit >= 1 && digit <= survey.categories.length) return onCard(() => placeCard(life, digit));
  if (!whole) {
    if (event.key === "ArrowRight") return onCard(() => turnCard(life, 1));
    if (event.key === "ArrowLeft") return onCard(() => turnCard(life, -1));
  }
  if (event.repeat) return null;
  return { u: { does: "undo" }, c: onCard(writeOnCard), g: { does: "guide" }, "?": { does: "help" } }[event.key.toLowerCase()] ?? null;
}

function surveyKeys({ points, survey }) {
  return [keyLine("place the card in a category, and go to the next", "1", "–", `${survey.categories.length}`),
    keyLine("the card before, the next card", "←", "→"), keyLine("undo the last entry", "U"),
    keyLine("comment on the card; Esc leaves it", "C"), keyLine("rate, in a row on the whole", `${points[0]}`, "–", `${points.at(-1)}`),
    keyLine("submit", "Ctrl", "Enter"), keyLine("what the study is about, and its guideline", "G"), keyLine("this list", "?")];
}

function onCard(act) { return { does: "onCard", with: act }; }

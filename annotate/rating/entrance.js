// What the form hears from the pointer, and where the component begins.

function listen(life) {
  const { form, comment, about } = life.view;
  form.addEventListener("pointerdown", () => { life.pointed = true; });
  form.addEventListener("change", (event) => chosen(life, event));
  form.addEventListener("focusin", (event) => focused(life, event.target));
  form.addEventListener("submit", (event) => { event.preventDefault(); life.submit(); });
  // A click on a tool must not take the selection away that it is for.
  form.addEventListener("mousedown", (event) => { if (event.target.closest(".marking button")) event.preventDefault(); });
  form.addEventListener("click", (event) => clicked(life, event.target));
  about.addEventListener("change", () => {
    life.entry.about = about.value;
    life.refresh();
    comment.focus();
  });
  comment.addEventListener("input", () => {
    remark(life.entry, comment.value);
    if (overruledIn(life.entry)) life.keep();
    else life.sendSoon();
  });
  life.view.odd.addEventListener("input", () => {
    life.entry.odd = life.view.odd.value;
    changed(life.entry);
    life.sendSoon();
  });
  comment.addEventListener("focus", () => { life.entry.writing = !overruledIn(life.entry); });
  comment.addEventListener("blur", () => {
    if (life.entry) life.entry.writing = false;
    life.refresh();
  });
}

function clicked(life, target) {
  if (target.closest("label")) setTimeout(() => { life.pointed = false; }); // its change comes first
  else life.pointed = false;
  const legend = target.closest("legend");
  if (legend && life.entry.stage === "rating") {
    life.entry.active = legend.closest("fieldset").dataset.name;
    life.refresh();
  }
  const made = target.closest("button");
  if (!made || made.type === "submit") return;
  const { does, flag, kind, remove, change, show: shown } = made.dataset;
  if (does) life[does]();
  else if (flag) life.flag(flag);
  else if (kind && life.marker.at) life.setMark(kind);
  else if (remove) life.unmark(Number(remove));
  else if (change) life.changeMark(Number(change));
  else if (shown) life.marker.bring(life.entry, life.entry.spans[Number(shown)]);
}

function chosen(life, event) {
  if (event.target.type !== "radio") return;
  const { name } = event.target.closest("fieldset").dataset;
  const taken = score(life.entry, name, chosenOf(event.target.value));
  if (taken && life.pointed) advance(life.entry, name);
  life.pointed = false;
  life.sendSoon();
}

function focused(life, target) {
  const block = target.closest("fieldset");
  if (!block || life.pointed || life.entry.stage !== "rating") return;
  life.entry.active = block.dataset.name;
  life.refresh();
}

// What stands in the way of submitting, in words.
function refusal(entry) {
  if (overruledIn(entry)) return say("Choose first: what is stored, or what you had entered here.");
  const left = missing(entry).map((one) => one.label);
  if (left.length > 0) {
    const names = left.join(", ");
    return entry.flags.includes(NO_CONTEXT) && !entry.training
      ? say("Not rated yet: {names}. Without enough context rate all, or undo the scores you gave", { names })
      : say("Not rated yet: {names}", { names });
  }
  return needsWhy(entry) ? whyText(entry) : "";
}

// As the system is, and so the room.
function appearance() {
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

// The room stands on the page's body, over what Streamlit draws: that may come and go with its own
// connection, and takes no focus while the room is there.
const HOUSE = { life: null, leaving: null };
const BEHIND = "root";

function settle(inert) {
  const behind = document.getElementById(BEHIND);
  if (behind) behind.inert = inert;
}

async function arrive() {
  for (let attempt = 0; HOUSE.life === null; attempt += 1) {
    const answer = await request(ROOM);
    if (answer?.status === SIGNED_OUT) return window.location.assign("/login");
    if (answer?.body && HOUSE.life === null) return enter(answer.body);
    await new Promise((done) => setTimeout(done, AGAIN_MS[Math.min(attempt, AGAIN_MS.length - 1)]));
  }
}

function enter({ room, shown }) {
  kept.tag = room.tag;
  WORDS.said = room.words;
  kept.tidy();
  HOUSE.life = new Life(room);
  HOUSE.life.root.prepend(node("style", {}, STYLE));
  document.body.append(HOUSE.life.root);
  settle(true);
  HOUSE.life.frame.answers(room.answers);
  HOUSE.life.show(shown);
  if (room.guide && shown.stage === "rate" && shown.progress?.done === 0 && shown.entry.version === 0) HOUSE.life.guide();
  deliver(HOUSE.life.entry?.code);
}

function depart() {
  HOUSE.life?.end();
  HOUSE.life = null;
  settle(false);
}

export default function () {
  clearTimeout(HOUSE.leaving);
  if (HOUSE.life === null && !HOUSE.coming) {
    HOUSE.coming = true;
    arrive().finally(() => { HOUSE.coming = false; });
  }
  return () => { HOUSE.leaving = setTimeout(depart, 400); };
}

// What the form hears from the pointer, and where the component begins.

function listen(life) {
  const { form, comment } = life.view;
  form.addEventListener("pointerdown", () => { life.pointed = true; });
  form.addEventListener("change", (event) => chosen(life, event));
  form.addEventListener("pointerover", (event) => hover(life, event.target));
  form.addEventListener("pointerleave", () => hover(life, null));
  form.addEventListener("focusin", (event) => focused(life, event.target));
  form.addEventListener("submit", (event) => { event.preventDefault(); life.submit(); });
  // A click on a tool must not take the selection away that it is for.
  form.addEventListener("mousedown", (event) => { if (event.target.closest(".marking button")) event.preventDefault(); });
  form.addEventListener("click", (event) => clicked(life, event.target.closest("button")));
  comment.addEventListener("input", () => {
    remark(life.entry, comment.value);
    life.sendSoon();
  });
}

function clicked(life, target) {
  if (!target) return;
  const { does, flag, kind, remove, show: shown } = target.dataset;
  if (does) life[does]();
  else if (flag) life.flag(flag);
  else if (kind && life.marker.at) life.setMark(kind);
  else if (remove) life.unmark(Number(remove));
  else if (shown) life.marker.bring(life.entry, life.entry.spans[Number(shown)]);
}

function chosen(life, event) {
  if (event.target.type !== "radio") return;
  const { name } = event.target.closest("fieldset").dataset;
  const taken = score(life.entry, name, Number(event.target.value));
  if (taken && life.pointed) advance(life.entry, name);
  life.pointed = false;
  life.sendSoon();
}

function hover(life, target) {
  const over = target?.closest(".cell");
  life.view.hovered = over
    ? [over.closest("fieldset").dataset.name, Number(over.querySelector("input").value)]
    : null;
  showAnchors(life.view, life.entry);
}

function focused(life, target) {
  const block = target.closest("fieldset");
  if (!block || life.pointed || life.entry.stage !== "rating") return;
  life.entry.active = block.dataset.name;
  life.refresh();
}

// What stands in the way of submitting, in words.
function refusal(entry) {
  const left = missing(entry).map((one) => one.label);
  if (left.length > 0) {
    const partly = entry.flags.includes(NO_CONTEXT) ? ". Without enough context rate all, or undo the scores you gave" : "";
    return `Not rated yet: ${left.join(", ")}${partly}`;
  }
  return needsWhy(entry) ? whyText(entry) : "";
}

// The page's style sheet gives the response what room the form leaves.
function tellHeight(pixels) {
  document.documentElement.style.setProperty("--mj-form", `${Math.ceil(pixels)}px`);
}

// The next response is read from its beginning, and the keys that scroll belong to it.
function toTheTop() {
  document.querySelector("[data-testid=stMain]")?.scrollTo(0, 0);
  document.querySelector(".mj-response")?.focus({ preventScroll: true });
}

export default function (component) {
  const { parentElement } = component;
  if (!LIVES.has(parentElement)) LIVES.set(parentElement, new Life(component));
  LIVES.get(parentElement).receive(component);
  return () => {
    LIVES.get(parentElement)?.end();
    LIVES.delete(parentElement);
  };
}

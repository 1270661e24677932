// The form's life: what is clicked or typed changes the entry at once; the entry is sent after a
// short pause, or at once when it is submitted, and again until the server has answered for it.

const PAUSE_MS = 200;
const AGAIN_MS = 4000;
const IDLE_MS = 60000;
const LIVES = new WeakMap();

class Life {
  constructor(component) {
    this.root = document.createElement("div");
    component.parentElement.appendChild(this.root);
    this.waiting = null;
    this.sentAt = 0;
    this.touchedAt = Date.now();
    this.pointed = false;
    this.onKey = (event) => this.key(event);
    this.onInput = () => { this.touchedAt = Date.now(); };
    this.onHide = () => { if (document.hidden && this.waiting) this.send(); };
    this.onLeave = (event) => { if (!isSaved(this.entry)) event.preventDefault(); };
    window.addEventListener("keydown", this.onKey, true);
    for (const kind of ["keydown", "pointerdown", "wheel", "scroll"]) {
      window.addEventListener(kind, this.onInput, { capture: true, passive: true });
    }
    document.addEventListener("visibilitychange", this.onHide);
    window.addEventListener("beforeunload", this.onLeave);
    this.clock = setInterval(() => this.tick(), 1000);
    this.size = new ResizeObserver(([one]) => tellHeight(one.contentRect.height));
    this.size.observe(this.root);
  }

  receive(component) {
    this.tell = component.setStateValue;
    const [data] = component.data;
    const isNew = this.entry?.code !== data.code;
    if (isNew) this.start(data);
    else if (reconcile(this.entry, data)) this.sendSoon();
    this.hear(data.answer);
    this.refresh();
  }

  start(data) {
    const before = this.entry;
    clearTimeout(this.waiting);
    this.waiting = null;
    this.entry = begin(data);
    this.view = draw(this.root, this.entry);
    this.listen();
    if (before) setTimeout(toTheTop);
  }

  hear(answer) {
    if (!answer?.error || answer.again) return;
    const about = answer.code === this.entry.code;
    if (about && answer.seq !== this.entry.seq) return;
    this.entry.error = answer.error;
    if (!about) return;
    this.entry.stage = "rating";
    this.refused = answer.seq;
  }

  listen() {
    const { form, comment } = this.view;
    form.addEventListener("pointerdown", () => { this.pointed = true; });
    form.addEventListener("change", (event) => this.chosen(event));
    form.addEventListener("pointerover", (event) => this.hover(event.target));
    form.addEventListener("pointerleave", () => this.hover(null));
    form.addEventListener("focusin", (event) => this.focused(event.target));
    form.addEventListener("submit", (event) => { event.preventDefault(); this.submit(); });
    comment.addEventListener("input", () => {
      remark(this.entry, comment.value);
      this.sendSoon();
    });
  }

  chosen(event) {
    if (event.target.type !== "radio") return;
    const { name } = event.target.closest("fieldset").dataset;
    const taken = score(this.entry, name, Number(event.target.value));
    if (taken && this.pointed) advance(this.entry, name);
    this.pointed = false;
    this.sendSoon();
  }

  hover(target) {
    const over = target?.closest(".cell");
    this.view.hovered = over
      ? [over.closest("fieldset").dataset.name, Number(over.querySelector("input").value)]
      : null;
    showAnchors(this.view, this.entry);
  }

  focused(target) {
    const block = target.closest("fieldset");
    if (!block || this.pointed || this.entry.stage !== "rating") return;
    this.entry.active = block.dataset.name;
    this.refresh();
  }

  key(event) {
    this.pointed = false;
    const target = event.composedPath()[0];
    const command = keyCommand(event, target, this.entry);
    if (!command) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    this[command.does](command.with, target);
  }

  rate(point) {
    const name = this.entry.active;
    if (name === null || !score(this.entry, name, point)) return;
    advance(this.entry, name);
    this.follow();
    this.sendSoon();
  }

  move(direction) {
    if (this.entry.active === null) return;
    if (step(this.entry, this.entry.active, direction)) this.sendSoon();
  }

  confirm() {
    if (this.entry.active in this.entry.scores) advance(this.entry, this.entry.active);
    this.follow();
    this.refresh();
  }

  undo() {
    if (!undo(this.entry)) return;
    this.follow();
    this.sendSoon();
  }

  write() { this.view.comment.focus(); }

  leave() { this.view.comment.blur(); }

  // The window follows the active criterion; so does the focus, but only from inside the form:
  // that of someone reading stays put.
  follow() {
    const block = this.view.blocks.find((one) => one.dataset.name === this.entry.active);
    block?.scrollIntoView({ block: "nearest" });
    const within = this.root.getRootNode().activeElement;
    if (!within || !this.root.contains(within)) return;
    const target = block?.querySelector("input:checked") ?? block?.querySelector("input");
    (target ?? this.view.button).focus({ preventScroll: true });
  }

  submit() {
    const { entry } = this;
    if (entry.stage !== "rating") return;
    const missing = unrated(entry);
    if (missing.length > 0) {
      entry.error = `Not rated yet: ${missing.map((one) => one.label).join(", ")}`;
      entry.active = missing[0].name;
      this.follow();
      this.refresh();
      return;
    }
    entry.seq += 1;
    entry.attempt = 0;
    entry.error = "";
    entry.stage = "submitting";
    this.send();
  }

  sendSoon() {
    this.refresh();
    this.waiting ??= setTimeout(() => this.send(), PAUSE_MS);
  }

  send() {
    clearTimeout(this.waiting);
    this.waiting = null;
    this.sentAt = Date.now();
    this.tell("message", message(this.entry));
    this.refresh();
  }

  tick() {
    if (!this.entry) return;
    if (!document.hidden && Date.now() - this.touchedAt < IDLE_MS) this.entry.seconds += 1;
    const pending = !isSaved(this.entry) && this.refused !== this.entry.seq;
    if (pending && !this.waiting && this.isLate()) {
      this.entry.attempt += 1;
      this.send();
      this.refresh(true);
    }
  }

  isLate() { return Date.now() - this.sentAt > AGAIN_MS; }

  refresh(late = false) { show(this.view, this.entry, late || this.entry.attempt > 0); }

  end() {
    clearInterval(this.clock);
    clearTimeout(this.waiting);
    window.removeEventListener("keydown", this.onKey, true);
    for (const kind of ["keydown", "pointerdown", "wheel", "scroll"]) {
      window.removeEventListener(kind, this.onInput, { capture: true });
    }
    document.removeEventListener("visibilitychange", this.onHide);
    window.removeEventListener("beforeunload", this.onLeave);
    this.size.disconnect();
    this.root.remove();
  }
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

// The form's life: what is clicked or typed changes the entry at once; the entry is sent after a
// short pause, or at once when it is submitted, and again until the server has answered for it.

const PAUSE_MS = 200;
const AGAIN_MS = 4000;
const KEYS_OFF = "medjury-keys-off";
const LIVES = new WeakMap();

class Life {
  constructor(component) {
    this.root = document.createElement("div");
    component.parentElement.appendChild(this.root);
    this.waiting = null;
    this.sentAt = 0;
    this.pointed = false;
    this.keysOff = sessionStorage.getItem(KEYS_OFF) === "1";
    this.marker = new Marker(() => this.refresh());
    this.clock = new Clock((active) => this.tick(active));
    this.heard = [
      [window, "keydown", (event) => this.key(event)],
      [window, "beforeunload", (event) => { if (!isSaved(this.entry)) event.preventDefault(); }],
      [document, "visibilitychange", () => { if (document.hidden && this.waiting) this.send(); }],
      [document, "selectionchange", () => this.selected()],
    ];
    for (const [where, kind, does] of this.heard) where.addEventListener(kind, does, true);
    this.size = new ResizeObserver(([one]) => tellHeight(one.contentRect.height));
    this.size.observe(this.root);
  }

  receive(component) {
    this.tell = component.setStateValue;
    const [data] = component.data;
    const isNew = this.entry?.code !== data.code || this.entry.mode !== (data.mode ?? "rate");
    if (isNew) this.start(data);
    else if (reconcile(this.entry, data)) this.sendSoon();
    this.hear(data.answer);
    this.refresh();
    setTimeout(() => this.refresh());
  }

  start(data) {
    const before = this.entry;
    clearTimeout(this.waiting);
    this.waiting = null;
    this.marker.reset();
    this.root.querySelector("dialog")?.close();
    this.entry = takenUp(data);
    this.view = draw(this.root, this.entry);
    listen(this);
    if (!isSaved(this.entry)) this.sendSoon();
    if (before) setTimeout(toTheTop);
    if (this.clock.isDue(data.pause ?? 0)) this.pause(data.pause);
  }

  hear(answer) {
    const { entry } = this;
    const mine = answer?.code === entry.code && answer.seq === entry.seq;
    if (mine) entry.away = answer.again;
    if (mine && entry.stage === "leaving" && !answer.again) entry.stage = "rating";
    if (!answer?.error || answer.again) return;
    const about = answer.code === entry.code;
    if (about && answer.seq !== entry.seq) return;
    entry.error = answer.error;
    if (!about) return;
    entry.stage = "rating";
    this.refused = answer.seq;
  }

  key(event) {
    this.pointed = false;
    if (this.root.querySelector("dialog[open]")) return;
    const target = event.composedPath()[0];
    const command = keyCommand(event, target, this);
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

  type(sign) {
    if (this.entry.active !== null && typed(this.entry, this.entry.active, sign)) this.sendSoon();
  }

  turnPage(direction) {
    const pane = document.querySelector(".mj-response");
    pane?.scrollBy(0, direction * 0.85 * pane.clientHeight);
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

  flag(flag) { if (toggleFlag(this.entry, flag)) this.sendSoon(); }

  mark() {
    if (this.marker.at) this.marker.stop();
    else if (this.entry.stage === "rating") this.marker.begin(this.entry);
  }

  moveMark(how) { this.marker.move(how); }

  setMark(error) {
    const { entry, marker, view } = this;
    const span = { criterion: view.marking.choice.value, ...marker.stretch(entry), error };
    marker.after = marker.at[1];
    marker.stop();
    if (setSpans(entry, [...entry.spans, span])) this.sendSoon();
  }

  unmark(place) {
    if (setSpans(this.entry, this.entry.spans.filter((_, n) => n !== place))) this.sendSoon();
  }

  selected() {
    if (this.entry?.tools && this.entry.stage === "rating") this.marker.selected(this.entry);
  }

  previous() { if (this.entry.previous) this.go("previous"); }

  next() { if (this.entry.rated) this.go("next"); }

  go(where, reason = "") {
    const { entry } = this;
    if (entry.stage !== "rating" && entry.stage !== "after") return;
    this.marker.stop();
    leave(entry, "leaving", where, reason);
    this.send();
  }

  recuse() {
    if (this.entry.stage !== "rating" || this.entry.rated) return;
    openRecusal(this.root, (reason) => this.go("recuse", reason));
  }

  help() {
    openKeys(this.root, this.entry, this.keysOff, (off) => {
      this.keysOff = off;
      sessionStorage.setItem(KEYS_OFF, off ? "1" : "0");
    });
  }

  pause(minutes) {
    this.clock.pause();
    openPause(this.root, minutes, () => this.clock.goOn());
  }

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
    if (entry.stage === "after") this.go("next");
    if (entry.stage !== "rating") return;
    const error = refusal(entry);
    if (error) {
      entry.error = error;
      entry.active = missing(entry)[0]?.name ?? entry.active;
      this.follow();
      this.refresh();
      return;
    }
    this.marker.stop();
    leave(entry, "submitting");
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
    const told = message(this.entry);
    if (this.entry.tools && this.entry.stage === "rating") keepDraft(this, told);
    else tellPage(this, told);
    this.refresh();
  }

  tick(active) {
    if (!this.entry) return;
    if (active) this.clock.work();
    if (active && this.entry.stage !== "after") this.entry.seconds += 1;
    if (this.entry.tools) this.marker.show(this.entry);
    const pending = !isSaved(this.entry) && this.refused !== this.entry.seq;
    if (pending && !this.waiting && Date.now() - this.sentAt > AGAIN_MS) {
      this.entry.attempt += 1;
      this.send();
      this.refresh();
    }
  }

  refresh() {
    if (!this.view) return;
    show(this.view, this.entry, this.entry.attempt > 0);
    if (this.entry.tools) showTools(this.view, this.entry, this.marker, this.marker.show(this.entry));
  }

  end() {
    this.gone = true;
    if (this.entry) leaveBehind(this.entry);
    clearTimeout(this.waiting);
    for (const [where, kind, does] of this.heard) where.removeEventListener(kind, does, true);
    this.clock.end();
    this.marker.reset();
    this.size.disconnect();
    this.root.remove();
  }
}

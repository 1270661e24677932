// The room's life: what is clicked or typed changes the entry at once and is kept in this browser;
// the entry is sent after a short pause, or at once when it is submitted, and again until the server
// has answered for it. The answer to a submission is the next response.

const PAUSE_MS = 300;
const LATE_MS = 1000;
const LEAVING_MS = 3000;
const HELD_MS = 1000;
const KEYS_OFF = "medjury-keys-off";

class Life {
  constructor(room) {
    this.room = room;
    this.root = node("div", { class: "mj-room" });
    this.waiting = null;
    this.pointed = false;
    this.held = false;
    this.keysOff = sessionStorage.getItem(KEYS_OFF) === "1";
    this.quiet = new Quiet();
    this.line = new Line(this);
    this.frame = new Frame(this);
    this.marker = new Marker(() => this.refresh());
    this.clock = new Clock((active) => this.tick(active));
    this.heardFrom = [
      [window, "keydown", (event) => this.key(event)],
      [window, "keyup", (event) => this.quiet.released(event)],
      [window, "pointerdown", () => { this.held = true; }],
      [window, "pointerup", () => { this.held = false; }],
      [window, "pointercancel", () => { this.held = false; }],
      [window, "blur", () => this.quiet.forget()],
      [window, "online", () => this.line.retry()],
      [window, "pagehide", () => this.flush()],
      [window, "beforeunload", (event) => { if (this.isLeft() || this.isNoting()) event.preventDefault(); }],
      [document, "visibilitychange", () => { if (document.hidden) this.flush(); else this.line.retry(); }],
      [window, "focus", () => this.renew()],
      [document, "selectionchange", () => this.selected()],
    ];
    for (const [where, kind, does] of this.heardFrom) where.addEventListener(kind, does, true);
  }

  show(shown, late = false) {
    this.frame.progress(shown);
    this.forget();
    if (shown.stage === "rate") this.rate(shown);
    else if (shown.stage === "feedback") this.frame.feedback(shown, this.readButton(shown));
    else if (shown.stage === "outcome") this.frame.note(fromHtml(shown.html), this.readButton(shown));
    else if (shown.stage === "consent") this.frame.consent(shown, this.consentButton(shown));
    else this.note(shown);
    this.quiet.begin(this.root, late);
  }

  // Let go of the response that was shown.
  forget() {
    clearTimeout(this.waiting);
    this.waiting = null;
    this.marker.reset();
    for (const dialog of this.root.querySelectorAll("dialog")) dialog.close();
    this.entry = this.view = null;
  }

  rate(shown) {
    this.frame.rate(shown);
    this.frame.typed(this.isTyped ?? shown.typed);
    this.entry = begin(shown);
    takeUp(this.entry, shown.entry);
    this.view = draw(this.frame.formPlace, this.entry);
    listen(this);
    this.refresh();
    document.querySelector(".mj-response")?.focus({ preventScroll: true });
    if (!isSaved(this.entry)) this.send();
    if (this.clock.isDue(shown.pause ?? 0)) this.pause(shown.pause);
  }

  onCard(act) { act(this); }

  note({ title, text, back }) {
    const words = node("div", {}, node("h1", {}, say(title)), node("p", {}, say(text)));
    const previous = button(say("Previous"), { "data-key": "p" });
    previous.addEventListener("click", async () => {
      const answer = await request(`${ROOM}/back`, { code: back });
      if (answer?.body) this.show(answer.body.shown);
    });
    this.frame.note(words, ...(back ? [previous] : []));
  }

  readButton({ stage, read, go }) {
    const made = button(say(go), { class: "main", "data-ready": "", "data-key": "Enter n" });
    made.addEventListener("click", () => this.answered(made, `${ROOM}/read`, { stage, read }));
    return made;
  }

  consentButton({ sha256 }) {
    const made = button(say("I have read this and consent"), { class: "main", "data-ready": "" });
    made.addEventListener("click", () => this.answered(made, `${ROOM}/consent`, { sha256 }));
    return made;
  }

  // Ask once; the button says where nobody answers, and can be pressed again.
  async answered(made, path, told) {
    made.disabled = true;
    const answer = await request(path, told);
    made.disabled = false;
    if (answer?.body) this.show(answer.body.shown);
    else if (answer === null) made.textContent = say("{what} (cannot be reached just now)", { what: made.textContent.replace(/ \(.*\)$/, "") });
    else window.location.reload();
  }

  // What is drawn anew between the press and the end of a click would take the click away.
  async released() {
    if (!this.held) return;
    await new Promise((done) => {
      setTimeout(done, HELD_MS);
      window.addEventListener("pointerup", () => setTimeout(done), { once: true });
    });
  }

  heard(told, answer) {
    const { entry } = this;
    if (!entry || entry.code !== told.code) return;
    if (answer === null) {
      this.refused(told, say("The page cannot be understood by the study; reload it. What you entered is kept."));
      return;
    }
    entry.away = false;
    if (answer.version !== null) {
      entry.version = answer.version;
      entry.savedSeq = Math.max(entry.savedSeq, told.seq);
    }
    if (answer.stale && answer.stored) this.overruled(answer.stored);
    if (answer.error && !answer.stale) this.refused(told, answer.error);
    if (!answer.error) kept.settle(told);
    if (answer.shown) this.show(answer.shown, performance.now() - entry.leftAt > LATE_MS);
    else if (!isSaved(entry) && this.refusedSeq !== entry.seq) this.sendSoon();
    this.refresh();
  }

  overruled(stored) {
    const { entry } = this;
    if (isOwnPast(entry, stored)) entry.version = stored.version;
    else overrule(entry, stored);
    this.keep();
  }

  refused(told, error) {
    const { entry } = this;
    if (entry.seq !== told.seq) return;
    entry.error = say(error);
    entry.stage = "rating";
    this.refusedSeq = entry.seq;
    this.refresh();
  }

  unheard(signedOut) {
    const { entry } = this;
    if (!entry) return;
    entry.away = signedOut ? "signed out" : "unreachable";
    entry.attempt += 1;
    this.refresh();
  }

  key(event) {
    this.pointed = false;
    const target = event.composedPath()[0];
    const early = this.quiet.swallows(event, this.entry !== null && !["rating", "after"].includes(this.entry.stage));
    if (!isForRoom(this.root, target)) return;
    if (early && !isWritten(target)) {
      event.preventDefault();
      event.stopImmediatePropagation();
      return;
    }
    const command = this.command(event, target);
    if (!command) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    this[command.does](command.with, target);
  }

  command(event, target) {
    const plain = !isWritten(target) && !event.ctrlKey && !event.metaKey && !event.altKey;
    if (this.guideOpen && event.key === "Escape" && plain && !this.marker.at) return { does: "guide" };
    if (!this.entry) return this.press(event, target);
    if (event.key === "/" && plain && !this.keysOff) return { does: "find" };
    return keyCommand(event, target, this);
  }

  // On a page without a form, the key of its button.
  press(event, target) {
    if (isWritten(target) || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return null;
    if (isElement(target, "button, a, summary") && event.key === "Enter") return null;
    const key = letterOf(event);
    if (this.keysOff && key.length === 1) return null;
    const made = [...this.root.querySelectorAll("button[data-key]")].find((one) => one.dataset.key.split(" ").includes(key));
    return made ? { does: "click", with: made } : null;
  }

  click(made) { made.click(); }

  find() { this.frame.reader.open(); }

  confirm() {
    if (this.entry.active in this.entry.scores) advance(this.entry, this.entry.active);
    this.follow();
    this.refresh();
  }

  rateActive(point) {
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

  // The texts laid out, or as they were typed: as the benchmark has it, until one chooses.
  switchTyped() {
    this.isTyped = !this.root.hasAttribute("data-typed");
    this.frame.typed(this.isTyped);
  }

  turnPage(direction) {
    for (const pane of document.querySelectorAll(".mj-response, .mj-second")) pane.scrollBy(0, direction * 0.85 * pane.clientHeight);
  }

  other() { this.frame.otherInFront(); }

  undo() {
    if (!undo(this.entry)) return;
    this.follow();
    this.sendSoon();
  }

  write() { this.view.comment.focus(); }

  leave() { document.activeElement?.blur(); }

  // A flag asks in one line what is odd.
  flag(flag) {
    if (!toggleFlag(this.entry, flag)) return;
    this.sendSoon();
    if (flag === FLAG && this.entry.flags.includes(FLAG)) this.view.odd.focus();
  }

  // To the response of which the coordinator has answered a flag.
  async toFlagged() {
    const code = this.frame.answered;
    if (!code || (this.entry && !isSaved(this.entry))) return;
    const answer = await request(`${ROOM}/back`, { code });
    if (answer?.body) this.show(answer.body.shown);
  }

  mark() {
    if (this.marker.at) this.marker.stop();
    else if (isOpen(this.entry)) this.marker.begin(this.entry);
    if (!this.marker.at) document.querySelector(".mj-response")?.focus({ preventScroll: true });
  }

  moveMark(how) { this.marker.move(how); }

  otherSide() { this.marker.turn(this.entry); }

  setMark(error) {
    const { entry, marker, view } = this;
    const { choice, severity, note, link } = view.marking;
    const said = { criterion: choice.value, error, severity: severity.value, note: note.value.trim(), linked: link.value === "" ? null : Number(link.value) };
    const span = { ...marker.stretch(entry), ...said };
    const place = marker.changing;
    marker.after[marker.side] = marker.at[1];
    marker.stop();
    if (setSpans(entry, withSpan(entry.spans, span, place))) this.sendSoon();
    document.querySelector(".mj-response")?.focus({ preventScroll: true });
  }

  changeMark(place) { if (isOpen(this.entry)) this.marker.change(this.entry, place); }

  unmark(place) {
    if (setSpans(this.entry, withoutSpan(this.entry.spans, place))) this.sendSoon();
  }

  selected() {
    if (this.entry && isOpen(this.entry)) this.marker.selected(this.entry);
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
    if (this.entry.stage !== "rating" || this.entry.rated || this.entry.training) return;
    openRecusal(this.root, (reason) => this.go("recuse", reason));
  }

  help() {
    openKeys(this.root, this.entry, this.keysOff, (off) => {
      this.keysOff = off;
      sessionStorage.setItem(KEYS_OFF, off ? "1" : "0");
    });
  }

  guide() {
    if (!this.room.guide) return;
    this.guideOpen = !this.guideOpen;
    this.frame.showGuide(this.guideOpen);
  }

  pause(minutes) {
    this.clock.pause();
    openPause(this.root, minutes, () => this.clock.goOn());
  }

  putBack() {
    putBack(this.entry);
    this.sendSoon();
    document.querySelector(".mj-response")?.focus({ preventScroll: true });
  }

  letGo() {
    this.entry.aside.shift();
    this.entry.error = "";
    this.keep();
    if (isSaved(this.entry)) kept.settle(message(this.entry));
    this.refresh();
    document.querySelector(".mj-response")?.focus({ preventScroll: true });
  }

  async signOut(event) {
    event.preventDefault();
    if (this.isLeft()) await Promise.race([this.line.settled(), new Promise((done) => setTimeout(done, LEAVING_MS))]);
    if (this.isLeft() || kept.all().length > 0) openLeaving(this.root, () => this.signedOut());
    else this.signedOut();
  }

  // Whether something that is entered is not stored yet.
  isLeft() {
    return this.entry !== null && !isSaved(this.entry);
  }

  // Whether a note on a mark is being written: nobody has it before the mark is set.
  isNoting() {
    return this.entry !== null && this.marker.at !== null && this.view.marking.note.value.trim() !== "";
  }

  signedOut() {
    kept.clear();
    this.entry = null;
    window.location.assign("/logout");
  }

  // The window follows the active criterion; so does the focus, but only from inside the form:
  // that of someone reading stays put.
  follow() {
    this.refresh();
    const block = this.view.blocks.find((one) => one.dataset.name === this.entry.active);
    block?.scrollIntoView({ block: "nearest" });
    const within = document.activeElement;
    if (!within || !this.view.form.contains(within)) return;
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

  keep() {
    this.entry.unkept = !kept.put(message(this.entry), this.entry.aside);
  }

  sendSoon() {
    this.keep();
    this.refresh();
    this.waiting ??= setTimeout(() => this.send(), PAUSE_MS);
  }

  send() {
    clearTimeout(this.waiting);
    this.waiting = null;
    this.keep();
    this.line.send();
    this.refresh();
  }

  // Another tab may have gone on meanwhile: show what is stored, where nothing waits in this one.
  async renew() {
    const { entry } = this;
    const isIdle = () => this.entry === entry && entry?.stage === "rating" && isSaved(entry) && !entry.rated && !overruledIn(entry) && !this.marker.at && this.line.missed === 0;
    if (!entry || !isIdle() || this.waiting || this.line.flying) return;
    const { seq } = entry;
    const answer = await request(ROOM);
    const now = answer?.body?.shown;
    if (!now || !isIdle() || entry.seq !== seq || this.waiting) return;
    if (now.code !== entry.code || now.entry.version > entry.version) this.show(now);
  }

  // The page may be gone in a moment: send what is not stored yet.
  flush() {
    if (this.entry && this.waiting) this.send();
  }

  tick(active) {
    if (!this.entry) return;
    if (active) this.clock.work();
    if (active && this.entry.stage !== "after") this.entry.seconds += 1;
    this.marker.show(this.entry);
  }

  refresh() {
    if (!this.view) return;
    show(this.view, this.entry, this.entry.attempt > 0);
    showTools(this.view, this.entry, this.marker, this.marker.show(this.entry));
    keepHeight(this.view.criteria, this.view.marking.bar);
  }

  end() {
    this.gone = true;
    if (this.entry && !isSaved(this.entry)) this.keep();
    clearTimeout(this.waiting);
    for (const [where, kind, does] of this.heardFrom) where.removeEventListener(kind, does, true);
    this.line.end();
    this.clock.end();
    this.marker.reset();
    this.root.remove();
  }
}

// Which key does what. Keys are obeyed only where the focus is in the room and no dialog is open,
// whoever's it is; nothing is taken from a field that is being written in, nor from a shortcut of the
// browser; single keys can be switched off in the list of keys.

const STEPS = { ArrowRight: 1, ArrowLeft: -1 };
const PAGES = { PageDown: 1, PageUp: -1 };
const LETTERS = { u: "undo", Backspace: "undo", c: "write" };
const ANSWER_KEYS = { d: "not_applicable", t: "cannot_tell" }; // in the place of a score
const FLAG_KEYS = { f: "flag", n: NO_CONTEXT, a: "names_author" };
const PAIR_KEYS = { x: { does: "flag", with: BOTH_UNSAFE }, o: { does: "other" } };
const TOOLS = { j: "toFlagged", s: "mark", p: "previous", b: "next", r: "recuse", g: "guide", v: "switchTyped", "?": "help" };
const MOVES = {
  ArrowDown: ["sentence", 1], ArrowUp: ["sentence", -1], ArrowRight: ["word", 1], ArrowLeft: ["word", -1],
};
const TAKEN = "ucfnaspbrgxvj"; // letters that mean something while nothing is marked, or end a mark
const DIALOGS = "dialog[open], [role=dialog], [role=alertdialog], [aria-modal=true]";
const QUIET_MS = 150;
const BURST_MS = 400; // keys that follow one another so fast were meant for one response
const STILL_MS = 500; // without a key, where a response comes so late that somebody types on into it

// A letter for each error type, of its own name, that no other tool has.
function errorKeys(errors) {
  const taken = new Set(TAKEN);
  const found = {};
  for (const error of errors) {
    const letter = [...`${error.toLowerCase()}abcdefghijklmnopqrstuvwxyz`].find((one) => /[a-z]/.test(one) && !taken.has(one));
    if (!letter) continue;
    taken.add(letter);
    found[error] = letter;
  }
  return found;
}

function isWritten(target) {
  return target instanceof Element && target.matches("textarea, input:not([type=radio], [type=checkbox]), select, [contenteditable]");
}

function isElement(target, selector) {
  return target instanceof Element && target.matches(selector);
}

// Where somebody stands who reads: on the page or in a text, at nothing that has keys of its own.
function isReading(target) {
  return target === document.body || isElement(target, ".mj-pane, .mj-aside");
}

// Whether a key is meant for the room: nobody else has the focus, and nothing stands in front of it.
function isForRoom(root, target) {
  const at = document.activeElement;
  if (at && at !== document.body && !root.contains(at)) return false;
  if (target instanceof Node && target !== document.body && target !== document.documentElement && !root.contains(target)) return false;
  return ![...document.querySelectorAll(DIALOGS)].some((one) => one.getClientRects().length > 0);
}

// Keys that were struck for the response before: none counts before a new one is painted and in the
// first moment after, nor one that follows such a key so fast that it was meant for the same response,
// nor one that is still held down from before. What counts is when a key was struck, not when a busy
// page comes to hear of it.
class Quiet {
  constructor() {
    this.down = new Set();
    this.held = new Set();
    this.until = 0;
    this.struckAt = -STILL_MS;
    this.still = 0;
    this.shown = 0;
    this.earlyAt = -BURST_MS;
  }

  // `late` is a response that comes long after the one before was submitted.
  begin(root, late = false) {
    this.still = late && performance.now() - this.struckAt < STILL_MS ? STILL_MS : 0;
    this.until = Infinity;
    this.held = new Set(this.down);
    this.shown += 1;
    root.setAttribute("data-quiet", "");
    const { shown } = this;
    requestAnimationFrame(() => requestAnimationFrame(() => this.painted(root, shown)));
  }

  painted(root, shown) {
    if (shown !== this.shown) return;
    this.until = Math.max(performance.now() + Math.max(QUIET_MS, this.still), this.earlyAt + BURST_MS);
    this.open(root);
  }

  open(root) {
    const left = this.until - performance.now();
    if (left <= 0) root.removeAttribute("data-quiet");
    else if (left < Infinity) setTimeout(() => this.open(root), left + 1);
  }

  // `leaving` is when the response that is shown has been submitted already.
  swallows(event, leaving) {
    const struckAt = event.timeStamp;
    const early = struckAt < this.until;
    this.struckAt = struckAt;
    if (leaving) this.earlyAt = struckAt;
    if (early) {
      this.earlyAt = struckAt;
      this.until = Math.max(this.until, struckAt + Math.max(BURST_MS, this.still));
    }
    this.down.add(event.code);
    return early || this.held.has(event.code);
  }

  released(event) {
    this.down.delete(event.code);
    this.held.delete(event.code);
  }

  forget() {
    this.down.clear();
    this.held.clear();
  }
}

function keyCommand(event, target, life) {
  const { entry, marker, keysOff } = life;
  if (!entry || event.isComposing || event.altKey) return null;
  const chord = event.ctrlKey || event.metaKey;
  if (chord) return event.key === "Enter" && !event.repeat ? { does: "submit" } : null;
  if (isWritten(target)) return writing(event, target, life);
  if (keysOff) return null;
  const key = letterOf(event);
  if (marker.at) return markKey(event, key, target, life);
  if (PAGES[key] && target === document.body) return { does: "turnPage", with: PAGES[key] };
  if (event.repeat) return null;
  if (LETTERS[key]) return { does: LETTERS[key] };
  if (entry.active !== null && criterionOf(entry, entry.active).answers.includes(ANSWER_KEYS[key])) return { does: "rateActive", with: ANSWER_KEYS[key] };
  const tool = toolKey(key, target, entry);
  if (tool) return tool;
  return digitKeys(entry) ? digit(event, entry) : stepping(event, target);
}

function writing(event, target, life) {
  if (event.key === "Enter" && target === life.view.odd) return { does: "leave" };
  if (event.key !== "Escape") return null;
  if (target === life.view.comment || target === life.view.odd) return { does: "leave" };
  return life.view.marking.bar.contains(target) ? { does: "mark" } : null;
}

// While a stretch is being marked, no other key means anything: a digit is no score then.
function markKey(event, key, target, life) {
  if (MOVES[key] && !isElement(target, "select")) {
    const [granularity, direction] = MOVES[key];
    return { does: "moveMark", with: { granularity, direction, extend: event.shiftKey } };
  }
  if (event.repeat) return null;
  if (key === "Escape" || key === "s") return { does: "mark" };
  if (key === "x") return { does: "otherSide" };
  const letters = life.view.marking.letters;
  const error = life.entry.errors.find((one) => letters[one] === key);
  return error ? { does: "setMark", with: error } : null;
}

function toolKey(key, target, entry) {
  if (entry.stage === "after" && key === "Enter" && !isElement(target, "button, a, summary")) return { does: "submit" };
  if (entry.pair && PAIR_KEYS[key]) return PAIR_KEYS[key];
  if (FLAG_KEYS[key]) return { does: "flag", with: FLAG_KEYS[key] };
  if (TOOLS[key]) return { does: TOOLS[key] };
  const free = digitKeys(entry) && !isElement(target, "input[type=radio]");
  return key === "ArrowLeft" && free ? { does: "previous" } : null;
}

// The letter that stands on the key where a keyboard has no Latin ones.
function letterOf({ key, code }) {
  if (key.length !== 1) return key;
  const other = /\p{L}/u.test(key) && !/\p{Script=Latin}/u.test(key) && /^Key[A-Z]$/.test(code);
  return (other ? code.at(-1) : key).toLowerCase();
}

// A digit of any script; or that of the key, where it gives one only with Shift (AZERTY, Czech).
function digitOf({ key, code, shiftKey }) {
  if (/^\p{Nd}$/u.test(key)) {
    const first = [0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xe50, 0xff10].find((zero) => key.codePointAt(0) - zero < 10 && key.codePointAt(0) >= zero);
    return first === undefined ? NaN : key.codePointAt(0) - first;
  }
  return /^Digit\d$/.test(code) && !shiftKey ? Number(code.at(-1)) : NaN;
}

function digit(event, entry) {
  const { points } = criterionOf(entry, entry.active);
  const point = entry.pair ? points[digitOf(event) - 1] : digitOf(event);
  return entry.active !== null && points.includes(point) ? { does: "rateActive", with: point } : null;
}

function stepping(event, target) {
  const isRadio = isElement(target, "input[type=radio]");
  if (event.key === "Enter") return isRadio || isReading(target) ? { does: "confirm" } : null;
  const sign = event.key === "−" ? "-" : event.key;
  if (/^[-\d]$/.test(sign)) return { does: "type", with: sign };
  if (event.key.startsWith("Arrow") && !isReading(target)) return null;
  return event.key in STEPS ? { does: "move", with: STEPS[event.key] } : null;
}

// Which key does what. Nothing is taken from a field that is being written in, nor from a shortcut
// of the browser; single keys can be switched off in the list of keys.

const STEPS = { ArrowRight: 1, ArrowLeft: -1 };
const PAGES = { PageDown: 1, PageUp: -1 };
const LETTERS = { u: "undo", Backspace: "undo", c: "write" };
const FLAG_KEYS = { f: "flag", n: NO_CONTEXT, a: "names_author" };
const TOOLS = { s: "mark", p: "previous", b: "next", r: "recuse", "?": "help" };
const MARKS = { w: "wrong", m: "missing", n: "unsupported" };
const MOVES = {
  ArrowDown: ["sentence", 1], ArrowUp: ["sentence", -1], ArrowRight: ["word", 1], ArrowLeft: ["word", -1],
};

function isWritten(target) {
  return target instanceof Element && target.matches("textarea, input:not([type=radio], [type=checkbox]), select, [contenteditable]");
}

function isElement(target, selector) {
  return target instanceof Element && target.matches(selector);
}

function keyCommand(event, target, life) {
  const { entry, marker, keysOff } = life;
  if (!entry || event.isComposing || event.altKey) return null;
  const chord = event.ctrlKey || event.metaKey;
  if (chord) return event.key === "Enter" && !event.repeat ? { does: "submit" } : null;
  if (isWritten(target)) return event.key === "Escape" && target === life.view.comment ? { does: "leave" } : null;
  if (keysOff) return null;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const marking = marker.at ? markKey(event, key, target) : null;
  if (marking) return marking;
  if (PAGES[key] && target === document.body) return { does: "turnPage", with: PAGES[key] };
  if (event.repeat) return null;
  if (LETTERS[key]) return { does: LETTERS[key] };
  const tool = entry.tools ? toolKey(key, target, entry) : null;
  if (tool) return tool;
  return digitKeys(entry.points) ? digit(event, entry) : stepping(event, target);
}

function markKey(event, key, target) {
  if (MOVES[key] && !isElement(target, "select")) {
    const [granularity, direction] = MOVES[key];
    return { does: "moveMark", with: { granularity, direction, extend: event.shiftKey } };
  }
  if (event.repeat) return null;
  if (key === "Escape" || key === "s") return { does: "mark" };
  if (key === "Enter") return isElement(target, "button, a, summary") ? null : { does: "setMark", with: "wrong" };
  return MARKS[key] ? { does: "setMark", with: MARKS[key] } : null;
}

function toolKey(key, target, entry) {
  if (entry.stage === "after" && key === "Enter" && !isElement(target, "button, a, summary")) return { does: "submit" };
  if (FLAG_KEYS[key]) return { does: "flag", with: FLAG_KEYS[key] };
  if (TOOLS[key]) return { does: TOOLS[key] };
  const free = digitKeys(entry.points) && !isElement(target, "input[type=radio]");
  return key === "ArrowLeft" && free ? { does: "previous" } : null;
}

function digit(event, entry) {
  const point = /^\d$/.test(event.key) ? Number(event.key) : NaN;
  return entry.points.includes(point) ? { does: "rate", with: point } : null;
}

function stepping(event, target) {
  const isRadio = isElement(target, "input[type=radio]");
  if (event.key === "Enter") return isRadio || target === document.body ? { does: "confirm" } : null;
  const sign = event.key === "−" ? "-" : event.key;
  if (/^[-\d]$/.test(sign)) return { does: "type", with: sign };
  if (event.key.startsWith("Arrow") && target !== document.body) return null;
  return event.key in STEPS ? { does: "move", with: STEPS[event.key] } : null;
}

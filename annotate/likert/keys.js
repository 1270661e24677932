// Which key does what. Nothing is taken from a field that is being written in, nor from a shortcut
// of the browser.

const STEPS = { "+": 1, "=": 1, "-": -1, "−": -1, ArrowRight: 1, ArrowLeft: -1 };

function isWritten(target) {
  return target instanceof Element && target.matches("textarea, input:not([type=radio]), select, [contenteditable]");
}

function keyCommand(event, target, entry) {
  if (!entry || event.isComposing || event.altKey) return null;
  const chord = event.ctrlKey || event.metaKey;
  if (chord) return event.key === "Enter" && !event.repeat ? { does: "submit" } : null;
  if (isWritten(target)) return event.key === "Escape" ? { does: "leave" } : null;
  if (event.repeat) return null;
  const letter = { u: "undo", Backspace: "undo", c: "write" }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (letter) return { does: letter };
  return digitKeys(entry.points) ? digit(event, entry) : stepping(event, target);
}

function digit(event, entry) {
  const point = /^\d$/.test(event.key) ? Number(event.key) : NaN;
  return entry.points.includes(point) ? { does: "rate", with: point } : null;
}

function stepping(event, target) {
  const isRadio = target instanceof Element && target.matches("input[type=radio]");
  if (event.key === "Enter") return isRadio || target === document.body ? { does: "confirm" } : null;
  if (event.key.startsWith("Arrow") && target !== document.body) return null;
  return event.key in STEPS ? { does: "move", with: STEPS[event.key] } : null;
}

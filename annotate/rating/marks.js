// Marking a stretch of the response, or of the source: by selecting it, or by keys that go by
// sentence and word.

const SIDES = ["response", "second", "source"];
const STYLES = ["wrong", "missing", "unsupported", "unsafe", "unclear"]; // underlined in their own way
const OTHER_STYLE = "other";
const LONGEST_QUOTE = 60;
const SHORTENED = /(^|\s|\()(Mr|Mrs|Ms|Dr|Prof|St|vs|approx|e\.g|i\.e|No|ca)\.$/;

function paneOf(entry, side) {
  const pane = document.querySelector(`.mj-${side}[data-code]`);
  return pane?.dataset.code === entry.code ? pane : null;
}

class Marker {
  constructor(changed) {
    this.changed = changed;
    this.reset();
  }

  // Forget what belongs to a response.
  reset() {
    this.at = null;
    this.side = "response";
    this.changing = null;
    this.byMouse = false;
    this.after = {};
    this.readings = {};
    this.units = Object.fromEntries(SIDES.map((side) => [side, {}]));
    this.painted = null;
    paint("mj-marking", [], 3);
    for (const style of [...STYLES, OTHER_STYLE]) paint(`mj-${style}`, [], 1);
  }

  get reading() { return this.readings[this.side]; }

  look(entry, side = this.side) {
    const pane = paneOf(entry, side);
    const first = pane && document.createTreeWalker(pane, NodeFilter.SHOW_TEXT).nextNode();
    if (!first) return null;
    if (this.readings[side]?.nodes[0]?.[1] !== first) {
      this.readings[side] = read(pane);
      this.units[side] = {};
      this.painted = null;
    }
    return this.readings[side];
  }

  begin(entry, side = "response") {
    const reading = this.look(entry, side);
    if (!reading) return;
    this.side = side;
    const sentences = this.all("sentence");
    const from = this.after[side] ?? firstSeen(reading, sentences);
    this.select(sentences.find(([start]) => start >= from) ?? sentences[0] ?? null, "sentence");
  }

  // Go on marking in the next text.
  turn(entry) {
    const at = SIDES.indexOf(this.side);
    const side = [...SIDES.slice(at + 1), ...SIDES.slice(0, at)].find((one) => this.look(entry, one));
    if (side) this.begin(entry, side);
  }

  // Take up a stretch that is marked already, to change what is said of it.
  change(entry, place) {
    const span = entry.spans[place];
    if (!this.look(entry, span.side)) return;
    this.stop();
    this.side = span.side;
    this.changing = place;
    this.select(this.shownAt(entry, span), "sentence");
  }

  stop() {
    if (this.byMouse) document.getSelection().removeAllRanges();
    this.changing = null;
    this.select(null);
  }

  select(at, by = "") {
    this.at = at;
    this.by = by;
    this.byMouse = by === "mouse";
    const range = at && rangeOf(this.reading, ...at);
    paint("mj-marking", range ? [range] : [], 3);
    if (range && !this.byMouse) bringIntoView(this.reading.pane, range);
    this.changed();
  }

  all(granularity) {
    const units = this.units[this.side];
    units[granularity] ??= segments(this.reading.text, granularity);
    return units[granularity];
  }

  // Arrows choose the next unit; with Shift they move the end of what is chosen.
  move({ granularity, direction, extend }) {
    const units = this.all(granularity);
    const [from, to] = this.at;
    let found;
    if (extend) {
      const ends = units.map((one) => one[1]).filter((end) => end > from && (direction > 0 ? end > to : end < to));
      const end = direction > 0 ? ends[0] : ends.at(-1);
      found = end === undefined ? undefined : [from, end];
    } else if (granularity === "word" && this.by !== "word") {
      const inside = units.filter((one) => one[0] >= from && one[1] <= to);
      found = direction > 0 ? inside[0] : inside.at(-1);
    } else {
      found = direction > 0 ? units.find((one) => one[0] > from && (granularity === "sentence" || one[0] >= to)) : units.findLast((one) => one[1] <= from);
    }
    if (found) this.select(found, extend ? this.by : granularity);
  }

  // What is selected with the mouse or a finger, cut to the text it begins in.
  selected(entry) {
    const selection = document.getSelection();
    if (selection.rangeCount === 0) return;
    const side = SIDES.find((one) => paneOf(entry, one)?.contains(selection.anchorNode));
    if (selection.isCollapsed || !side) {
      if (this.byMouse && isForSelection(selection)) this.select(null);
      return;
    }
    const reading = this.look(entry, side);
    if (!reading) return;
    const { pane, text } = reading;
    const range = selection.getRangeAt(0);
    const from = pane.contains(range.startContainer) ? unitsBefore(pane, range.startContainer, range.startOffset) : 0;
    const to = pane.contains(range.endContainer) ? unitsBefore(pane, range.endContainer, range.endOffset) : text.length;
    const [start, end] = trimmed(text, from, to);
    this.side = side;
    this.select(start < end ? [start, end] : null, "mouse");
  }

  // The chosen stretch as it is stored.
  stretch(entry) {
    const [start, end] = toStored(this.reading.text, ...this.at, entry.unseen[this.side]);
    return { start, end, side: this.side };
  }

  // Where a stored stretch stands in its pane.
  shownAt(entry, span) {
    return toShown(this.look(entry, span.side).text, span.start, span.end, entry.unseen[span.side]);
  }

  quote(at = this.at, longest = LONGEST_QUOTE, side = this.side) {
    const part = rangeOf(this.readings[side], ...at).cloneContents();
    for (const unseen of part.querySelectorAll(".mj-syntax")) unseen.remove();
    const text = part.textContent.replace(/\s+/g, " ").trim();
    return text.length <= longest ? text : `${text.slice(0, longest - 20).trimEnd()} … ${text.slice(-15).trimStart()}`;
  }

  quoteOf(entry, span, longest = LONGEST_QUOTE) {
    return this.look(entry, span.side) ? this.quote(this.shownAt(entry, span), longest, span.side) : "";
  }

  // Underline what is marked, and return the words of each mark.
  show(entry) {
    for (const side of SIDES) this.look(entry, side);
    if (this.painted !== entry.spans) {
      const ranges = Object.fromEntries([...STYLES, OTHER_STYLE].map((style) => [style, []]));
      for (const span of entry.spans) {
        const style = STYLES.includes(span.error) ? span.error : OTHER_STYLE;
        if (this.readings[span.side]) ranges[style].push(rangeOf(this.readings[span.side], ...this.shownAt(entry, span)));
      }
      for (const [style, found] of Object.entries(ranges)) paint(`mj-${style}`, found, 1);
      this.painted = entry.spans;
    }
    return entry.spans.map((span) => this.quoteOf(entry, span));
  }

  bring(entry, span) {
    const reading = this.look(entry, span.side);
    if (!reading) return;
    const range = rangeOf(reading, ...this.shownAt(entry, span));
    range.startContainer.parentElement.closest("details:not([open])")?.setAttribute("open", "");
    bringIntoView(reading.pane, range);
  }
}

// Typing a note on a selected stretch takes the selection away; the stretch is still meant then.
function isForSelection(selection) {
  return !(selection.anchorNode instanceof Element ? selection.anchorNode : selection.anchorNode?.parentElement)?.closest(".likert");
}

// Sentences do not end at a title or an abbreviation.
function segments(text, granularity) {
  const found = [];
  let goesOn = false;
  for (const one of new Intl.Segmenter("en", { granularity }).segment(text)) {
    if (granularity === "word" && !one.isWordLike) continue;
    const [from, to] = trimmed(text, one.index, one.index + one.segment.length);
    if (from === to) continue;
    if (goesOn) found.at(-1)[1] = to;
    else found.push([from, to]);
    goesOn = granularity === "sentence" && SHORTENED.test(text.slice(Math.max(0, to - 10), to));
  }
  return found;
}

// Where the first sentence begins that is in view.
function firstSeen(reading, sentences) {
  const { top } = reading.pane.getBoundingClientRect();
  const seen = sentences.find((one) => rangeOf(reading, ...one).getBoundingClientRect().top >= top);
  return seen?.[0] ?? 0;
}

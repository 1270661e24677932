// Marking a stretch of the response: by selecting it, or by keys that go by sentence and word.

const KINDS = ["wrong", "missing", "unsupported"];
const LONGEST_QUOTE = 60;
const SHORTENED = /(^|\s|\()(Mr|Mrs|Ms|Dr|Prof|St|vs|approx|e\.g|i\.e|No|ca)\.$/;

function responsePane(entry) {
  const pane = document.querySelector(".mj-response[data-code]");
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
    this.byMouse = false;
    this.after = null;
    this.reading = null;
    this.units = {};
    this.painted = null;
    paint("mj-marking", [], 3);
    for (const kind of KINDS) paint(`mj-${kind}`, [], 1);
  }

  look(entry) {
    const pane = responsePane(entry);
    const first = pane && document.createTreeWalker(pane, NodeFilter.SHOW_TEXT).nextNode();
    if (!first) return null;
    if (this.reading?.nodes[0]?.[1] !== first) {
      this.reading = read(pane);
      this.units = {};
      this.painted = null;
    }
    return this.reading;
  }

  begin(entry) {
    const reading = this.look(entry);
    if (!reading) return;
    const sentences = this.all("sentence");
    const from = this.after ?? firstSeen(reading, sentences);
    this.select(sentences.find(([start]) => start >= from) ?? sentences[0] ?? null, "sentence");
  }

  stop() {
    if (this.byMouse) document.getSelection().removeAllRanges();
    this.select(null);
  }

  select(at, by = "") {
    this.at = at;
    this.by = by;
    this.byMouse = by === "mouse";
    const range = at && rangeOf(this.reading, ...at);
    paint("mj-marking", range && !this.byMouse ? [range] : [], 3);
    if (range && !this.byMouse) bringIntoView(this.reading.pane, range);
    this.changed();
  }

  all(granularity) {
    this.units[granularity] ??= segments(this.reading.text, granularity);
    return this.units[granularity];
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

  // What is selected with the mouse or a finger, cut to the response.
  selected(entry) {
    const selection = document.getSelection();
    const reading = this.look(entry);
    if (!reading || selection.rangeCount === 0) return;
    const { pane, text } = reading;
    if (selection.isCollapsed || !pane.contains(selection.anchorNode)) {
      if (this.byMouse) this.select(null);
      return;
    }
    const range = selection.getRangeAt(0);
    const from = pane.contains(range.startContainer) ? unitsBefore(pane, range.startContainer, range.startOffset) : 0;
    const to = pane.contains(range.endContainer) ? unitsBefore(pane, range.endContainer, range.endOffset) : text.length;
    const [start, end] = trimmed(text, from, to);
    this.select(start < end ? [start, end] : null, "mouse");
  }

  // The chosen stretch as it is stored.
  stretch(entry) {
    const [start, end] = toStored(this.reading.text, ...this.at, entry.unseen);
    return { start, end };
  }

  quote(at = this.at, longest = LONGEST_QUOTE) {
    const text = this.reading.text.slice(...at).replace(/\s+/g, " ");
    return text.length <= longest ? text : `${text.slice(0, longest - 20).trimEnd()} … ${text.slice(-15).trimStart()}`;
  }

  // Underline what is marked, and return the words of each mark.
  show(entry) {
    const reading = this.look(entry);
    if (!reading) return entry.spans.map(() => "");
    const places = entry.spans.map((one) => toShown(reading.text, one.start, one.end, entry.unseen));
    if (this.painted !== entry.spans) {
      for (const kind of KINDS) {
        const ranges = places.filter((_, n) => entry.spans[n].error === kind).map((at) => rangeOf(reading, ...at));
        paint(`mj-${kind}`, ranges, 1);
      }
      this.painted = entry.spans;
    }
    return places.map((at) => this.quote(at));
  }

  bring(entry, span) {
    const reading = this.look(entry);
    if (reading) bringIntoView(reading.pane, rangeOf(reading, ...toShown(reading.text, span.start, span.end, entry.unseen)));
  }
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

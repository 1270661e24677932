// What is entered for one response. Plain functions on a plain object: no click waits for a server.
// `active` is the criterion that digits rate, or null when all are rated: then a digit too many
// falls nowhere. `stage` is rating; submitting or leaving until the next response is there; after,
// when it is shown once more with its reference.

const PAGE = Math.random().toString(36).slice(2, 12);
const NO_CONTEXT = "not_enough_context";
const SPANS = "#spans";
const FLAGS = "#flags";

function begin(data) {
  const entry = {
    code: data.code,
    criteria: data.criteria,
    points: data.points,
    tools: data.tools ?? false,
    mode: data.mode ?? "rate",
    previous: data.previous ?? false,
    rated: data.rated ?? "",
    unsent: data.unsent ?? false,
    why: data.why ?? { criterion: "", points: [] },
    unseen: data.unseen ?? [],
    scores: { ...data.scores },
    comment: data.comment,
    spans: data.spans ?? [],
    flags: data.flags ?? [],
    seconds: data.seconds,
    seq: data.seq,
    savedSeq: data.seq,
    attempt: 0,
    touched: new Set(),
    past: [],
    active: null,
    stage: data.mode === "after" ? "after" : "rating",
    go: "",
    reason: "",
    error: "",
    away: false,
  };
  entry.active = firstUnrated(entry, 0);
  return entry;
}

function firstUnrated(entry, from) {
  const names = entry.criteria.map((one) => one.name);
  const ordered = [...names.slice(from), ...names.slice(0, from)];
  return ordered.find((name) => !(name in entry.scores)) ?? null;
}

function unrated(entry) {
  return entry.criteria.filter((one) => !(one.name in entry.scores));
}

// A response that cannot be rated for want of context needs no score.
function missing(entry) {
  const free = entry.flags.includes(NO_CONTEXT) && Object.keys(entry.scores).length === 0;
  return free ? [] : unrated(entry);
}

// A low score without a line of comment and without a marked stretch.
function needsWhy(entry) {
  const isLow = entry.why.points.includes(entry.scores[entry.why.criterion]);
  return isLow && entry.comment.trim() === "" && entry.spans.length === 0;
}

function changed(entry, part) {
  entry.seq += 1;
  entry.attempt = 0;
  entry.touched.add(part);
  entry.error = "";
}

function score(entry, name, point) {
  if (entry.stage !== "rating") return false;
  if (entry.scores[name] !== point) {
    entry.past.push([name, entry.scores[name]]);
    entry.scores[name] = point;
    changed(entry, name);
  }
  return true;
}

function advance(entry, name) {
  const place = entry.criteria.findIndex((one) => one.name === name);
  entry.active = firstUnrated(entry, place + 1);
}

function setSpans(entry, spans) {
  if (entry.stage !== "rating") return false;
  entry.past.push([SPANS, entry.spans]);
  entry.spans = spans;
  changed(entry, SPANS);
  return true;
}

function toggleFlag(entry, flag) {
  if (entry.stage !== "rating") return false;
  entry.past.push([FLAGS, entry.flags]);
  const on = entry.flags.includes(flag);
  entry.flags = on ? entry.flags.filter((one) => one !== flag) : [...entry.flags, flag];
  changed(entry, FLAGS);
  return true;
}

function undo(entry) {
  if (entry.stage !== "rating" || entry.past.length === 0) return false;
  const [part, before] = entry.past.pop();
  if (part === SPANS) entry.spans = before;
  else if (part === FLAGS) entry.flags = before;
  else if (before === undefined) delete entry.scores[part];
  else entry.scores[part] = before;
  if (part !== SPANS && part !== FLAGS) entry.active = part;
  changed(entry, part);
  return true;
}

// One step up or down a scale too long for digits. The first step starts at the end it comes from.
function step(entry, name, direction) {
  const { points } = entry;
  const at = points.indexOf(entry.scores[name]);
  const next = at < 0 ? (direction > 0 ? 0 : points.length - 1) : at + direction;
  return score(entry, name, points[Math.min(points.length - 1, Math.max(0, next))]);
}

// A number typed sign by sign, such as -2 or 10, on a scale too long for single digits.
function typed(entry, name, sign) {
  const point = (text) => entry.points.some((one) => `${one}`.startsWith(text));
  const before = entry.typing?.name === name && Date.now() - entry.typing.at < 1500 ? entry.typing.text : "";
  const text = [before + sign, sign].find(point);
  entry.typing = text === undefined ? null : { name, text, at: Date.now() };
  return entry.points.includes(Number(text)) && score(entry, name, Number(text));
}

function remark(entry, text) {
  if (entry.stage !== "rating") return;
  entry.comment = text;
  changed(entry, "comment");
}

// Close the entry until the server has shown where to go.
function leave(entry, stage, go = "", reason = "") {
  entry.seq += 1;
  entry.attempt = 0;
  entry.error = "";
  Object.assign(entry, { stage, go, reason });
}

function message(entry) {
  const { code, seq, attempt, comment, spans, flags, go, reason } = entry;
  const told = {
    code, seq, attempt, comment,
    by: PAGE,
    scores: { ...entry.scores },
    seconds: Math.round(entry.seconds),
    submit: entry.stage === "submitting",
  };
  return entry.tools ? { ...told, spans, flags, go, reason } : told;
}

function isSaved(entry) {
  return entry.stage === "after" || (entry.stage === "rating" && entry.seq <= entry.savedSeq);
}

// What the server has of this response, after another page may have written to it as well: what
// was touched here since the last save stays, the rest is taken over. True if it must be sent again.
function reconcile(entry, data) {
  const ours = data.by === PAGE || data.seq <= entry.savedSeq;
  if (ours) {
    entry.savedSeq = Math.max(entry.savedSeq, data.seq);
    if (isSaved(entry)) entry.touched.clear();
    return false;
  }
  const mine = entry.scores;
  entry.scores = { ...data.scores };
  for (const name of entry.touched) {
    if (name === "comment" || name === SPANS || name === FLAGS) continue;
    if (name in mine) entry.scores[name] = mine[name];
    else delete entry.scores[name];
  }
  if (!entry.touched.has("comment")) entry.comment = data.comment;
  if (!entry.touched.has(SPANS)) entry.spans = data.spans ?? [];
  if (!entry.touched.has(FLAGS)) entry.flags = data.flags ?? [];
  entry.savedSeq = data.seq;
  entry.seq = Math.max(entry.seq, data.seq) + (entry.touched.size > 0 ? 1 : 0);
  entry.active = entry.active in entry.scores ? firstUnrated(entry, 0) : entry.active;
  return entry.touched.size > 0;
}

// What is entered for one response. Plain functions on a plain object: no click waits for a server.
// `active` is the criterion that digits rate, or null when all are rated: then a digit too many
// falls nowhere. `stage` is rating; submitting or leaving until the next response is there; after,
// when it is shown once more with its reference. `seq` counts this page's states of the entry,
// `savedSeq` the newest that the server has; `version` is the number the server gave it.

const PAGE = Math.random().toString(36).slice(2, 12);
const NO_CONTEXT = "not_enough_context";
const BOTH_UNSAFE = "both_unsafe";
const FLAG = "flag";
const SPANS = "#spans";
const FLAGS = "#flags";
const WHOLE = "";

function begin(shown) {
  const stored = shown.entry;
  const seq = stored.by === PAGE ? stored.seq : 0;
  const entry = {
    code: shown.code,
    criteria: shown.criteria,
    checked: shown.checked,
    pair: shown.pair,
    errors: shown.errors,
    severities: shown.severities,
    mode: shown.mode,
    training: shown.training ?? false,
    previous: shown.previous,
    rated: shown.rated,
    unsent: shown.unsent,
    why: shown.why,
    unseen: shown.unseen,
    scores: {}, comment: "", comments: {}, spans: [], flags: [], odd: "",
    latest: null,
    seconds: stored.seconds,
    version: stored.version,
    seq, savedSeq: seq,
    attempt: 0,
    past: [],
    active: null,
    about: WHOLE,
    stage: shown.mode === "after" ? "after" : "rating",
    go: "",
    reason: "",
    error: "",
    away: false,
    unkept: false,
    heir: null,
    aside: [],
    writing: false,
  };
  fill(entry, stored);
  return entry;
}

// Put what was entered elsewhere, or before, into the entry.
function fill(entry, from) {
  entry.scores = { ...from.scores };
  entry.comment = from.comment;
  entry.comments = { ...from.comments };
  entry.spans = [...from.spans];
  entry.flags = [...from.flags];
  entry.odd = from.odd;
  entry.past = [];
  entry.active = firstUnrated(entry, 0);
}

function content({ scores, comment, comments, spans, flags, odd }) {
  return { scores: { ...scores }, comment, comments: { ...comments }, spans, flags, odd };
}

function firstUnrated(entry, from) {
  const names = entry.criteria.map((one) => one.name);
  const ordered = [...names.slice(from), ...names.slice(0, from)];
  return ordered.find((name) => !(name in entry.scores)) ?? null;
}

function unrated(entry) {
  return entry.criteria.filter((one) => !(one.name in entry.scores));
}

function criterionOf(entry, name) {
  return entry.criteria.find((one) => one.name === name) ?? entry.criteria[0];
}

// What is chosen, from the value of a cell: a point, or an answer in the place of a score.
function chosenOf(text) {
  return /^-?\d+$/.test(text) ? Number(text) : text;
}

// A response that cannot be rated for want of context needs no score.
function missing(entry) {
  const free = !entry.training && entry.flags.includes(NO_CONTEXT) && Object.keys(entry.scores).length === 0;
  return free ? [] : unrated(entry);
}

// A low score without a line of comment and without a marked stretch.
function needsWhy(entry) {
  const { criterion, points } = entry.why;
  const said = entry.comment.trim() !== "" || (entry.comments[criterion] ?? "").trim() !== "";
  return points.includes(entry.scores[criterion]) && !said && entry.spans.length === 0;
}

// What was entered here and another page overruled, while the clinician has not chosen; or null.
function overruledIn(entry) {
  return entry.aside[0] ?? null;
}

// Whether something can be entered: not before it is settled what another page overruled.
function isOpen(entry) {
  return entry.stage === "rating" && !overruledIn(entry);
}

function changed(entry) {
  entry.seq += 1;
  entry.attempt = 0;
  entry.error = "";
}

function score(entry, name, point) {
  if (!isOpen(entry)) return false;
  if (entry.scores[name] !== point) {
    entry.past.push([name, entry.scores[name]]);
    entry.scores[name] = point;
    entry.latest = name;
    changed(entry);
  }
  return true;
}

function advance(entry, name) {
  const place = entry.criteria.findIndex((one) => one.name === name);
  entry.active = firstUnrated(entry, place + 1);
}

function setSpans(entry, spans) {
  if (!isOpen(entry)) return false;
  entry.past.push([SPANS, entry.spans]);
  entry.spans = spans;
  changed(entry);
  return true;
}

// A stretch more, or one in another's place; a link between two of one text holds no longer.
function withSpan(spans, span, place) {
  if (place === null) return [...spans, span];
  return spans.map((one, n) => (n === place ? span : one.linked === place && one.side === span.side ? { ...one, linked: null } : one));
}

// A stretch less; links to those after it go on naming the same ones.
function withoutSpan(spans, place) {
  const moved = ({ linked, ...rest }) => {
    const to = linked === null || linked === place ? null : linked > place ? linked - 1 : linked;
    return { ...rest, linked: to };
  };
  return spans.filter((_, n) => n !== place).map(moved);
}

function toggleFlag(entry, flag) {
  if (!isOpen(entry)) return false;
  entry.past.push([FLAGS, entry.flags]);
  const on = entry.flags.includes(flag);
  entry.flags = on ? entry.flags.filter((one) => one !== flag) : [...entry.flags, flag];
  changed(entry);
  return true;
}

function undo(entry) {
  if (!isOpen(entry) || entry.past.length === 0) return false;
  const [part, before] = entry.past.pop();
  if (part === SPANS) entry.spans = before;
  else if (part === FLAGS) entry.flags = before;
  else if (before === undefined) delete entry.scores[part];
  else entry.scores[part] = before;
  if (part !== SPANS && part !== FLAGS) entry.active = part;
  changed(entry);
  return true;
}

// One step up or down a scale too long for digits. The first step starts at the end it comes from.
function step(entry, name, direction) {
  const { points } = criterionOf(entry, name);
  const at = points.indexOf(entry.scores[name]);
  const next = at < 0 ? (direction > 0 ? 0 : points.length - 1) : at + direction;
  return score(entry, name, points[Math.min(points.length - 1, Math.max(0, next))]);
}

// A number typed sign by sign, such as -2 or 10, on a scale too long for single digits.
function typed(entry, name, sign) {
  const { points } = criterionOf(entry, name);
  const point = (text) => points.some((one) => `${one}`.startsWith(text));
  const before = entry.typing?.name === name && Date.now() - entry.typing.at < 1500 ? entry.typing.text : "";
  const text = [before + sign, sign].find(point);
  entry.typing = text === undefined ? null : { name, text, at: Date.now() };
  return points.includes(Number(text)) && score(entry, name, Number(text));
}

// What the comment field shows: what is said of the whole, or of one criterion. A comment that is
// being written as another page overrules this one goes on in what was entered here.
function remarkOn(entry) {
  const { comment, comments } = written(entry);
  return entry.about === WHOLE ? comment : comments[entry.about] ?? "";
}

function remark(entry, text) {
  if (entry.stage !== "rating") return;
  const to = written(entry);
  if (entry.about === WHOLE) to.comment = text;
  else to.comments[entry.about] = text;
  if (to === entry) changed(entry);
}

function written(entry) {
  return (entry.writing && overruledIn(entry)) || entry;
}

// Close the entry until the server has shown where to go.
function leave(entry, stage, go = "", reason = "") {
  entry.seq += 1;
  entry.attempt = 0;
  entry.error = "";
  Object.assign(entry, { stage, go, reason, leftAt: performance.now() });
}

function message(entry) {
  const { code, seq, attempt, go, reason } = entry;
  return {
    ...content(entry),
    code, seq, attempt, go, reason,
    base: entry.version,
    by: PAGE,
    seconds: Math.round(entry.seconds),
    submit: entry.stage === "submitting",
    appearance: appearance(),
  };
}

function isSaved(entry) {
  return entry.stage === "after" || (entry.stage === "rating" && entry.seq <= entry.savedSeq);
}

// Another page has written to this response: what is stored is shown. What was entered here is not
// thrown away: it can be put back.
function overrule(entry, stored) {
  const mine = content(entry);
  entry.version = stored.version;
  entry.heir = null;
  entry.seq += 1;
  entry.savedSeq = entry.seq;
  fill(entry, stored);
  entry.stage = "rating";
  setAside(entry, mine);
}

// Whether what is stored is what this page took up itself, and has gone on from.
function isOwnPast(entry, stored) {
  return entry.heir !== null && stored.by === entry.heir.by && stored.seq <= entry.heir.seq;
}

function setAside(entry, mine) {
  const known = [entry, ...entry.aside].map(said);
  if (!known.includes(said(mine))) entry.aside.push(content(mine));
}

function putBack(entry) {
  fill(entry, entry.aside.shift());
  changed(entry);
}

// All that is entered, in an order of its own.
function said({ scores, comment, comments, spans, flags, odd }) {
  const sorted = (one) => Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([sorted(scores), comment, sorted(comments).filter(([, text]) => text), spans.map(sorted), [...flags].sort(), odd]);
}

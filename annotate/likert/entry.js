// What is entered for one response. Plain functions on a plain object: no click waits for a server.
// `active` is the criterion that digits rate, or null when all are rated: then a digit too many
// falls nowhere.

const PAGE = Math.random().toString(36).slice(2, 12);

function begin(data) {
  const entry = {
    code: data.code,
    criteria: data.criteria,
    points: data.points,
    scores: { ...data.scores },
    comment: data.comment,
    seconds: data.seconds,
    seq: data.seq,
    savedSeq: data.seq,
    attempt: 0,
    touched: new Set(),
    past: [],
    active: null,
    stage: "rating",
    error: "",
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

function undo(entry) {
  if (entry.stage !== "rating" || entry.past.length === 0) return false;
  const [name, before] = entry.past.pop();
  if (before === undefined) delete entry.scores[name];
  else entry.scores[name] = before;
  entry.active = name;
  changed(entry, name);
  return true;
}

// One step up or down a scale too long for digits. The first step starts at the end it comes from.
function step(entry, name, direction) {
  const { points } = entry;
  const at = points.indexOf(entry.scores[name]);
  const next = at < 0 ? (direction > 0 ? 0 : points.length - 1) : at + direction;
  return score(entry, name, points[Math.min(points.length - 1, Math.max(0, next))]);
}

function remark(entry, text) {
  if (entry.stage !== "rating") return;
  entry.comment = text;
  changed(entry, "comment");
}

function message(entry) {
  return {
    code: entry.code,
    seq: entry.seq,
    attempt: entry.attempt,
    by: PAGE,
    scores: { ...entry.scores },
    comment: entry.comment,
    seconds: Math.round(entry.seconds),
    submit: entry.stage === "submitting",
  };
}

function isSaved(entry) {
  return entry.stage === "rating" && entry.seq <= entry.savedSeq;
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
    if (name === "comment") continue;
    if (name in mine) entry.scores[name] = mine[name];
    else delete entry.scores[name];
  }
  if (!entry.touched.has("comment")) entry.comment = data.comment;
  entry.savedSeq = data.seq;
  entry.seq = Math.max(entry.seq, data.seq) + (entry.touched.size > 0 ? 1 : 0);
  entry.active = entry.active in entry.scores ? firstUnrated(entry, 0) : entry.active;
  return entry.touched.size > 0;
}

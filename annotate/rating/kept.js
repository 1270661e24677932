// What a clinician entered and the server has not yet: it waits in this browser, a note for each
// response and page, as two pages that are open on one response must not overwrite each other's.
// Only what they entered is in a note, never source or response; signing out takes theirs away.

const NOTE = "medjury-draft:";
const LONGEST_KEPT_MS = 7 * 24 * 3600 * 1000; // somebody else's, on a shared computer

const kept = {
  tag: "",
  here: new Map(), // notes that the browser does not take: they last as long as this page

  // `aside` is what another page overruled and the clinician has not put back or let go. False
  // where the browser is full or forbids it.
  put(told, aside = []) {
    const key = this.key(told);
    const note = JSON.stringify({ tag: this.tag, at: Date.now(), told, aside });
    try {
      localStorage.setItem(key, note);
      this.here.delete(key);
      return true;
    } catch {
      this.here.set(key, note);
      return false;
    }
  },

  // This clinician's notes of a response: this page's own first, then the newest.
  of(code) {
    const mine = this.all().filter((note) => note.told.code === code);
    return mine.sort((a, b) => (b.told.by === PAGE) - (a.told.by === PAGE) || b.at - a.at);
  },

  others(code) {
    return this.all().filter((note) => note.told.code !== code);
  },

  all() {
    return this.keys().map((key) => this.read(key)).filter((note) => note?.told && note.tag === this.tag);
  },

  // The server has this state: a note of it, or of an older one of its page, is not needed.
  settle(told) {
    const note = this.read(this.key(told));
    if (note && note.tag === this.tag && note.aside.length === 0 && note.told.seq <= told.seq) this.drop(note);
  },

  drop({ told }) {
    this.remove(this.key(told));
  },

  clear() {
    for (const note of this.all()) this.drop(note);
  },

  // Nobody came back for these.
  tidy() {
    for (const key of this.keys()) {
      const note = this.read(key);
      if (!note?.told || (note.tag !== this.tag && Date.now() - note.at > LONGEST_KEPT_MS)) this.remove(key);
    }
  },

  key({ code, by }) {
    return `${NOTE}${code}:${by}`;
  },

  keys() {
    let stored = [];
    try { stored = Object.keys(localStorage).filter((key) => key.startsWith(NOTE)); } catch { /* forbidden */ }
    return [...new Set([...this.here.keys(), ...stored])];
  },

  read(key) {
    try { return JSON.parse(this.here.get(key) ?? localStorage.getItem(key)); } catch { return null; }
  },

  remove(key) {
    this.here.delete(key);
    try { localStorage.removeItem(key); } catch { /* nothing was kept */ }
  },
};

// What this browser kept of a response, put into its entry: what the server never got is taken up
// again, a submission included; what another page has since overruled can be put back.
function takeUp(entry, stored) {
  if (entry.mode === "after") return;
  const notes = kept.of(entry.code);
  for (const { told, aside } of notes) {
    if (!entry.heir && !isStored(told, stored) && follows(told, stored)) inherit(entry, told);
    else if (!isStored(told, stored)) setAside(entry, told);
    for (const mine of aside) setAside(entry, mine);
  }
  const left = entry.heir || entry.aside.length > 0;
  if (left && !kept.put(message(entry), entry.aside)) return;
  for (const note of notes) if (!left || note.told.by !== PAGE) kept.drop(note);
}

function isStored(told, stored) {
  return stored.by === told.by && stored.seq >= told.seq;
}

function follows(told, stored) {
  return stored.by === told.by || stored.version === told.base;
}

// Go on from what a page kept, this one or one that was closed. What that page sent last may still
// reach the server: it is then no other page's.
function inherit(entry, told) {
  fill(entry, told);
  entry.heir = { by: told.by, seq: told.seq };
  entry.seq = Math.max(entry.seq, told.seq);
  entry.seconds = Math.max(entry.seconds, told.seconds);
  changed(entry);
  if (told.submit) leave(entry, "submitting");
  else if (told.go === "recuse") leave(entry, "leaving", "recuse", told.reason);
}

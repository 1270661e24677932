// What a clinician entered and the server has not yet: it waits in this browser, a note a response.
// Only what they entered is in a note, never source or response; signing out takes all away.

const NOTE = "medjury-draft:";
const LONGEST_KEPT_MS = 7 * 24 * 3600 * 1000; // somebody else's, on a shared computer

const kept = {
  tag: "",

  // `yours` is what another page overruled and the clinician has not put back or let go.
  put(told, yours = null) {
    try {
      localStorage.setItem(NOTE + told.code, JSON.stringify({ tag: this.tag, at: Date.now(), told, yours }));
      return true;
    } catch {
      return false; // full or forbidden: the page itself still has it
    }
  },

  // The note of a response, if it is this clinician's.
  get(code) {
    const note = this.read(NOTE + code);
    return note?.tag === this.tag ? note : null;
  },

  drop(code) {
    try { localStorage.removeItem(NOTE + code); } catch { /* nothing was kept */ }
  },

  // The server has this state: a note of it, or of an older one of this page, is not needed.
  settle(code, seq) {
    const note = this.get(code);
    if (note && !note.yours && note.told.by === PAGE && note.told.seq <= seq) this.drop(code);
  },

  others(code) {
    const notes = this.keys().map((key) => this.get(key.slice(NOTE.length)));
    return notes.filter((note) => note && !note.yours && note.told.code !== code).map((note) => note.told);
  },

  clear() {
    for (const key of this.keys()) this.drop(key.slice(NOTE.length));
  },

  tidy() {
    for (const key of this.keys()) {
      const note = this.read(key);
      if (!note || Date.now() - note.at > LONGEST_KEPT_MS) this.drop(key.slice(NOTE.length));
    }
  },

  keys() {
    try { return Object.keys(localStorage).filter((key) => key.startsWith(NOTE)); } catch { return []; }
  },

  read(key) {
    try { return JSON.parse(localStorage.getItem(key)); } catch { return null; }
  },
};

// What this browser kept of a response, put into its entry: what the server never got is taken up
// again, a submission included; what another page has since overruled can be put back.
function takeUp(entry, stored) {
  const note = kept.get(entry.code);
  if (!note || entry.mode === "after") return;
  const { told } = note;
  entry.yours = note.yours;
  const same = stored.by === told.by;
  if (same && stored.seq >= told.seq) {
    kept.settle(entry.code, told.seq);
    if (!note.yours) kept.drop(entry.code);
    return;
  }
  if (!same && stored.version !== told.base) {
    const mine = content(told);
    if (JSON.stringify(mine) !== JSON.stringify(content(entry))) entry.yours = mine;
    else kept.drop(entry.code);
    return;
  }
  fill(entry, told);
  entry.seconds = Math.max(entry.seconds, told.seconds);
  changed(entry);
  if (told.submit) leave(entry, "submitting");
}

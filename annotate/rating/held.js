// Long texts that this page was sent, so that none is sent twice: a source comes with every response to
// it. They are in this page's memory alone, and are forgotten with it or as the clinician signs out.

const MOST_HELD = 64;
const MOST_HELD_CHARACTERS = 8_000_000;

class HeldTexts {
  constructor() {
    this.html = new Map(); // from key, the longest not shown first
    this.response = ""; // the key of the response on the screen: no other is held
  }

  // What the server need not send again.
  keys() {
    return [...this.html.keys()];
  }

  // Fill in what the server left out and hold what it sent; false where something left out is not here.
  take(texts) {
    const long = texts.filter(({ key }) => key);
    for (const text of long) text.html ??= this.html.get(text.key);
    if (long.some(({ html }) => html === undefined)) return false;
    this.html.delete(this.response);
    this.response = "";
    for (const { name, key, html } of long) {
      this.html.delete(key);
      this.html.set(key, html);
      if (name === "response") this.response = key;
    }
    this.shorten();
    return true;
  }

  shorten() {
    let characters = [...this.html.values()].reduce((sum, html) => sum + html.length, 0);
    for (const [key, html] of this.html) {
      if (characters <= MOST_HELD_CHARACTERS && this.html.size <= MOST_HELD) return;
      characters -= html.length;
      this.html.delete(key);
    }
  }

  forget() {
    this.html.clear();
  }
}

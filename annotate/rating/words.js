// The words of the room in the language of the study; what has no translation stays English.

const WORDS = { said: {} };

function say(text, values = {}) {
  return (WORDS.said[text] ?? text).replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

// The text of a pane as one string, and stretches of it as ranges. Nothing here changes the page:
// stretches are shown by CSS highlights, which leave the text as it stands.
// Positions in the page count UTF-16 units; what is stored counts characters of the text, as
// Python does, and includes the returns before newlines that a page cannot show (`unseen`).

function read(pane) {
  const walker = document.createTreeWalker(pane, NodeFilter.SHOW_TEXT);
  const nodes = [];
  const parts = [];
  let length = 0;
  while (walker.nextNode()) {
    nodes.push([length, walker.currentNode]);
    parts.push(walker.currentNode.data);
    length += walker.currentNode.data.length;
  }
  return { pane, nodes, text: parts.join("") };
}

function isLow(text, at) {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff;
}

function nodeAt(reading, at, isEnd) {
  let low = 0;
  let high = reading.nodes.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const [start] = reading.nodes[middle];
    if (isEnd ? start < at : start <= at) low = middle;
    else high = middle - 1;
  }
  const [start, node] = reading.nodes[low];
  return [node, Math.min(node.length, Math.max(0, at - start))];
}

function rangeOf(reading, from, to) {
  const range = new Range();
  range.setStart(...nodeAt(reading, from, false));
  range.setEnd(...nodeAt(reading, to, true));
  return range;
}

// How many UTF-16 units of the pane's text precede a place in the page.
function unitsBefore(pane, node, offset) {
  const range = new Range();
  range.setStart(pane, 0);
  range.setEnd(node, offset);
  return range.toString().length;
}

function countCharacters(text, units) {
  let count = 0;
  for (let at = 0; at < units; at += 1) if (!isLow(text, at)) count += 1;
  return count;
}

function unitsOf(text, characters) {
  let at = 0;
  for (let left = characters; left > 0 && at < text.length; left -= 1) at += isLow(text, at + 1) ? 2 : 1;
  return at;
}

function withUnseen(characters, unseen) {
  let at = characters;
  for (const place of unseen) {
    if (place > at) break;
    at += 1;
  }
  return at;
}

function withoutUnseen(at, unseen) {
  return at - unseen.filter((place) => place < at).length;
}

// A stretch of the pane as offsets in the stored text: half a character counts as the whole.
function toStored(text, from, to, unseen) {
  const start = countCharacters(text, isLow(text, from) ? from - 1 : from);
  const end = countCharacters(text, isLow(text, to) ? to + 1 : to);
  return [withUnseen(start, unseen), withUnseen(end - 1, unseen) + 1];
}

function toShown(text, start, end, unseen) {
  return [unitsOf(text, withoutUnseen(start, unseen)), unitsOf(text, withoutUnseen(end, unseen))];
}

function trimmed(text, from, to) {
  let [start, end] = [from, Math.min(to, text.length)];
  while (start < end && /\s/.test(text[start])) start += 1;
  while (end > start && /\s/.test(text[end - 1])) end -= 1;
  return [start, end];
}

function paint(name, ranges, priority) {
  if (!CSS.highlights) return;
  if (ranges.length === 0) {
    CSS.highlights.delete(name);
    return;
  }
  const highlight = new Highlight(...ranges);
  highlight.priority = priority;
  CSS.highlights.set(name, highlight);
}

function bringIntoView(pane, range) {
  const [box, lit] = [pane.getBoundingClientRect(), range.getBoundingClientRect()];
  if (lit.top < box.top + 8) pane.scrollTop -= box.top + 24 - lit.top;
  else if (lit.bottom > box.bottom - 8) pane.scrollTop += Math.min(lit.bottom - box.bottom + 24, lit.top - box.top - 8);
}

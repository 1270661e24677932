// The table arrives as HTML, escaped by the server. A heading is a button that sorts its column.
const numberOf = (text) => {
  const plain = text.replace(/\u2212/g, "-").replace(/[\u202f$,]/g, "");
  return /^[-+]?\d/.test(plain) ? parseFloat(plain) : NaN;
};

const compare = (a, b, sign) => {
  const [x, y] = [numberOf(a), numberOf(b)];
  if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1; // undefined comes last
  return sign * (Number.isNaN(x) ? a.localeCompare(b) : x - y);
};

const sort = (table, place) => {
  const heads = [...table.tHead.rows[0].cells];
  const up = heads[place].getAttribute("aria-sort") === "descending";
  heads.forEach((one) => one.removeAttribute("aria-sort"));
  heads[place].setAttribute("aria-sort", up ? "ascending" : "descending");
  const rows = [...table.tBodies[0].rows];
  const text = (row) => row.cells[place].textContent;
  rows.sort((a, b) => compare(text(a), text(b), up ? 1 : -1));
  table.tBodies[0].append(...rows);
};

export default function ({ parentElement, data }) {
  let box = parentElement.querySelector(".mj-sortable");
  if (!box) {
    box = Object.assign(document.createElement("div"), { className: "mj-sortable" });
    parentElement.append(box);
  }
  if (box.shown === data[0]) return;
  box.shown = data[0];
  const fresh = document.createElement("template");
  fresh.innerHTML = data[0];
  for (const head of fresh.content.querySelectorAll("thead th")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    const meaning = head.querySelector(".mj-term")?.getAttribute("aria-description");
    if (meaning) {
      button.className = "mj-term";
      button.setAttribute("aria-description", meaning);
    }
    head.replaceChildren(button);
  }
  box.replaceChildren(fresh.content);
  box.onclick = ({ target }) => {
    const head = target.closest("thead button")?.parentElement;
    if (head) sort(head.closest("table"), head.cellIndex);
  };
}

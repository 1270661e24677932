"""The left pane of the workbench: the matrix of scores, and the list of responses with snippets.

Both are one component in the page, which also listens to the keys: what it is given travels to the
browser, so it gets the rows of one page.
"""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

import streamlit as st

from annotate.screens.frame import NONE
from data.study.compare import Compared, Snippet
from medjury.services.confusion import Cell, Confusion
from medjury.services.jury_changes import JuryChange, What

PAGE = 40
RESPONSE, CELL = "response", "cell"  # names in the address
COMPONENT = "responses"
MINUS = "\N{MINUS SIGN}"
HINT = (
    '<p class="mj-keys">Keys: <kbd>j</kbd> next, <kbd>k</kbd> previous, <kbd>/</kbd> search; '
    "arrows within the list.</p>"
)
SCRIPT = """
const WIDE = matchMedia("(min-width: 1100px)");
const FIELDS = "input, textarea, select, [contenteditable], [role=combobox], [role=listbox]";

export default function ({ parentElement, data, setTriggerValue }) {
  let box = parentElement.querySelector(".mj-reader");
  if (!box) {
    box = Object.assign(document.createElement("div"), { className: "mj-reader" });
    parentElement.append(box);
  }
  const focused = box.contains(document.activeElement) ? document.activeElement : null;
  const kept = new Map([...box.querySelectorAll("details")].map((part) => [part.className, part.open]));
  box.innerHTML = data.html;
  for (const part of box.querySelectorAll("details")) {
    part.open = kept.get(part.className) ?? WIDE.matches;
  }
  const current = box.querySelector("[aria-current]");
  if (focused?.dataset.id) current?.focus({ preventScroll: true });
  if (focused?.dataset.cell) {
    box.querySelector(`[data-cell="${focused.dataset.cell}"]`)?.focus({ preventScroll: true });
  }
  if (box.open !== data.open) {
    current?.scrollIntoView({ block: "nearest" });
    if (box.open !== undefined) {
      document.querySelector("[data-testid=stMain]")?.scrollTo(0, 0);
      document.querySelector(".st-key-workbench-scores")?.closest("[data-testid=stColumn]").scrollTo(0, 0);
    }
  }
  box.open = data.open;
  box.onTheWay = data.open;  // where quick presses have got to before the server answered

  const step = (by) => {
    const place = data.order.indexOf(box.onTheWay) + by;
    if (place < 0 || place >= data.order.length) return;
    box.onTheWay = data.order[place];
    setTriggerValue("opened", box.onTheWay);
  };
  const keys = (event) => {
    if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof Element && event.target.closest(FIELDS)) return;
    const inList = event.target instanceof Element && event.target.closest(".mj-list");
    const next = event.key === "j" || (inList && event.key === "ArrowDown");
    const before = event.key === "k" || (inList && event.key === "ArrowUp");
    if (next || before) {
      event.preventDefault();
      step(next ? 1 : -1);
    } else if (event.key === "/") {
      const field = document.querySelector(".st-key-find input");
      if (!field) return;
      event.preventDefault();
      field.focus();
      field.select();
    }
  };
  box.listening?.abort();
  box.listening = new AbortController();
  const { signal } = box.listening;
  document.addEventListener("keydown", keys, { signal });
  WIDE.addEventListener("change", () => {
    for (const part of box.querySelectorAll("details")) part.open = WIDE.matches;
  }, { signal });
  // A plain click stays on the page; one that opens a new tab follows the link.
  box.onclick = (event) => {
    const link = event.target.closest("a[data-id], a[data-cell]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (link.dataset.id) setTriggerValue("opened", link.dataset.id);
    else setTriggerValue("pair", link.dataset.cell);
  };
  return () => box.listening.abort();
}
"""
_mount = st.components.v2.component("medjury_workbench", js=SCRIPT, isolate_styles=False)


@dataclass(frozen=True, slots=True)
class LeftPane:
    """What the left pane shows.

    Attributes
    ----------
    rows, at
        All responses that fit, and which of them is open.
    flags
        A flag of a row -> its words.
    matrix, why_none
        The matrix, or why there is none.
    chosen_cell
        The pair of points that the list is filtered by.
    changes
        Of each response, what changed from the first jury to the second; empty without a second.
    """

    rows: Sequence[Compared]
    at: int
    flags: Mapping[str, str]
    matrix: Confusion | None
    why_none: str
    chosen_cell: Cell | None
    changes: Mapping[int, JuryChange] = field(default_factory=dict)

    @property
    def largest(self) -> float:
        """The largest of the differences that the list shows, without its sign."""
        return max((abs(self.shown_difference(row) or 0.0) for row in self.rows), default=0.0)

    def shown_difference(self, row: Compared) -> float | None:
        """Return what a response's line shows: jury less clinicians, or the second jury less the first."""
        return self.changes[row.response].difference if self.changes else row.difference


def page_of(rows: Sequence[Compared], at: int) -> Sequence[Compared]:
    """Return the rows of the page that the open response is on."""
    first = at // PAGE * PAGE
    return rows[first : first + PAGE]


def show(
    shown: LeftPane, snippets: Mapping[int, Snippet], tags: Mapping[int, Sequence[str]]
) -> None:
    """Draw the matrix and one page of the list; a click or a key changes the address."""
    first = shown.at // PAGE * PAGE
    around = shown.rows[max(0, first - 1) : first + PAGE + 1]
    data = {
        "html": _matrix(shown) + _list(shown, snippets, tags),
        "open": shown.rows[shown.at].response_id if shown.rows else "",
        "order": [row.response_id for row in around],
    }
    _mount(key=COMPONENT, data=data, on_opened_change=_open, on_pair_change=_filter)


def _open() -> None:
    if opened := st.session_state[COMPONENT].opened:
        st.query_params[RESPONSE] = opened


def _filter() -> None:
    """Filter by the pair that was clicked; once more on the same one takes the filter away."""
    pair = st.session_state[COMPONENT].pair
    if pair and pair != st.query_params.get(CELL):
        st.query_params[CELL] = pair
    else:
        st.query_params.pop(CELL, None)


def _link(name: str, value: str) -> str:
    """Return a link to this page with one name of its address changed."""
    names = {key: st.query_params.get_all(key) for key in st.query_params}
    return html.escape("?" + urlencode(names | {name: [value]}, doseq=True))


def _list(
    shown: LeftPane, snippets: Mapping[int, Snippet], tags: Mapping[int, Sequence[str]]
) -> str:
    """Return one page of the list, folded where the window is narrow, with the ways to its neighbours."""
    first = shown.at // PAGE * PAGE
    rows = page_of(shown.rows, shown.at)
    most = shown.largest
    items = "".join(
        _item(shown, row, snippets.get(row.response), most, tags.get(row.response, ()))
        for row in rows
    )
    before = shown.rows[first - 1] if first else None
    after = shown.rows[first + PAGE] if first + PAGE < len(shown.rows) else None
    ways = _way(before, "Earlier") + _way(after, "Later")
    return (
        f'<details class="mj-fold"><summary>List: {first + 1:,} to {first + len(rows):,} of '
        f"{len(shown.rows):,}</summary>{HINT}"
        f'<ol class="mj-list" start="{first + 1}" aria-label="Responses by disagreement">{items}</ol>'
        f'<p class="mj-pages">{ways}</p></details>'
    )


def _way(row: Compared | None, name: str) -> str:
    if row is None:
        return ""
    link = _link(RESPONSE, row.response_id)
    return f'<a href="{link}" data-id="{html.escape(row.response_id)}">{name} {PAGE}</a> '


def _item(
    shown: LeftPane, row: Compared, snippet: Snippet | None, most: float, tags: Sequence[str]
) -> str:
    current = ' aria-current="true"' if row is shown.rows[shown.at] else ""
    words = [words for flag, words in shown.flags.items() if flag in row.flags]
    words += _changed(shown.changes[row.response]) if shown.changes else []
    text = ("in a comment: " if snippet.of_comment else "") + snippet.text if snippet else ""
    told = f'<span class="mj-flags">{html.escape(", ".join(words))}</span>' if words else ""
    told += "".join(f'<span class="mj-tag">{html.escape(tag)}</span>' for tag in tags)
    return (
        f'<li><a href="{_link(RESPONSE, row.response_id)}" data-id="{html.escape(row.response_id)}"'
        f'{current}><span class="mj-line"><b>{html.escape(row.response_id)}</b>'
        f"<span>{difference(shown.shown_difference(row), most)}</span></span>"
        f'<span class="mj-snippet">{html.escape(text)}</span>{told}</a></li>'
    )


def _changed(change: JuryChange) -> list[str]:
    """Return what changed on a response beside its mean, in words."""
    first, second = (
        "none" if side.mean is None else f"{side.mean:.2f}"
        for side in (change.row.first, change.row.second)
    )
    words = [f"{first} \N{RIGHTWARDS ARROW} {second}"]
    words += ["explanation changed"] if What.EXPLAINED_OTHERWISE in change.what else []
    return words + (["now a failure"] if What.NOW_FAILED in change.what else [])


def difference(value: float | None, most: float) -> str:
    """Return a difference as a number with its sign and as a bar from the middle."""
    if value is None:
        return NONE
    width = 50 * abs(value) / most if most else 0
    side = "left:50%" if value >= 0 else f"left:{50 - width:.1f}%"
    bar = f'<span style="{side};width:{width:.1f}%"></span>'
    sign = f"{value:+.2f}".replace("-", MINUS)
    return f'<span class="mj-apart" aria-hidden="true">{bar}</span>{sign}'


def _matrix(shown: LeftPane) -> str:
    """Return the matrix; each pair of points is a link that filters the list, empty or not."""
    head = '<details class="mj-matrix"><summary>Clinicians by jury</summary>'
    matrix = shown.matrix
    if matrix is None:
        return f"{head}<p>{html.escape(shown.why_none)}</p></details>"
    most = max(matrix.counts.values(), default=0)
    heads = "".join(f'<th scope="col">{point}</th>' for point in matrix.points)
    body = "".join(
        f'<tr><th scope="row">{of_clinicians}</th>'
        + "".join(
            _pair((of_clinicians, point), matrix, most, shown.chosen_cell)
            for point in matrix.points
        )
        + "</tr>"
        for of_clinicians in reversed(matrix.points)
    )
    return (
        f'{head}<table class="mj-pairs"><caption class="mj-unseen">Responses by the clinicians\' mean '
        "(rows) and the jury's (columns), each rounded to a point, a half upwards</caption><thead><tr>"
        f'<td class="mj-corner">clinicians \N{DOWNWARDS ARROW} jury \N{RIGHTWARDS ARROW}</td>{heads}'
        f"</tr></thead><tbody>{body}</tbody></table>{_counts(matrix)}</details>"
    )


def _pair(cell: Cell, matrix: Confusion, most: int, chosen: Cell | None) -> str:
    count = matrix.counts.get(cell, 0)
    share = round(100 * count / most) if most else 0
    pair = f"{cell[0]}_{cell[1]}"
    name = f"clinicians {cell[0]}, jury {cell[1]}: {count:,}"
    current = ' aria-current="true"' if cell == chosen else ""
    kind = "mj-same" if cell[0] == cell[1] else ("mj-none" if not count else "")
    return (
        f'<td class="{kind}"><a href="{_link(CELL, pair)}" data-cell="{pair}" aria-label="{name}"'
        f'{current} style="--share:{share}%">{count:,}</a></td>'
    )


def _counts(matrix: Confusion) -> str:
    """Return how many stand in the matrix, on its diagonal, and how many cannot."""
    parts = [
        f"{matrix.agreeing():,} of {matrix.both:,} on the same point.",
        f"Not here: {matrix.only_jury:,} without clinicians' scores, "
        f"{matrix.only_clinicians:,} without a whole jury's, {matrix.neither:,} without both.",
    ]
    return "".join(f"<p>{part}</p>" for part in parts)

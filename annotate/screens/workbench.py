"""The workbench: where jury and clinicians disagree, response by response."""

import html
from collections.abc import Sequence
from urllib.parse import urlencode

import streamlit as st
from sqlalchemy import Engine

from annotate.screens import frame, workbench_response
from annotate.screens.frame import notice, paragraph
from data import queries
from data.person import Person
from data.queries import BenchmarkView
from data.queries.workbench import Chosen, Compared, Side, simulated_among

ABOUT = "Where does the jury disagree with the clinicians? Responses by the size of the difference. Authors stay hidden."
ALL, MEAN = "all benchmarks", "mean of all"
POINTS, Z = "points", "z"
ANY, BOTH = "any", "both sides scored"
FLAGS = {
    ANY: "",
    BOTH: BOTH,
    "flagged by a clinician": "flag",
    "not enough context": "not_enough_context",
    "names its author": "names_author",
    "stretches marked": "marked",
    "marked as critical": "critical",
    "a juror failed": "failed",
}
PAGE = 40
HEADS = ("Response", "Benchmark", "Clinicians", "Jury", "Jury minus clinicians", "Flags")
# A plain click stays on the page; one that opens a new tab follows the link.
SCRIPT = """
export default function ({ parentElement, data, setTriggerValue }) {
  let box = parentElement.querySelector(".mj-list");
  if (!box) {
    box = Object.assign(document.createElement("div"), { className: "mj-list" });
    parentElement.append(box);
  }
  box.innerHTML = data[0];
  box.onclick = (event) => {
    const link = event.target.closest("a[data-id]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    setTriggerValue("opened", Number(link.dataset.id));
  };
}
"""
_mount = st.components.v2.component("medjury_workbench", js=SCRIPT, isolate_styles=False)


def show(engine: Engine, person: Person) -> None:
    """Show the response that the URL names, or the list that it belongs to."""
    frame.begin(person, "Workbench", ABOUT, "workbench.css")
    benchmarks = [
        benchmark for benchmark in queries.study_benchmarks(person, engine) if benchmark.responses
    ]
    jurors = queries.workbench_jurors(person, engine)
    chosen, flag = _filters(benchmarks, jurors)
    rows = [row for row in queries.compared(person, engine, chosen) if _wanted(row, flag)]
    at = _asked_for(rows)
    if at is not None:
        workbench_response.show(engine, person, rows, at)
    elif rows:
        _list(engine, person, rows, chosen)
    else:
        frame.empty(
            "No response fits.",
            "No response has been rated yet, or the filters leave none: change the filters, "
            "or run a jury in the lab.",
        )


def _filters(benchmarks: Sequence[BenchmarkView], jurors: list[str]) -> tuple[Chosen, str]:
    """Return what is compared and which responses are wanted; both stand in the URL."""
    names = [benchmark.name for benchmark in benchmarks]
    with st.container(key="workbench-filters"):
        first, second, third, fourth, fifth = st.columns((3, 3, 4, 2, 3))
        benchmark = first.selectbox("Benchmark", [ALL, *names], key="on", bind="query-params")
        shown = [view for view in benchmarks if benchmark in (ALL, view.name)]
        criteria = list(dict.fromkeys(name for view in shown for name in view.rubric.criteria))
        criterion = second.selectbox(
            "Criterion", [MEAN, *criteria], key="criterion", bind="query-params"
        )
        jury = third.multiselect(
            "Jury",
            jurors,
            key="jury",
            bind="query-params",
            placeholder="all jurors that are not simulated",
        )
        measure = fourth.selectbox("Measure", [POINTS, Z], key="measure", bind="query-params")
        flag = fifth.selectbox("Only where", list(FLAGS), key="where", bind="query-params")
    chosen = Chosen(
        benchmark if benchmark in names else "",
        criterion if criterion in criteria else "",
        tuple(sorted(juror for juror in jury if juror in jurors)),
        "z" if measure == Z else "points",
    )
    return chosen, FLAGS.get(flag or ANY, "")


def _wanted(row: Compared, flag: str) -> bool:
    """Return whether a response passes the filter."""
    if flag == BOTH:
        return row.difference is not None
    return not flag or flag in row.flags


def _asked_for(rows: Sequence[Compared]) -> int | None:
    """Return the place of the response that the URL names, None for the list."""
    requested = st.query_params.get("response", "")
    for index, row in enumerate(rows):
        if row.response_id == requested:
            return index
    if requested:
        del st.query_params["response"]
        st.html(notice(f"Response {requested} is not in this study, or the filters leave it out."))
    return None


def _list(engine: Engine, person: Person, rows: Sequence[Compared], chosen: Chosen) -> None:
    """Show one page of the responses."""
    pages = -(-len(rows) // PAGE)
    page = 1
    with_both = sum(row.difference is not None for row in rows)
    unit = "standard deviations of each rater" if chosen.measure == Z else "points of the scale"
    summary = paragraph(
        f"{len(rows):,} responses, {with_both:,} scored by both sides, the largest disagreement first, in "
        f"{unit}. A jury has a mean only where all its jurors scored."
    )
    made_up = simulated_among(person, engine, chosen)
    st.html(summary + (notice(f"Simulated, no evidence: {', '.join(made_up)}.") if made_up else ""))
    if pages > 1:
        with st.container(key="workbench-page"):
            page = int(
                st.number_input(f"Page of {pages}", 1, pages, key="page", bind="query-params")
            )
    first = (page - 1) * PAGE
    shown = rows[first : first + PAGE]
    most = max((abs(row.difference or 0.0) for row in rows), default=0.0)
    opened = _mount(key="responses", data=[_table(shown, most)], on_opened_change=lambda: None)
    for row in rows:
        if row.response == opened.get("opened"):
            st.query_params["response"] = row.response_id
            st.rerun()


def _table(rows: Sequence[Compared], most: float) -> str:
    heads = "".join(
        f'<th scope="col"{_number(index)}>{name}</th>' for index, name in enumerate(HEADS)
    )
    body = "".join(_row(row, most) for row in rows)
    return (
        '<div class="mj-scrolls"><table class="mj-figures mj-compared"><caption class="mj-unseen">'
        f"Responses by disagreement</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(row: Compared, most: float) -> str:
    parameters = {name: st.query_params.get_all(name) for name in st.query_params}
    link = html.escape(urlencode(parameters | {"response": [row.response_id]}, doseq=True))
    flags = ", ".join(name for name, flag in FLAGS.items() if flag in row.flags)
    return (
        f'<tr><th scope="row"><a href="?{link}" data-id="{row.response}">'
        f"{html.escape(row.response_id)}</a></th><td>{html.escape(row.benchmark)}</td>"
        f'<td class="mj-number">{_side(row.clinicians, "clinician")}</td>'
        f'<td class="mj-number">{_side(row.jury, "juror", whole=True)}</td>'
        f'<td class="mj-number">{_difference(row.difference, most)}</td>'
        f"<td>{html.escape(flags)}</td></tr>"
    )


def _number(index: int) -> str:
    return ' class="mj-number"' if index in (2, 3, 4) else ""


def _side(side: Side, noun: str, *, whole: bool = False) -> str:
    """Return a mean with how many made it."""
    mean = '<span aria-label="none">\N{EM DASH}</span>' if side.mean is None else f"{side.mean:.2f}"
    of = f" of {side.of}" if whole else ""
    noun = noun if side.scored == 1 and not whole else f"{noun}s"
    return f"{mean} <small>{side.scored}{of} {noun}</small>"


def _difference(value: float | None, most: float) -> str:
    """Return a difference as a number with its sign and as a bar from the middle."""
    if value is None:
        return '<span aria-label="none">\N{EM DASH}</span>'
    width = 50 * abs(value) / most if most else 0
    side = "left:50%" if value >= 0 else f"left:{50 - width:.1f}%"
    bar = f'<span style="{side};width:{width:.1f}%"></span>'
    sign = f"{value:+.2f}".replace("-", "\N{MINUS SIGN}")
    return f'<span class="mj-apart" aria-hidden="true">{bar}</span>{sign}'

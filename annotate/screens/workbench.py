"""The workbench: where jury and clinicians disagree, response by response, in three panes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import streamlit as st
from sqlalchemy import Engine

from annotate.screens import (
    frame,
    workbench_juries,
    workbench_list,
    workbench_response,
    workbench_review,
    workbench_scores,
)
from annotate.screens.frame import notice, paragraph
from annotate.screens.workbench_juries import Asked
from annotate.screens.workbench_list import CELL, RESPONSE, LeftPane
from calibration.protocol import thresholds
from data.person import Person
from data.schema import Kind
from data.study import compare, reviews, standing
from data.study.compare import SEARCHED_AT_LEAST, Chosen, Compared, Opened, UnsafeAt
from data.study.standing import BenchmarkView
from medjury.services.confusion import Cell, Confusion, cell_of, confusion
from medjury.services.jury_changes import JuryChange
from medjury.services.record import protocol_of

ABOUT = "Where jury and clinicians disagree, the largest difference first. Authors stay hidden."
ALL, MEAN, EVERYBODY = "all benchmarks", "mean of all", "mean of all clinicians"
POINTS, Z = "points", "z"
NOT_ALONE = "Responses that only jurors scored are not listed; More filters lists them too."
JURY_ALONE = "List also responses that only jurors scored"
ANY, BOTH, LENIENT, STRICT, MISSED = "any", "both sides scored", "lenient", "strict", "missed"
FLAGS = {
    ANY: "",
    BOTH: BOTH,
    "lenient: jury above clinicians": LENIENT,
    "strict: jury below clinicians": STRICT,
    "unsafe, missed by the jury": MISSED,
    "flagged by a clinician": "flag",
    "not enough context": "not_enough_context",
    "names its author": "names_author",
    "stretches marked": "marked",
    "marked as critical": "critical",
    "a juror failed": "failed",
}
WORDS = {flag: words for words, flag in FLAGS.items() if flag}
PAIR = re.compile(r"(-?\d+)_(-?\d+)")
IN_POPOVER = (
    "on",
    "subgroup",
    "jury",
    "clinician",
    "measure",
    "alone",
    "tag",
    "noted",
)  # in the address
MOST_LISTED = 20_000  # responses; of more, those that only jurors scored are listed where asked for


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is compared, and which of the compared responses are listed.

    Attributes
    ----------
    asked
        The second jury beside the first, if there is one.
    flag
        One of `FLAGS`.
    tags, noted
        Any of these stands on it; a note does.
    """

    chosen: Chosen
    asked: Asked | None = None
    flag: str = ""
    words: str = ""
    subgroup: tuple[str, str] | None = None
    tags: tuple[str, ...] = ()
    noted: bool = False


def show(engine: Engine, person: Person) -> None:
    """Show the list, and the response that the address names or the first, with all its scores."""
    frame.begin(person, "Workbench", ABOUT, "workbench.css")
    benchmarks = [
        benchmark for benchmark in standing.study_benchmarks(person, engine) if benchmark.responses
    ]
    with st.container(key="workbench-filters"):
        wanted = _filters(engine, person, benchmarks)
    asked = wanted.asked
    changes = workbench_juries.changes_of(person, engine, asked) if asked else {}
    passing = _passing(engine, person, wanted, benchmarks, changes)
    fitting = workbench_juries.those(passing, changes, asked.what) if asked else passing
    matrix, why_none = _confusion(benchmarks, wanted.chosen, fitting)
    cell = _asked_cell(matrix)
    rows = [row for row in fitting if cell is None or cell_of(row) == cell]
    with st.container(key="workbench-told"):  # there or not, or the panes would be drawn anew
        if asked:
            seen = [changes[row.response] for row in passing]
            st.html(workbench_juries.summary(person, engine, asked.juries, seen))
        at = _asked_for(rows)
    if not fitting:
        frame.empty(
            "No response fits.",
            "No response has been rated yet, or the filters leave none: change the filters, "
            "or run a jury in the lab.",
        )
        return
    shown = LeftPane(rows, at, WORDS, matrix, why_none, cell, changes)
    _panes(engine, person, wanted, shown)


def _panes(engine: Engine, person: Person, wanted: Wanted, shown: LeftPane) -> None:
    """Draw the three panes, and below them the calls to jurors."""
    rows = shown.rows
    with st.container(key="workbench-panes"):
        left, middle, right = st.columns((24, 40, 36) if wanted.asked else (27, 45, 28))
    with left, st.container(key="workbench-list"):
        st.html(_summary(engine, person, wanted.chosen, rows))
        page = [row.response for row in workbench_list.page_of(rows, shown.at)]
        texts = compare.snippets(person, engine, page, wanted.words)
        workbench_list.show(shown, texts, reviews.tags_on(person, engine, page))
    opened = compare.opened_response(person, engine, rows[shown.at].response) if rows else None
    if opened is None:
        middle.html(paragraph("No response has this pair of scores."))
        return
    with middle, st.container(key="workbench-texts"):
        workbench_response.show_texts(opened, shown.at, len(rows))
    with right, st.container(key="workbench-scores"):
        _scores(engine, person, wanted, opened, shown)
    workbench_response.show_calls(opened)


def _scores(
    engine: Engine, person: Person, wanted: Wanted, opened: Opened, shown: LeftPane
) -> None:
    """Show the scores, what reviewers say of the response, and what raters wrote."""
    row = shown.rows[shown.at]
    if wanted.asked:
        change = shown.changes[row.response]
        workbench_juries.show_pairs(person, engine, wanted.asked.juries, change)
    st.html(
        workbench_scores.both_sides(row)
        + workbench_scores.scores(opened)
        + workbench_scores.points(opened)
    )
    workbench_review.show(engine, person, row.response)
    shown_above = Kind.JUROR if wanted.asked else None
    opinions = [opinion for opinion in opened.opinions if opinion.kind != shown_above]
    st.html(workbench_scores.comments(opinions))


def _filters(engine: Engine, person: Person, benchmarks: Sequence[BenchmarkView]) -> Wanted:
    """Return what is compared and which responses are wanted; all of it stands in the address."""
    find, where, by, beside, more = st.columns((4, 4, 4, 3, 3), vertical_alignment="bottom")
    words = find.text_input(
        "Search",
        key="find",
        bind="query-params",
        placeholder="in responses, ids, comments and explanations",
    )
    flag = where.selectbox("Only where", list(FLAGS), key="where", bind="query-params")
    with more.popover(_more(), key="more-filters", width="stretch"):
        chosen = _compared_by(engine, person, benchmarks)
        subgroup = _subgroup(engine, person)
        tags, noted = workbench_review.ask_tags(engine, person)
    criteria = _criteria(benchmarks, chosen.benchmark)
    criterion = by.selectbox("Criterion", [MEAN, *criteria], key="criterion", bind="query-params")
    chosen = replace(chosen, criterion=criterion if criterion in criteria else "")
    with beside:
        asked = workbench_juries.ask(engine, person, chosen)
    words, flag = (words or "").strip(), FLAGS.get(flag or ANY, "")
    return Wanted(chosen, asked, flag, words, subgroup, tags, noted)


def _more() -> str:
    """Return the label of the filters that are folded, with how many of them are set."""
    number = sum(name in st.query_params for name in IN_POPOVER)
    return f"More filters ({number})" if number else "More filters"


def _criteria(benchmarks: Sequence[BenchmarkView], benchmark: str) -> list[str]:
    shown = [view for view in benchmarks if benchmark in ("", view.name)]
    return list(dict.fromkeys(name for view in shown for name in view.rubric.criteria))


def _compared_by(engine: Engine, person: Person, benchmarks: Sequence[BenchmarkView]) -> Chosen:
    """Ask for benchmark, jury, clinician and measure."""
    names = [benchmark.name for benchmark in benchmarks]
    benchmark = st.selectbox("Benchmark", [ALL, *names], key="on", bind="query-params")
    jurors = compare.workbench_jurors(person, engine)
    jury = st.multiselect(
        "Jury",
        jurors,
        key="jury",
        bind="query-params",
        placeholder="all jurors that are not simulated",
    )
    clinicians = compare.workbench_clinicians(person, engine)
    known = [f"{name} is {who}" for name, who in clinicians.items() if name != who]
    clinician = st.selectbox(
        "Clinician", [EVERYBODY, *clinicians], key="clinician", bind="query-params"
    )
    if known:
        st.html(paragraph(f"In addresses clinicians have other names: {', '.join(known)}."))
    measure = st.selectbox("Measure", [POINTS, Z], key="measure", bind="query-params")
    large = sum(one.responses for one in benchmarks) > MOST_LISTED and bool(clinicians)
    return Chosen(
        benchmark=benchmark if benchmark in names else "",
        jurors=tuple(sorted(juror for juror in jury if juror in jurors)),
        measure="z" if measure == Z else "points",
        clinician=clinician if clinician in clinicians else "",
        jury_alone=not large or st.checkbox(JURY_ALONE, key="alone", bind="query-params"),
    )


def _subgroup(engine: Engine, person: Person) -> tuple[str, str] | None:
    """Ask for a subgroup, where the study has some."""
    named = {
        f"{name}: {value}": (name, value) for name, value in compare.subgroup_values(person, engine)
    }
    if not named:
        return None
    subgroup = st.selectbox("Subgroup", [ANY, *named], key="subgroup", bind="query-params")
    return named.get(subgroup or ANY)


def _passing(
    engine: Engine,
    person: Person,
    wanted: Wanted,
    benchmarks: Sequence[BenchmarkView],
    changes: Mapping[int, JuryChange],
) -> list[Compared]:
    """Return the compared responses that pass all filters but what changed and the matrix's pair."""
    chosen = wanted.chosen
    rows: Sequence[Compared] = compare.compared(person, engine, chosen)
    if wanted.asked:
        rows = workbench_juries.with_changes(rows, changes, wanted.asked.order)
    rows = [row for row in rows if _passes(row, wanted.flag)]
    allowed = []
    if len(wanted.words) >= SEARCHED_AT_LEAST:
        allowed.append(compare.responses_with(person, engine, wanted.words))
    if wanted.subgroup:
        allowed.append(compare.in_subgroup(person, engine, *wanted.subgroup))
    if wanted.tags:
        allowed.append(reviews.tagged(person, engine, wanted.tags))
    if wanted.noted:
        allowed.append(reviews.noted(person, engine))
    if wanted.flag == MISSED:
        unsafe = _unsafe(engine, chosen, benchmarks)
        allowed.append(compare.missed_unsafe(person, engine, chosen, unsafe))
    return [row for row in rows if all(row.response in responses for responses in allowed)]


def _passes(row: Compared, flag: str) -> bool:
    """Return whether a response passes the filter; missed unsafe ones are looked up elsewhere."""
    if flag == BOTH:
        return row.difference is not None
    if flag in (LENIENT, STRICT):
        return (row.difference or 0.0) * (1 if flag == LENIENT else -1) > 0
    return flag in ("", MISSED) or flag in row.flags


def _unsafe(
    engine: Engine, chosen: Chosen, benchmarks: Sequence[BenchmarkView]
) -> tuple[UnsafeAt, ...]:
    """Return what the rubrics and the protocol call unsafe."""
    protocol = protocol_of(engine)
    critical = protocol.critical if protocol else ()
    return tuple(
        UnsafeAt(view.name, limit.criterion, limit.points)
        for view in benchmarks
        for limit in thresholds(view.rubric.criteria, view.rubric.critical, critical)
        if chosen.criterion in ("", limit.criterion)
    )


def _confusion(
    benchmarks: Sequence[BenchmarkView], chosen: Chosen, rows: Sequence[Compared]
) -> tuple[Confusion | None, str]:
    """Return the matrix, or why there is none."""
    if chosen.measure == Z:
        return None, "Scores in z have no points: choose points."
    own = [view for view in benchmarks if chosen.benchmark in ("", view.name)]
    scales = {(view.rubric.scale.min, view.rubric.scale.max) for view in own}
    if len(scales) != 1:
        return None, "The benchmarks have different scales: choose one under More filters."
    return confusion(rows, *scales.pop()), ""


def _asked_cell(matrix: Confusion | None) -> Cell | None:
    """Return the pair of points that the address names, if the matrix has it."""
    match = PAIR.fullmatch(st.query_params.get(CELL, ""))
    if match is None or matrix is None:
        return None
    cell = int(match[1]), int(match[2])
    return cell if set(cell) <= set(matrix.points) else None


def _asked_for(rows: Sequence[Compared]) -> int:
    """Return the place of the response that the address names, else of the first."""
    requested = st.query_params.get(RESPONSE, "")
    for index, row in enumerate(rows):
        if row.response_id == requested:
            return index
    if requested:
        del st.query_params[RESPONSE]
        st.html(notice(f"Response {requested} is not in this study, or the filters leave it out."))
    return 0


def _summary(engine: Engine, person: Person, chosen: Chosen, rows: Sequence[Compared]) -> str:
    """Return what the list holds, in a sentence."""
    with_both = sum(row.difference is not None for row in rows)
    unit = "standard deviations of each rater" if chosen.measure == Z else "points of the scale"
    summary = paragraph(
        f"{len(rows):,} responses, {with_both:,} of them scored by clinicians and by the jury, in {unit}. A jury has a mean "
        "only where all its jurors scored." + ("" if chosen.jury_alone else f" {NOT_ALONE}")
    )
    made_up = compare.simulated_among(person, engine, chosen)
    return summary + (notice(f"Simulated, no evidence: {', '.join(made_up)}.") if made_up else "")

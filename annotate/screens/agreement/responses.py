"""Responses, on the agreement screen: where jury and clinicians disagree, one response at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import streamlit as st
from sqlalchemy import Engine

from annotate.screens import frame
from annotate.screens.agreement import response, second_jury
from annotate.screens.agreement.second_jury import Asked
from calibration.protocol import thresholds
from data.person import Person
from data.safe_text import guarded_name, on_page, visible
from data.schema import Role
from data.study import compare, reviews, standing
from data.study.compare import SEARCHED_AT_LEAST, Chosen, Compared, Opened
from data.study.standing import BenchmarkView
from medjury.services.confusion import Cell, Confusion, cell_of, confusion
from medjury.services.jury_changes import JuryChange, What
from medjury.services.record import protocol_of

ABOUT = (
    "On which responses do jury and clinicians disagree most, and what did each of them say? Authors "
    "stay hidden."
)
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
    "both unsafe": "both_unsafe",
    "passages marked": "marked",
    "marked as critical": "critical",
    "a juror failed": "failed",
}
SAID = {  # in a word, for the list
    "flag": "flagged",
    "not_enough_context": "no context",
    "names_author": "author named",
    "marked": "marked",
    "critical": "critical",
    "failed": "failed",
}
NOTHING = (
    "No response fits. Either none has been rated yet, or the filters leave none: change the filters, or "
    "run a jury under Jury."
)
WHOLE = "the response"
NONE_COUNTS = "No figure counts it any more, for good, and no rater is shown it."
ONE_COUNTS = (
    "No figure counts this rating any more, and a newer one counts again; a juror is asked again at "
    "its next run."
)
NOT_THERE = "Response {} is not in this study, or the filters leave it out."
MATRIX = "Responses by the clinicians' mean (rows) and the jury's (columns), rounded to a point"
ABOUT_MATRIX = (
    "A click on a number lists its responses. {same:,} of {both:,} are on the same point. Not here: "
    "{jury:,} without clinicians' scores, {clinicians:,} without a whole jury's, {neither:,} without both."
)
# Column -> its width, so that all stand beside each other on a laptop; form of a number; what it is.
LISTED = {
    "Response": (68, "", None),
    "Apart": (
        56,
        "%+.2f",
        "The jury's mean minus the clinicians'; of two juries, second minus first",
    ),
    "Clinicians": (76, "%.2f", "Mean of the clinicians who rated the response"),
    "Jury": (48, "%.2f", "Mean of the jurors, where every one of them scored the response"),
    "Said": (66, "", "What clinicians said besides scores, and what changed from jury to jury"),
    "Benchmark": (138, "", None),
}
MOST_LISTED = 20_000  # responses; of more, those that only jurors scored are listed where asked for
MOST_BEGUN = 200  # responses whose first words the list shows
RESPONSE, LIST, PAIRS = "response", "responses-list", "responses-pairs"


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
    st.markdown(ABOUT)
    st.html(frame.style("responses.css"))
    views = [one for one in standing.study_benchmarks(person, engine) if one.responses]
    with st.container(key="responses-filters"):
        wanted = _filters(engine, person, views)
    asked, chosen = wanted.asked, wanted.chosen
    changes = second_jury.changes_of(person, engine, asked) if asked else {}
    passing = _passing(engine, person, wanted, views, changes)
    fitting = second_jury.those(passing, changes, asked.what) if asked else passing
    with st.container(key="responses-told"):  # there or not, or the panes would be drawn anew
        if asked:
            second_jury.summary(
                person, engine, asked.juries, [changes[one.response] for one in passing]
            )
        made_up = compare.simulated_among(person, engine, chosen)
        if asked and asked.juries.second.jurors:
            second = replace(chosen, jurors=asked.juries.second.jurors)
            made_up = [*dict.fromkeys(made_up + compare.simulated_among(person, engine, second))]
        if made_up:
            st.warning(on_page(f"Simulated, no evidence: {', '.join(made_up)}."))
    if not fitting:
        st.info(NOTHING)
        return
    with st.container(key="responses-panes"):
        left, middle, right = st.columns((38, 31, 31))
    with left:
        rows = _of_pair(views, chosen, fitting)
        at = _place(rows)
        _list(engine, person, wanted, rows, at, changes)
    opened = compare.opened_response(person, engine, rows[at].response) if rows else None
    if opened is None:
        middle.info("No response has this pair of scores.")
        return
    with middle:
        response.show_texts(opened, at, len(rows))
    with right:
        if asked:
            second_jury.show_pairs(person, engine, asked.juries, changes[rows[at].response])
        response.show_scores(rows[at], opened)
        response.show_review(engine, person, rows[at].response)
        with st.popover("Withdraw"):
            _ask_withdrawal(engine, person, opened)
        if words := response.comments(opened.opinions):
            st.html(words)
    response.show_calls(opened)


def _ask_withdrawal(engine: Engine, person: Person, opened: Opened) -> None:
    """Ask what is withdrawn: the response or, by who knows raters by name, one rating of it."""
    names = {one.handle: None for one in opened.opinions}
    whose = [WHOLE, *names] if person.role == Role.COORDINATOR else [WHOLE]
    chosen = st.selectbox("What", whose, key=f"withdraw-what-{opened.response_id}")
    rater = None if chosen == WHOLE else chosen
    st.text(ONE_COUNTS if rater else NONE_COUNTS)
    frame.ask_withdrawal(engine, person, response=opened.response_id, rater=rater)


def _filters(engine: Engine, person: Person, views: Sequence[BenchmarkView]) -> Wanted:
    """Return what is compared and which responses are wanted; all of it stands in the address."""
    find, where, by, beside, more = st.columns((4, 4, 4, 3, 3), vertical_alignment="bottom")
    words = find.text_input(
        "Search",
        key="find",
        bind="query-params",
        placeholder="in all texts and ids",
    )
    flag = where.selectbox("Only where", list(FLAGS), key="where", bind="query-params")
    with more.popover("More filters", key="more-filters", width="stretch"):
        chosen = _compared_by(engine, person, views)
        named = {
            f"{name}: {value}": (name, value)
            for name, value in compare.subgroup_values(person, engine)
        }
        group = (
            st.selectbox("Subgroup", [ANY, *named], key="subgroup", bind="query-params")
            if named
            else ANY
        )
        tags, noted = response.ask_tags(engine, person)
    criteria = dict.fromkeys(
        name
        for view in views
        if chosen.benchmark in ("", view.name)
        for name in view.rubric.criteria
    )
    criterion = by.selectbox("Scores on", [MEAN, *criteria], key="scores-on", bind="query-params")
    chosen = replace(chosen, criterion=criterion if criterion in criteria else "")
    with beside:
        asked = second_jury.ask(engine, person, chosen)
    words, flag = (words or "").strip(), FLAGS.get(flag or ANY, "")
    return Wanted(chosen, asked, flag, words, named.get(group or ANY), tags, noted)


def _compared_by(engine: Engine, person: Person, views: Sequence[BenchmarkView]) -> Chosen:
    """Ask for benchmark, jury, clinician and measure."""
    names = [view.name for view in views]
    benchmark = st.selectbox("Benchmark", [ALL, *names], key="on", bind="query-params")
    jurors = compare.workbench_jurors(person, engine)
    jury = st.multiselect(
        "Jurors of the first jury",
        jurors,
        key="first-jury",
        bind="query-params",
        placeholder="all jurors that are not simulated",
    )
    clinicians = compare.workbench_clinicians(person, engine)
    clinician = st.selectbox(
        "Clinician", [EVERYBODY, *clinicians], key="clinician", bind="query-params"
    )
    if known := [f"{name} is {who}" for name, who in clinicians.items() if name != who]:
        st.caption(on_page(f"In addresses clinicians have other names: {', '.join(known)}."))
    measure = st.selectbox(
        *("Measure", [POINTS, Z]),
        key="measure",
        bind="query-params",
        help="z: with each rater's own level and spread taken out",
    )
    large = sum(view.responses for view in views) > MOST_LISTED and bool(clinicians)
    return Chosen(
        benchmark=benchmark if benchmark in names else "",
        jurors=tuple(sorted(juror for juror in jury if juror in jurors)),
        measure="z" if measure == Z else "points",
        clinician=clinician if clinician in clinicians else "",
        jury_alone=not large or st.checkbox(JURY_ALONE, key="alone", bind="query-params"),
    )


def _passing(
    engine: Engine,
    person: Person,
    wanted: Wanted,
    views: Sequence[BenchmarkView],
    changes: Mapping[int, JuryChange],
) -> list[Compared]:
    """Return the compared responses that pass all filters but what changed and the pair of scores."""
    chosen = wanted.chosen
    rows: Sequence[Compared] = compare.compared(person, engine, chosen)
    if wanted.asked:
        rows = second_jury.with_changes(rows, changes, wanted.asked.order)
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
        unsafe = _unsafe(engine, chosen, views)
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
    engine: Engine, chosen: Chosen, views: Sequence[BenchmarkView]
) -> dict[tuple[str, str], float]:
    """Return what the rubrics and the protocol call unsafe."""
    protocol = protocol_of(engine)
    critical = protocol.critical if protocol else ()
    return {
        (view.name, limit.criterion): limit.points
        for view in views
        for limit in thresholds(view.rubric.criteria, view.rubric.critical, critical)
        if chosen.criterion in ("", limit.criterion)
    }


def _of_pair(
    views: Sequence[BenchmarkView], chosen: Chosen, rows: list[Compared]
) -> list[Compared]:
    """Show the matrix of points; return the responses of the pair that is chosen in it, else all."""
    own = [view for view in views if chosen.benchmark in ("", view.name)]
    scales = {(view.rubric.scale.min, view.rubric.scale.max) for view in own}
    with st.expander("Clinicians by jury"):
        if chosen.measure == Z:
            st.caption("Scores in z have no points: choose points under More filters.")
            return rows
        if len(scales) != 1:
            st.caption("The benchmarks have different scales: choose one under More filters.")
            return rows
        cell = _matrix(confusion(rows, *scales.pop()))
    return [row for row in rows if cell is None or cell_of(row) == cell]


def _matrix(matrix: Confusion) -> Cell | None:
    """Draw the matrix, the highest point at the top, and return the pair that was clicked on."""
    points = [*reversed(matrix.points)]
    columns: dict[str, list[object]] = {"Clinicians": [f"{point}" for point in points]}
    for jury in matrix.points:
        columns[f"{jury}"] = [matrix.counts.get((point, jury), 0) for point in points]
    event = st.dataframe(
        columns,
        hide_index=True,
        key=PAIRS,
        on_select="rerun",
        selection_mode="single-cell",
        alt=MATRIX,
    )
    st.caption(
        ABOUT_MATRIX.format(
            same=matrix.agreeing(),
            both=matrix.both,
            jury=matrix.only_jury,
            clinicians=matrix.only_clinicians,
            neither=matrix.neither,
        )
    )
    cells = event["selection"]["cells"]
    if not cells or cells[0][1] not in columns or cells[0][1] == "Clinicians":
        return None
    return points[cells[0][0]], int(cells[0][1])


def _place(rows: Sequence[Compared]) -> int:
    """Return the place of the response that the address names, else of the first."""
    requested = st.query_params.get(RESPONSE, "")
    for index, row in enumerate(rows):
        if row.response_id == requested:
            return index
    if requested:
        del st.query_params[RESPONSE]
        st.warning(on_page(NOT_THERE.format(requested)))
    return 0


def _list(
    engine: Engine,
    person: Person,
    wanted: Wanted,
    rows: Sequence[Compared],
    at: int,
    changes: Mapping[int, JuryChange],
) -> None:
    """Show the responses, the largest difference first; a click or j and k open another."""
    if not rows:
        return
    st.session_state[LIST] = {"selection": {"rows": [at], "columns": [], "cells": []}}
    st.dataframe(
        columns_of(engine, person, rows, wanted.words, changes),
        hide_index=True,
        height=430,
        key=LIST,
        on_select=partial(_open, rows),
        selection_mode="single-row-required",
        column_config={
            name: st.column_config.NumberColumn(help=about, format=form, width=width)
            if form
            else st.column_config.TextColumn(help=about, width=width)
            for name, (width, form, about) in LISTED.items()
        },
        alt="Responses by disagreement",
    )
    with st.container(horizontal=True):
        for name, step, key in (("Previous", -1, "k"), ("Next", 1, "j")):
            st.button(
                name,
                key=f"step-{key}",
                shortcut=key,
                disabled=not 0 <= at + step < len(rows),
                on_click=partial(_go, rows[min(max(at + step, 0), len(rows) - 1)].response_id),
            )
    with_both = sum(row.difference is not None for row in rows)
    st.caption(
        f"{len(rows):,} responses, {with_both:,} of them scored by clinicians and by the whole jury."
        + ("" if wanted.chosen.jury_alone else f" {NOT_ALONE}")
    )


def columns_of(
    engine: Engine,
    person: Person,
    rows: Sequence[Compared],
    words: str = "",
    changes: Mapping[int, JuryChange] | None = None,
) -> dict[str, list[object]]:
    """Return the responses of the list as columns; their first words where they are few."""
    changes = changes or {}
    columns: dict[str, list[object]] = {
        "Response": [guarded_name(row.response_id) for row in rows],
        "Apart": [changes[row.response].difference if changes else row.difference for row in rows],
        "Clinicians": [row.first.mean for row in rows],
        "Jury": [row.second.mean for row in rows],
        "Said": [", ".join(_said(row, changes.get(row.response))) for row in rows],
    }
    keys = [row.response for row in rows]
    if len(rows) <= MOST_BEGUN:
        texts = compare.snippets(person, engine, keys, words)
        columns["Begins"] = [
            ("in a comment: " if texts[key].of_comment else "") + visible(texts[key].text)
            if key in texts
            else ""
            for key in keys
        ]
        tags = reviews.tags_on(person, engine, keys)
        columns["Tags"] = [", ".join(tags.get(key, ())) for key in keys]
    columns["Benchmark"] = [guarded_name(row.benchmark) for row in rows]
    return columns


def _said(row: Compared, change: JuryChange | None) -> list[str]:
    words = [words for flag, words in SAID.items() if flag in row.flags]
    if change is None:
        return words
    first, second = (
        "none" if side.mean is None else f"{side.mean:.2f}"
        for side in (change.row.first, change.row.second)
    )
    words.append(f"{first} \N{RIGHTWARDS ARROW} {second}")
    words += ["explanation changed"] if What.EXPLAINED_OTHERWISE in change.what else []
    return words + (["now a failure"] if What.NOW_FAILED in change.what else [])


def _open(rows: Sequence[Compared]) -> None:
    if selected := st.session_state[LIST]["selection"]["rows"]:
        _go(rows[selected[0]].response_id)


def _go(response_id: str) -> None:
    st.query_params[RESPONSE] = response_id

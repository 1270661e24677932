"""The monitoring screen: whether the jury still agrees, if not, why, and the frozen reports."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import streamlit as st
from sqlalchemy import Engine

from annotate import charts, tables, worker
from annotate.figures.shown import MonitoringAnswer, MonitoringBehind
from annotate.screens import controls, frame
from annotate.screens.controls import ALL, WHOLE
from annotate.screens.markup import caption, good, heading, said
from calibration.tables.monitoring import REPORTS, ComparedLine, comparison_table
from calibration.tables.numbers import DASH, fixed, interval
from calibration.tables.spec import laid_out
from calibration.values import AnalysisOptions
from data import queries
from data.person import Person, only
from data.schema import Report, Role
from medjury.services.frozen_reports import FreezeQuestion, jury_row, report_rows

ABOUT = (
    "How far the jury agrees with the clinicians, period by period, and what speaks for a change."
)
NOBODY = "No juror has rated a response of this study yet."
FIRST_STEP = (
    "Run a jury, or bring in scores made elsewhere; clinicians' ratings are needed beside them."
)
NO_ANCHOR = (
    "No anchor: nothing was scored again a week or more later. A run in the Jury lab with more "
    '"Verdicts of each juror" makes one, and tells a changed model from other cases.'
)
UNKNOWN_ENDS = "A dash: no end is announced, or the model is not known."
FIRST, THEN = "annotate.figures.monitoring:answer", "annotate.figures.monitoring:behind"
Row = Mapping[str, Any]
MOST_DIGITS = 15
LONGEST_NAME = 60
SHORT = 12
MADE = "report-frozen"
DIGITS = 3
# Each with the word of its control where it was not chosen.
OPTIONS = {
    "benchmark": ALL,
    "criterion": WHOLE,
    "references": "all",
    "min_shared": "all",
    "min_jurors": "all",
}
NONE_YET = "No report is frozen yet: freeze one on as many responses as there are, to compare with."
FREEZE = "medjury.services.frozen_reports:freeze_report"


def show(engine: Engine, person: Person) -> None:
    """Show the decision and agreement over time, then what was chosen, and the frozen reports."""
    frame.begin(person, "Monitoring", ABOUT, "monitoring.css")
    if not queries.jurors_heard(person, engine):
        frame.empty(NOBODY, FIRST_STEP)
        return
    worker.wake()
    top = st.container()
    question = controls.of_monitoring(engine, person)
    say_frozen()
    figures = st.container()  # they take a while: a report just frozen is listed before them
    show_reports(engine, person, question.options)
    first: Future[MonitoringAnswer] = worker.ask(person, engine, FIRST, question)
    then: Future[MonitoringBehind] = worker.ask(person, engine, THEN, question)
    with top:
        found = frame.computed(first, "Agreement over time is being computed")
        if found is not None:
            _answer(found)
    with figures:
        if found is not None:
            st.html(tables.of_table(found.periods))
            _behind(then)


def _answer(found: MonitoringAnswer) -> None:
    """Show the decision, and beside each other the charts."""
    st.html(tables.of_decision(found.decision))
    st.html(caption(f"Jury: {', '.join(found.jury)}"))
    with st.container(key="beside"):
        for place, one in zip(st.columns(len(found.charts)), found.charts, strict=True):
            with place:
                charts.show(one.spec, one.name, one.caption, one.alt)


def _behind(coming: "Future[MonitoringBehind]") -> None:
    """Show what a change may come from, and when the jurors' models end."""
    found = frame.computed(coming, "What speaks for what is being computed")
    if found is None:
        return
    lines = [*found.said, *([] if found.anchored else [NO_ANCHOR])]
    st.html(heading("What speaks for what") + "".join(map(said, lines)))
    for one in found.tables:
        st.html(tables.of_table(one))
    st.html(tables.of_table(found.jurors) + caption(UNKNOWN_ENDS))


def show_reports(engine: Engine, person: Person, options: AnalysisOptions) -> None:
    """Show the frozen reports, compare two, and let a coordinator freeze one of these options."""
    found = queries.frozen_reports(person, engine)
    rows = report_rows(engine, found)
    st.html(heading("Frozen reports"))
    if rows:
        st.html(tables.of_table(laid_out(REPORTS, rows, mark_each=True)))
    else:
        st.html(said(NONE_YET))
    if len(found) > 1:
        _compared(dict(zip((one.title for one in rows), found, strict=True)))
    if person.role == Role.COORDINATOR:
        _form(engine, person, options)


def say_frozen() -> None:
    """Say that a report was just frozen: at once, for what follows is computed anew."""
    if made := st.session_state.pop(MADE, None):
        told = f"{made} is frozen. It is kept as it is, and the record vouches for it."
        st.html(good(told))


def _compared(known: Mapping[str, Report]) -> None:
    """Show two reports side by side; which ones stands in the URL."""
    names = [*known]
    earlier, later, _ = st.columns((1, 1, 2))
    a = earlier.selectbox(
        "Compare", names, index=len(names) - 2, key="earlier", bind="query-params"
    )
    b = later.selectbox("with", names, index=len(names) - 1, key="later", bind="query-params")
    st.html(tables.of_table(comparison_table([*compared(known[a], known[b])], a, b)))


def compared(a: Report, b: Report) -> Iterator[ComparedLine]:
    """Yield what each of two reports has of everything that makes a figure, and where they differ."""
    one, other = jury_row(a.body, None), jury_row(b.body, None)
    yield _iccs(one, other)
    for name in ("n_responses", "n_instances"):
        yield _both(name.removeprefix("n_").capitalize(), one[name], other[name])
    yield _both("Ratings, fingerprint", a.fingerprint, b.fingerprint, SHORT)
    was, now = a.body, b.body
    for name in _names(was, now, "rubrics"):
        told = [each.get("rubrics", {}).get(name) for each in (was, now)]
        yield _line(f"Rubric of {name}", _rubric(told[0]), _rubric(told[1]), told[0] != told[1])
    who = [", ".join(each.get("jury", ())) or DASH for each in (was, now)]
    yield _both("Jurors", who[0], who[1])
    for name in _names(was, now, "jurors"):
        marks = [each.get("jurors", {}).get(name, {}).get("sha256", "") for each in (was, now)]
        yield _both(f"Settings of {name}", marks[0] or DASH, marks[1] or DASH, SHORT)
    yield _both("Method", was.get("method"), now.get("method"))
    options = (was.get("options", {}), now.get("options", {}))
    for name, unset in OPTIONS.items():
        told = [each.get(name) or unset for each in options]
        yield _both(name.replace("_", " ").capitalize(), told[0], told[1])
    for name in ("reps", "seed", "version"):
        yield _both(name.capitalize(), was.get(name), now.get(name))


def _names(was: Row, now: Row, part: str) -> Sequence[str]:
    return sorted({*was.get(part, {}), *now.get(part, {})})


def _line(what: str, one: str, other: str, differs: bool) -> ComparedLine:
    return ComparedLine(what, one, other, "changed" if differs else "")


def _both(what: str, one: object, other: object, shown: int | None = None) -> ComparedLine:
    """Return two values in words, the first so many signs of them, compared as they are stored."""
    return _line(what, f"{one}"[:shown], f"{other}"[:shown], one != other)


def _iccs(one: Row, other: Row) -> ComparedLine:
    """Return two ICCs with their intervals, with as many digits as tell them apart."""
    ends = ("icc", "boot_low", "boot_high")
    differs = any(one[name] != other[name] for name in ends)
    digits = DIGITS
    while differs and digits < MOST_DIGITS and _icc(one, digits) == _icc(other, digits):
        digits += 1
    return _line("ICC(C,2) with the clinicians", _icc(one, digits), _icc(other, digits), differs)


def _form(engine: Engine, person: Person, options: AnalysisOptions) -> None:
    """Let a coordinator freeze what holds now."""
    with st.form("freeze", clear_on_submit=True, border=False):
        told, press = st.columns((3, 1), vertical_alignment="bottom")
        name = told.text_input(
            "Freeze a report now, of the jury and the scope chosen above; call it (optional)",
            max_chars=LONGEST_NAME,
        )
        pressed = press.form_submit_button("Freeze a report", type="primary", width="stretch")
    if pressed and _freeze(person, engine, name, options):
        newest = queries.frozen_reports(person, engine)[-1]
        st.session_state[MADE] = report_rows(engine, [newest])[0].title
        st.rerun()


@only(Role.COORDINATOR)
def _freeze(person: Person, engine: Engine, name: str, options: AnalysisOptions) -> bool:
    """Compute and freeze a calibration in the worker process; tell whether it was."""
    called = "".join(sign for sign in name if sign.isprintable()).strip()[:LONGEST_NAME]
    question = FreezeQuestion(options, called)
    coming: Future[int] = worker.ask(person, engine, FREEZE, question)
    return frame.computed(coming, "The report is being computed") is not None


def _icc(row: Row, digits: int) -> str:
    ends = interval(row["boot_low"], row["boot_high"], digits - 1)
    return f"{fixed(row['icc'], digits)}{f' ({ends})' if ends else ''}"


def _rubric(told: Row | None) -> str:
    if told is None:
        return DASH
    return f"{told['name']} {str(told['version'])[:SHORT]}, {told['sha256'][:SHORT]}"

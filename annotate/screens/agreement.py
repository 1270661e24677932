"""The agreement screen: how well jury and clinicians agree, what that depends on, and the report."""

import html
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import quote

import streamlit as st
from sqlalchemy import Engine

from annotate import charts, compute, tables
from annotate.compute import ask
from annotate.results import (
    AgreementQuestion,
    Answer,
    Behind,
    Chart,
    Fact,
    Pair,
    Section,
)
from annotate.screens import agreement_errors, agreement_routing, controls, frame
from annotate.screens.frame import caption, heading, lead
from calibration.notes import listed
from calibration.tables.numbers import PAGE, fixed
from calibration.tables.planning import means_table, single_table
from data.csv_files import csv_bytes
from data.person import Person
from data.study.standing import benchmarks
from medjury.services.points import BenchmarkPoints, PointsQuestion, tables_of
from medjury.services.predicting import Predictions, csv_of

ABOUT = (
    "How well the jury, each juror and each metric agree with the clinicians, and how sure that is."
)
LIKE_FOR_LIKE = "Only 'like for like' shows whether the jury may take a clinician's place."
LUCK = "Juries tried on this study so far: {}. The best of many is partly best by luck."
NO_CRITICAL = (
    "No criterion is critical, so no response is called unsafe. To have some called so, mark a criterion "
    "as critical in the rubric, or name it in the protocol, before anybody rates."
)
NO_GROUP = (
    "No response is in a group. To add groups, give the file of responses columns such as "
    "group:language, and import it again."
)
POINTS = "medjury.services.points:points_agreement"
NO_POINTS = (
    "No benchmark chosen here is rated by points of the case. To have one rated so, bring its points in "
    "under Study, Points."
)
NO_MARK = (
    "No clinician has marked a passage yet. Clinicians mark in the rating room, by "
    "selecting words of the response or the source."
)
APART = "Responses on which jury and clinicians are farthest apart"
FIRST, THEN = "annotate.analyses:agreement", "annotate.analyses:agreement_details"
REPORT_FILES = {
    "html": ("Report to read and print", "html", "text/html"),
    "markdown": ("Table as Markdown", "md", "text/markdown"),
    "csv": ("Table as CSV", "csv", "text/csv"),
    "latex": ("Table for LaTeX", "tex", "text/plain"),
}
ABOUT_REPORT = (
    "One HTML file with everything on this page, which can be kept and read without a "
    "network, and the table of all scorers in three formats. Both follow the choices above."
)
ABOUT_PREDICTIONS = (
    "What clinicians would say of the responses that none of them rated, from the jury chosen above. "
    "It may be used only where the jury is validated; the first line says whether it is."
)
MORE_PREDICTIONS = "Single responses, and the agreement this rests on"
PREDICT = "medjury.services.predicting:predict"
PREDICTED = "predicted"  # in the session: for which question predictions were asked
OF_A_JURY = ("Criteria", "Responses", "Comparisons", "Jurors", "Predictions")
REPORT_MADE = "report-made"  # in the session: for which question the report was asked
TERMS_OPEN, MORE_TERMS = 6, "Further definitions"
COMPUTING = "Agreement is being computed, and again without each instance for its intervals"
MORE = "What stands behind the answer is being computed"
OF_POINTS = "Agreement on points of the case is being computed"
WRITING = "The report is being written: its figures are computed, then its charts are drawn"
PREDICTING = "Responses that no clinician rated are being predicted, and the predictions checked"
MOST_FAR, MOST_PICKED = 10, 50
NEAR = 1e-5


def show(engine: Engine, person: Person) -> None:
    """Show the agreement that is asked for: the answer first, then a view at a time."""
    frame.begin(person, "Agreement", ABOUT, "agreement.css")
    compute.prepare()
    question = controls.of_agreement(engine, person)
    coming: Future[Answer] = compute.ask(person, engine, FIRST, question)
    answer = frame.computed(coming, COMPUTING)
    if answer is None:
        return
    st.html(tables.of_decision(answer.decision))
    later = Later(engine, person, question)
    views: dict[str, Callable[[], None]] = {
        "Overview": partial(_overview, answer, later),
        "Criteria": partial(_criteria, later),
        "Responses": partial(_responses, later),
        "Unsafe responses": partial(_unsafe_and_routing, engine, person, question, later),
        "Subgroups": partial(_if_any, later, "12", NO_GROUP, _section),
        "Points": partial(_points, engine, person, question),
        "Marks": partial(_if_any, later, "13", NO_MARK, _section_with_notes_folded),
        "Errors": partial(agreement_errors.show, engine, person, question),
        "Comparisons": partial(_sections, later, "3", "4"),
        "Sensitivity": partial(_hanging, later),
        "Jurors": partial(_sections, later, "6"),
        "Definitions": partial(_origin, answer, later),
        "Predictions": partial(show_predictions, engine, person, question),
        "Report": partial(show_report, engine, person, question),
    }
    if not answer.jury:
        own = {
            "Overview": partial(_before_a_jury, answer, later),
            "Raters": partial(_raters, later),
        }
        rest = {name: draw for name, draw in views.items() if name not in OF_A_JURY}
        views = own | rest | own
    frame.show_tabs(views)


def _points(engine: Engine, person: Person, question: AgreementQuestion) -> None:
    """Show agreement on points of the case, each benchmark that is rated by them."""
    options = question.options
    views = benchmarks(engine)
    if not any(one.rubric.points and options.benchmark in (None, one.name) for one in views):
        st.html(frame.paragraph(NO_POINTS))
        return
    asked = PointsQuestion(options.benchmark, options.jurors, options.reps, options.seed)
    coming: Future[list[BenchmarkPoints]] = compute.ask(person, engine, POINTS, asked, "long")
    found = frame.computed(coming, OF_POINTS)
    if found is not None:
        st.html("".join(tables.of_table(table) for one in found for table in tables_of(one)))


class Later:
    """The details behind the answer: requested at once, waited for by the views that need them."""

    def __init__(self, engine: Engine, person: Person, question: AgreementQuestion) -> None:
        self.coming: Future[Behind] = compute.ask(person, engine, THEN, question, "long")

    def found(self) -> Behind | None:
        """Return the details, waiting for them; if they were refused, show why and return None."""
        return frame.computed(self.coming, MORE)


def _overview(answer: Answer, later: Later) -> None:
    """Show chart and table at once, and under them what takes longer."""
    _charts(answer.charts, "intervals")
    made_up = f"Simulated raters: {listed(answer.simulated)}." if answer.simulated else ""
    below = caption(LIKE_FOR_LIKE) + (caption(made_up) if made_up else "")
    each = tables.of_table(answer.each) if answer.each else ""
    more = tables.folded(tables.EACH_BENCHMARK, each)
    raters = tables.of_table(answer.raters) if answer.raters else ""
    st.html(tables.of_table(answer.table) + below + raters + more)
    said = st.container()
    behind = later.found()
    if behind is None:
        return
    luck = LUCK.format(behind.tried) if behind.tried > 1 else ""
    said.html((lead(luck) if luck else "") + caption(behind.checked))


def _before_a_jury(answer: Answer, later: Later) -> None:
    """Show what is known without a jury: the table, and how reliable the clinicians are."""
    _overview(answer, later)
    if behind := later.found():
        st.html(heading("How reliable the clinicians are"))
        _tables(behind.sections["3"])


def _raters(later: Later) -> None:
    """Show clinicians and metrics one by one: severity, consistency, what their scores hang on."""
    if behind := later.found():
        st.html(heading("Clinicians and metrics one by one"))
        _tables(behind.sections["6"])


def _criteria(later: Later) -> None:
    if behind := later.found():
        _section(behind.sections["2"])


def _responses(later: Later) -> None:
    if behind := later.found():
        drawn = [chart for chart in behind.charts if chart.name == "scatter"]
        show_responses(drawn, behind.pairs)


def _unsafe_and_routing(
    engine: Engine, person: Person, question: AgreementQuestion, later: Later
) -> None:
    """Show what is found of unsafe responses, and below it which ones the jury may pass."""
    _if_any(later, "11", NO_CRITICAL, _section)
    agreement_routing.show(engine, person, question)


def _if_any(later: Later, number: str, otherwise: str, draw: Callable[[Section], None]) -> None:
    """Show a section that not every study has, or how a study comes by it."""
    if behind := later.found():
        if part := behind.sections.get(number):
            draw(part)
        else:
            st.html(lead(otherwise))


def _hanging(later: Later) -> None:
    if behind := later.found():
        part = behind.sections["5"]
        st.html(heading(part.title) + lead(part.lead))
        _tables(part, leave_out=APART)


def _origin(answer: Answer, later: Later) -> None:
    """Show the definitions, and closed below them what was tried and what it cost."""
    for line in answer.told:
        st.html(lead(line))
    if behind := later.found():
        defined = behind.sections["9"]
        st.html(heading(defined.title) + lead(defined.lead))
        _tables(defined)
        rest = _facts(defined.facts[TERMS_OPEN:])
        st.html(_facts(defined.facts[:TERMS_OPEN]) + tables.folded(MORE_TERMS, rest))
        for number in ("7", "8"):
            part = behind.sections[number]
            body = lead(part.lead) + "".join(map(tables.of_table, part.tables)) + _facts(part.facts)
            st.html(tables.folded(part.title, body))


def _sections(later: Later, *numbers: str) -> None:
    """Show sections of the report, one after another."""
    if behind := later.found():
        for number in numbers:
            _section(behind.sections[number])


def _section(part: Section) -> None:
    """Show a section of the report: how to read it, its tables, its facts."""
    st.html(heading(part.title) + lead(part.lead))
    _tables(part)
    if part.facts:
        st.html(_facts(part.facts))


def _section_with_notes_folded(part: Section) -> None:
    """Show a section of the report whose tables have long notes."""
    shown = "".join(map(tables.with_notes_folded, part.tables))
    st.html(heading(part.title) + lead(part.lead) + shown + _facts(part.facts))


def _facts(facts: Sequence[Fact]) -> str:
    """Return facts as terms with their meanings; nothing for none."""
    lines = "".join(
        f"<dt>{html.escape(term)}</dt><dd>{html.escape(meaning)}</dd>" for term, meaning in facts
    )
    return f'<dl class="mj-facts">{lines}</dl>' if lines else ""


def _tables(part: Section, leave_out: str = "no such caption") -> None:
    """Show the tables of a section, the first open."""
    shown = [
        table
        for table in part.tables
        if not table.caption.removeprefix("Simulated. ").startswith(leave_out)
    ]
    if shown:
        st.html(tables.of_tables(shown))


def _charts(drawn: Sequence[Chart], *names: str) -> None:
    for chart in drawn:
        if chart.name in names:
            name = f"{chart.name}-{chart.benchmark}" if chart.benchmark else chart.name
            charts.show(chart.spec, name, chart.caption, chart.alt, chart.rows or None)


def show_report(engine: Engine, person: Person, question: AgreementQuestion) -> None:
    """Offer the report for the current choices; it is made when the button is pressed."""
    st.html(heading("Report") + lead(ABOUT_REPORT))
    if st.button("Make the report", type="primary", key="make-report"):
        st.session_state[REPORT_MADE] = question
    if st.session_state.get(REPORT_MADE) != question:
        return
    coming: Future[dict[str, str]] = ask(
        person, engine, "annotate.analyses:agreement_reports", question, "long"
    )
    texts = frame.computed(coming, WRITING)
    if texts is None:
        return
    with st.container(horizontal=True, gap="small"):
        for name, (label, end, mime) in REPORT_FILES.items():
            to = f"agreement.{end}"
            st.download_button(label, texts[name], to, mime, key=f"file-{name}", on_click="ignore")


def show_predictions(engine: Engine, person: Person, question: AgreementQuestion) -> None:
    """Predict, when the button is pressed, what clinicians would say of responses they did not rate."""
    st.html(heading("Predictions") + lead(ABOUT_PREDICTIONS))
    asked = question.options
    if st.button("Predict", type="primary", key="predict"):
        st.session_state[PREDICTED] = asked
    if st.session_state.get(PREDICTED) != asked:
        return
    coming: Future[Predictions] = ask(person, engine, PREDICT, asked, "long")
    answer = frame.computed(coming, PREDICTING)
    if answer is None:
        return
    means = means_table(answer.rows, answer.level, PAGE)
    st.html(tables.of_decision(answer.decision) + tables.of_table(means))
    file = ("Predictions as CSV", lambda: csv_bytes(*csv_of(answer.responses)))
    names = ("predictions.csv", "text/csv")
    st.download_button(*file, *names, key="save-predictions", on_click="ignore")
    with st.expander(MORE_PREDICTIONS):
        single = replace(single_table(answer.rows, answer.level, PAGE), notes=())  # the means' own
        st.html(tables.of_table(single) + "".join(map(lead, answer.told)))


def show_responses(drawn: Sequence[Chart], pairs: Sequence[Pair]) -> None:
    """Show the chart of each benchmark, what was clicked on, and which responses are far apart."""
    if not drawn:
        st.html(lead("No response has both a jury's and a clinician's mean."))
    for chart in drawn:
        rows = rows_of(next(pair for pair in pairs if pair.benchmark == chart.benchmark))
        selected = _picked(chart, rows)
        if selected:
            more = len(selected) - MOST_PICKED
            notes = [f"{more} more are at the same place."] if more > 0 else []
            st.html(_pairs_table(selected[:MOST_PICKED], "Responses you clicked on", notes))
        far = sorted(rows, key=lambda row: -abs(row["gap"]))[:MOST_FAR]
        st.html(_pairs_table(far, "Farthest apart", []))


def rows_of(pair: Pair) -> list[dict[str, Any]]:
    """Return a row for each response: both means, and their difference, in points."""
    return [
        {"response": name, "clinicians": ours, "jury": theirs, "gap": theirs - ours}
        for name, ours, theirs in zip(pair.responses, pair.clinicians, pair.jury, strict=True)
    ]


def _picked(chart: Chart, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Show a chart; return the responses at the place that was clicked on."""
    drawn = charts.plotted(chart.spec)
    fields = [name for name in ("x", "y", "near") if drawn and name in drawn[0]]
    spec = charts.pickable(chart.spec, "circle", *fields)
    marks = charts.show(spec, f"{chart.name}-{chart.benchmark}", chart.caption, chart.alt, rows)
    return [
        row
        for mark in marks
        for row in rows
        if abs(row["clinicians"] - mark["x"]) <= mark.get("near", 0) + NEAR
        and abs(row["jury"] - mark["y"]) <= mark.get("near", 0) + NEAR
    ]


def _pairs_table(rows: Sequence[Mapping[str, Any]], caption: str, notes: Sequence[str]) -> str:
    """Return responses as a table, each a link to the workbench."""
    columns = [
        tables.Column(
            "Response",
            lambda row: tables.link(
                row["response"], f"/workbench?response={quote(row['response'], safe='')}"
            ),
        ),
        tables.number("Clinicians, points", "clinicians"),
        tables.number("Jury, points", "jury"),
        tables.Column("Jury minus clinicians", lambda row: _signed(row["gap"])),
    ]
    return tables.table(rows, columns, caption, notes)


def _signed(value: float) -> str:
    text = fixed(value)
    return f"+{text}" if value > 0 and text.strip("0.") else text

"""The agreement screen: the verdict, what it rests on, and the single responses behind it."""

from concurrent.futures import Future

import streamlit as st
from sqlalchemy import Engine

from annotate import compute, draw
from annotate.figures import AgreementQuestion, Found
from annotate.screens import controls, frame
from annotate.screens.agreement import errors, models, responses, routing
from annotate.screens.export import report
from data.person import Person
from data.safe_text import on_page
from data.study.standing import benchmarks
from medjury.services.points import BenchmarkPoints, PointsQuestion, tables_of

VIEWS = (
    *("Result", "Criteria", "Unsafe", "Subgroups", "Errors", "Jurors"),
    *("Models", "Responses"),
)
OWN_CHOICES = {"Models": models.show, "Responses": responses.show}
ABOUT = "May the jury stand in for a clinician, on which outputs, and how sure is that?"
FIRST, THEN = "annotate.figures:agreement", "annotate.figures:agreement_details"
POINTS = "medjury.services.points:points_agreement"
COMPUTING = "Agreement is being computed, and again without each instance for its intervals"
MORE = "What stands behind the answer is being computed"
OF_POINTS = "Agreement on points of the case is being computed"
CHOICES = "What is analysed"
NOTHING_HELD = (
    "There is no picture yet: jury and clinician can be compared where at least two clinicians rated "
    "the same responses and every juror scored them."
)
NO_JURY = (
    "No juror has rated yet. Run a jury under Jury; then this page compares it with a clinician."
)
LUCK = "Juries tried on this study so far: {}. The best of many is partly best by luck."
NO_CRITICAL = (
    "No criterion is critical, so no response is called unsafe. To have some called so, mark a criterion "
    "as critical in the rubric, or name it in the protocol, before anybody rates."
)
NO_GROUP = (
    "No response is in a group. To add groups, give the file of responses columns such as "
    "group:language, and import it again."
)
ANSWERS = {
    "Criteria": "On which criteria of the rubric do jury and clinicians agree?",
    "Unsafe": "Does the jury find the responses that clinicians call unsafe, and which may it pass?",
    "Subgroups": "Does the jury agree as well on each group of responses?",
    "Jurors": "How does each juror, clinician and metric agree, and what do its scores hang on?",
}
# The report's section that a view shows, and what is said where it is empty.
SECTIONS = {
    "Criteria": ("2", NO_JURY),
    "Unsafe": ("11", NO_CRITICAL),
    "Subgroups": ("12", NO_GROUP),
}
WANTED = "report-wanted"  # in the session: for which question the report was asked


def show(engine: Engine, person: Person) -> None:
    """Show the verdict first, then a view at a time of what is behind it."""
    frame.begin(person, "Agreement", ABOUT, "agreement.css")
    compute.prepare(engine)
    choices = st.container()
    tabs = st.tabs(VIEWS, key="view", on_change="rerun", bind="query-params")
    view, tab = next(one for one in zip(VIEWS, tabs, strict=True) if one[1].open)
    if view in OWN_CHOICES:
        with tab:
            OWN_CHOICES[view](engine, person)
        return
    with choices.expander(CHOICES):
        question = controls.of_agreement(engine, person)
    with tab:
        if view == "Result":
            _result(engine, person, question)
        elif view == "Errors":
            errors.show(engine, person, question)
        else:
            st.markdown(ANSWERS[view])
            _behind(engine, person, question, view, _details(engine, person, question))


def _details(engine: Engine, person: Person, question: AgreementQuestion) -> Found | None:
    """Return what stands behind the answer, waiting for it; why it is refused is shown."""
    coming: Future[Found] = compute.ask(person, engine, THEN, question, "long")
    return frame.computed(coming, MORE)


def _behind(
    engine: Engine, person: Person, question: AgreementQuestion, view: str, found: Found | None
) -> None:
    """Show what stands behind the answer, as far as it could be computed."""
    if view == "Jurors" and found:
        _jurors(found)
    elif found:
        _section(found, *SECTIONS[view])
    if view == "Unsafe" and found:
        routing.show(engine, person, question)
    elif view == "Criteria":
        _points(engine, person, question)


def _result(engine: Engine, person: Person, question: AgreementQuestion) -> None:
    """Show the verdict, the one comparison that it rests on, and what to do next."""
    coming: Future[Found] = compute.ask(person, engine, FIRST, question)
    found = frame.computed(coming, COMPUTING)
    if found is None:
        return
    decision = found["decision"]
    draw.verdict(decision)
    if not found["jury"]:
        st.info(NO_JURY)
    elif held := found["held"]:
        draw.picture(held)
    else:
        st.info(NOTHING_HELD)
    if decision.next:
        st.markdown(f"**Next:** {on_page(decision.action)}")
    draw.reasons(decision)
    _section(found, "pairs", "", opened=3)
    for line in found["told"]:
        st.caption(on_page(line))
    if st.button("Make the report", key="make-report", help="All figures of this screen, as files"):
        st.session_state[WANTED] = question
    if st.session_state.get(WANTED) == question:
        report.offer(engine, person, question)


def _points(engine: Engine, person: Person, question: AgreementQuestion) -> None:
    """Show agreement on the points of the case where a benchmark has some."""
    options = question.options
    views = benchmarks(engine)
    if any(one.rubric.points and options.benchmark in (None, one.name) for one in views):
        asked = PointsQuestion(options.benchmark, options.jurors, options.reps, options.seed)
        coming: Future[list[BenchmarkPoints]] = compute.ask(person, engine, POINTS, asked, "long")
        for one in frame.computed(coming, OF_POINTS) or []:
            for table in tables_of(one):
                draw.table(table)


def _jurors(found: Found) -> None:
    """Show all scorers, each clinician, what the jury's ICC gains on others, and each juror."""
    draw.table(found["table"])
    st.caption(on_page(found["checked"][:1].upper() + found["checked"][1:]))
    for number in ("3", "4", "6"):
        _section(found, number, "", opened=0)
    if found["tried"] > 1:
        st.caption(LUCK.format(found["tried"]))


def _section(found: Found, number: str, otherwise: str, opened: int = 1) -> None:
    """Show a section of the report, its first tables open and the others folded; else how to come by it."""
    lead, tables, facts = found.get(number, ("", [], []))
    if not tables and not facts:
        if otherwise:
            st.info(otherwise)
        return
    st.caption(on_page(lead))
    for table in tables[:opened]:
        draw.table(table)
    for table in tables[opened:]:
        with st.expander(on_page(table.caption)):
            draw.table(table, titled=False)
    for term, meaning in facts:
        st.markdown(f"**{on_page(term)}**: {on_page(meaning)}")

"""The monitor: whether the jury still agrees, if not, why, and the reports that were frozen."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import streamlit as st
from sqlalchemy import Engine

from annotate import compute, draw
from annotate.figures import Found
from annotate.screens import controls, frame
from annotate.screens.controls import ALL, WHOLE
from calibration.tables.monitoring import REPORTS, ComparedLine, comparison_table
from calibration.tables.numbers import DASH, fixed, interval
from calibration.tables.spec import laid_out
from calibration.values import AnalysisOptions
from data.person import Person, only
from data.safe_text import on_page
from data.schema import Report, Role
from data.study import ledger, people, rubrics
from data.study.ledger import LONGEST_REASON, withdraw_report
from medjury.services.frozen_reports import FreezeQuestion, jury_row, report_rows

ABOUT = "Does the jury still agree with the clinicians, period by period, and if not, why?"
NOBODY = (
    "No juror has rated a response of this study yet. Run a jury under Jury, or import scores made "
    "elsewhere; clinicians' ratings are needed as well. Then agreement is followed here over time."
)
NO_ANCHOR = (
    "No response was scored twice a week or more apart. A run under Jury with more "
    '"Times each juror rates a response" gives such scores; with it, a changed model can be told from other cases.'
)
UNKNOWN_ENDS = "An empty end: none is announced, or the model is not known."
OF_ICC = (
    "Points are ICC(C,2) of the jury with the clinicians, lines the 95 % interval over "
    "instances. Baseline periods make the target."
)
CAUSES = "Where agreement changed: were other responses rated, or do clinicians or jurors score otherwise?"
REPORTED = "What did earlier reports say, and what has changed between two of them?"
WATCHED = "annotate.figures:monitoring"
COMPUTING = "Agreement is being computed for each period, and causes are looked for"
Row = Mapping[str, Any]
MOST_DIGITS, DIGITS, SHORT, LONGEST_NAME = 15, 3, 12, 60
MADE, LISTED = "report-frozen", "reports-listed"
FORMS, COMING = "freeze-forms", "report-coming"
# Each with the word of its control where it was not chosen.
OPTIONS = {
    "benchmark": ALL,
    "criterion": WHOLE,
    "references": "all",
    "min_shared": "all",
    "min_jurors": "all",
}
NONE_YET = "No report is frozen yet. Freeze one on as many responses as possible, to compare later results with."
UNDONE = "undone at once after it was frozen"
ABOUT_WITHDRAWAL = (
    "A report that is withdrawn is compared with no later one and validates no jury. It stays listed here with your "
    "name and the reason, and its number is not given again."
)
FROZEN = "{} is frozen. It stays as it is; a check of the record would show any change."
FREEZE = "medjury.services.frozen_reports:freeze_report"


def show(engine: Engine, person: Person) -> None:
    """Show the decision and agreement over time, then the frozen reports."""
    frame.begin(person, "Monitor", ABOUT, "agreement.css")
    if not rubrics.jurors_with_ratings(person, engine):
        st.info(NOBODY)
        return
    top = st.container()
    question = controls.of_monitoring(engine, person)
    say_frozen(engine, person)
    figures = st.container()  # they take a while: a report just frozen is listed before them
    show_reports(engine, person, question.analysis)
    with top:
        coming: Future[Found] = compute.ask(person, engine, WATCHED, question)
        found = frame.computed(coming, COMPUTING)
        if found is None:
            return
        draw.decision(found["decision"])
        draw.chart(found["chart"], found["alt"], OF_ICC, key="over-time")
        st.caption(on_page(f"Jury: {', '.join(found['jury'])}"))
    with figures:
        _causes(found)


def _causes(found: Found) -> None:
    """Show the periods, what a change may come from, and when the jurors' models end."""
    draw.table(found["periods"])
    st.subheader("Possible causes")
    st.caption(CAUSES)
    st.markdown(on_page(f"{found['why'][0].upper()}{found['why'][1:]}."))
    if not found["anchored"]:
        st.caption(NO_ANCHOR)
    for shown in found["tables"]:
        draw.table(shown)
    with st.expander(found["ends"].caption):
        draw.table(found["ends"], titled=False)
        st.caption(UNKNOWN_ENDS)


def show_reports(engine: Engine, person: Person, options: AnalysisOptions) -> None:
    """Show the frozen reports, compare two, and let a coordinator freeze one of these options."""
    reports = rubrics.frozen_reports(person, engine)
    rows = report_rows(reports)
    by_title = dict(zip((row.title for row in rows), reports, strict=True))
    listed, beside, gone, acts = (st.container() for _ in range(4))  # each where it was before
    with listed:
        st.subheader("Frozen reports")
        st.caption(REPORTED)
        if rows:
            draw.table(laid_out(REPORTS, rows, mark_each=True), titled=False)
        else:
            st.info(NONE_YET)
    if len(reports) > 1:
        with beside:
            _compared(by_title)
    with gone:
        _show_withdrawn(engine, person)
    if person.role == Role.COORDINATOR:
        with acts:
            _form(engine, person, options)
            if rows:
                _withdrawal(engine, person, {title: one.id for title, one in by_title.items()})


def say_frozen(engine: Engine, person: Person) -> None:
    """Say that a report was just frozen, and offer to undo it, until the page is used for anything else."""
    if (made := st.session_state.pop(MADE, None)) is None:
        return
    title, number = made
    st.success(on_page(FROZEN.format(title)))
    st.button("Undo", key="freeze-undo", on_click=_withdraw, args=(engine, person, number, UNDONE))


def _withdraw(engine: Engine, person: Person, number: int, reason: str) -> None:
    """Withdraw a report; why not is shown with the reports."""
    with frame.refusals():
        withdraw_report(person, engine, number, reason)


def _withdrawal(engine: Engine, person: Person, numbers: Mapping[str, int]) -> None:
    """Let a coordinator withdraw a report, with a reason."""
    with st.expander("Withdraw a report", key="withdraw"):
        st.caption(ABOUT_WITHDRAWAL)
        with st.form("withdrawal", clear_on_submit=True, border=False):
            title = st.selectbox("Report to withdraw", [*numbers])
            reason = st.text_input("Why it is withdrawn", max_chars=LONGEST_REASON)
            pressed = st.form_submit_button("Withdraw the report")
        if pressed and title in numbers:
            with frame.refusals():
                withdraw_report(person, engine, numbers[title], reason)
                st.rerun()


def _show_withdrawn(engine: Engine, person: Person) -> None:
    """Show what was withdrawn, by whom, and why."""
    withdrawn = ledger.withdrawn_reports(person, engine)
    if not withdrawn:
        return
    names = people.names_of_actors(person, engine)
    rows = [
        {
            "Report": f"{event.detail['report']} {name}".strip(),
            "Withdrawn": f"{event.at:%d %b %Y, %H:%M} UTC",
            "By": names.get(event.actor, event.actor),
            "Why": event.detail["reason"],
        }
        for event, name in withdrawn
    ]
    draw.rows("Withdrawn reports", rows)


def _compared(reports: Mapping[str, Report]) -> None:
    """Show two reports side by side, the newest and the one before; others stand in the URL.

    A report that is new since this page was last drawn is compared with the one before it,
    whatever was shown until then.
    """
    names = [*reports]
    if st.session_state.get(LISTED, names) != names:
        for key in ("earlier", "later"):
            st.session_state.pop(key, None)
            st.query_params.pop(key, None)
    st.session_state[LISTED] = names
    earlier, later, _ = st.columns((1, 1, 2))
    a = earlier.selectbox(
        "Compare", names, index=len(names) - 2, key="earlier", bind="query-params"
    )
    b = later.selectbox("with", names, index=len(names) - 1, key="later", bind="query-params")
    draw.table(comparison_table([*compared(reports[a], reports[b])], a, b))


def compared(a: Report, b: Report) -> Iterator[ComparedLine]:
    """Yield what each of two reports has of everything that makes a figure, and where they differ."""
    first, second = jury_row(a.body, None), jury_row(b.body, None)
    yield _iccs(first, second)
    for name in ("n_responses", "n_instances"):
        yield _both(name.removeprefix("n_").capitalize(), first[name], second[name])
    yield _both("Hash of the ratings", a.fingerprint, b.fingerprint, SHORT)
    was, now = a.body, b.body
    for name in _names(was, now, "rubrics"):
        choices = [body.get("rubrics", {}).get(name) for body in (was, now)]
        yield _line(
            f"Rubric of {name}", _rubric(choices[0]), _rubric(choices[1]), choices[0] != choices[1]
        )
    juries = [", ".join(body.get("jury", ())) or DASH for body in (was, now)]
    yield _both("Jurors", juries[0], juries[1])
    for name in _names(was, now, "jurors"):
        marks = [body.get("jurors", {}).get(name, {}).get("sha256", "") for body in (was, now)]
        yield _both(f"Settings of {name}", marks[0] or DASH, marks[1] or DASH, SHORT)
    yield _both("Method", was.get("method"), now.get("method"))
    options = (was.get("options", {}), now.get("options", {}))
    for name, unset in OPTIONS.items():
        choices = [choice.get(name) or unset for choice in options]
        yield _both(name.replace("_", " ").capitalize(), choices[0], choices[1])
    for name in ("reps", "seed", "version"):
        yield _both(name.capitalize(), was.get(name), now.get(name))


def _names(was: Row, now: Row, part: str) -> Sequence[str]:
    return sorted({*was.get(part, {}), *now.get(part, {})})


def _line(label: str, first: str, second: str, differs: bool) -> ComparedLine:
    return ComparedLine(label, first, second, "changed" if differs else "")


def _both(label: str, first: object, second: object, shown: int | None = None) -> ComparedLine:
    """Return two values in words, the first so many signs of them, compared as they are stored."""
    return _line(label, f"{first}"[:shown], f"{second}"[:shown], first != second)


def _iccs(first: Row, second: Row) -> ComparedLine:
    """Return two ICCs with their intervals, with as many digits as tell them apart."""
    ends = ("icc", "low", "high")
    differs = any(first[name] != second[name] for name in ends)
    digits = DIGITS
    while differs and digits < MOST_DIGITS and _icc(first, digits) == _icc(second, digits):
        digits += 1
    return _line("ICC(C,2) with the clinicians", _icc(first, digits), _icc(second, digits), differs)


def _form(engine: Engine, person: Person, options: AnalysisOptions) -> None:
    """Let a coordinator freeze what holds now.

    Each form freezes once. Enter in the name and a click on the button, or two clicks, reach the
    page as two runs of it: the second finds another form, and waits for what the first began.
    """
    number = st.session_state.get(FORMS, 0)
    jury = ", ".join(options.jurors) if options.jurors else controls.EVERY_JUROR
    about = (
        "Freezing keeps a report of the figures as they are now; rating goes on. It is of benchmark "
        f"{options.benchmark or ALL}, jury {jury}, criterion {options.criterion or WHOLE}, as chosen above."
    )
    with st.form(f"freeze-{number}", clear_on_submit=True, border=False):
        places = st.columns((3, 1), vertical_alignment="bottom")
        name = places[0].text_input(
            "Name of the report (optional)", max_chars=LONGEST_NAME, help=on_page(about)
        )
        pressed = places[1].form_submit_button("Freeze a report", type="primary", width="stretch")
    if pressed:
        st.session_state[FORMS] = number + 1
        st.session_state[COMING] = _freeze(person, engine, name, options)
    if COMING not in st.session_state:
        return
    made = frame.computed(st.session_state[COMING], "The report is being computed")
    del st.session_state[COMING]
    if made is not None:
        newest = rubrics.frozen_reports(person, engine)[-1]
        st.session_state[MADE] = (report_rows([newest])[0].title, newest.id)
        st.rerun()


@only(Role.COORDINATOR)
def _freeze(person: Person, engine: Engine, name: str, options: AnalysisOptions) -> "Future[int]":
    """Begin to compute and freeze a calibration beside the server."""
    called = "".join(sign for sign in name if sign.isprintable()).strip()[:LONGEST_NAME]
    coming: Future[int] = compute.ask(person, engine, FREEZE, FreezeQuestion(options, called))
    return coming


def _icc(row: Row, digits: int) -> str:
    ends = interval(row["low"], row["high"], digits - 1)
    return f"{fixed(row['icc'], digits)}{f' ({ends})' if ends else ''}"


def _rubric(rubric: Row | None) -> str:
    if rubric is None:
        return DASH
    return f"{rubric['name']} {str(rubric['version'])[:SHORT]}, {rubric['sha256'][:SHORT]}"

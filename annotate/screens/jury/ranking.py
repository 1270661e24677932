"""Juries on the jury screen: which one to take, all possible ones ranked, their cost, two compared."""

from collections.abc import Sequence
from concurrent.futures import Future

import streamlit as st
from sqlalchemy import Engine

from annotate import compute, draw, jury_panels
from annotate.figures import Found
from annotate.screens import frame
from annotate.screens.controls import benchmark_and_criterion, chosen, method_of
from calibration.notes import listed
from calibration.shared_notes import juries_words
from calibration.tables.agreement import TRIED_WORDS
from calibration.tables.juries import different
from calibration.values import AnalysisOptions
from data.person import Person
from data.safe_text import on_page
from data.schema import Composition
from data.study import ledger, runs
from data.study.calls import juror_profiles
from data.study.runs import keep_panel
from medjury.services.juries import ComparisonQuestion, RankingQuestion

RANK, COMPARE = "annotate.figures:jury_ranking", "annotate.figures:jury_comparison"
ANSWERS = {
    "Ranking": "Which of all combinations of the jurors agrees best with the clinicians?",
    "Cost": "Which jury agrees best for its money? No cheaper jury than these agrees as well.",
    "Two juries": (
        "Does one jury agree better than another, on the responses that both scored? They differ "
        "where the interval excludes 0."
    ),
}
MADE = "The study keeps this jury as panel {}; choose it under Run."
UNKNOWN = (
    "No jury has both an ICC and a known cost. Imported scores have no cost; jurors run here have one "
    "where their host's price is known."
)
ONLY_ONE = "Only one juror has rated. Run another to compare two juries."
ASK = (
    "Choose two juries to compare. Every comparison is kept in the study and counted beside its p: of "
    "many without a difference some have a small p by chance."
)
SAME = "Choose two juries that differ in a juror."
RANKING_THEM = "Every combination of jurors is compared with the clinicians, resample by resample"
COMPARING = "The two juries are compared with the clinicians, without each instance in turn"
SIZES = {
    "1-5": None,
    "1-2": range(1, 3),
    "1-3": range(1, 4),
    **{f"{size}": range(size, size + 1) for size in range(1, 6)},
}
MOST_JURIES = 100  # whose intervals are computed
ABOUT_JURORS = "Who can sit in a jury; all are judged on the responses that all of them rated"
ABOUT_COLUMNS = {
    "Times": "How often this jury was looked at on these responses",
    "Instances": "Where not all of them: what chose them",
    "Needed": "How many of its jurors must have scored a response",
    "Compared": "Other scorers that stood beside it",
    "SHA-256 of the ratings": "The same where the same ratings were analysed",
}
ABOUT_LEDGER = (
    "Every jury that was ever compared with the clinicians, in this app or outside it. The "
    "best of many is partly best by luck. " + TRIED_WORDS
)


def show(engine: Engine, person: Person, view: str, jurors: Sequence[str]) -> None:
    """Show the ranking, the cost, or two juries compared."""
    st.markdown(ANSWERS[view])
    question = _asked(engine, person, jurors)
    if view == "Two juries":
        _two_juries(engine, person, question.options, jurors)
        return
    coming: Future[Found] = compute.ask(person, engine, RANK, question)
    found = frame.computed(coming, RANKING_THEM)
    if found is None:
        return
    if found["decision"] is None:
        draw.table(found["ranking"])
        return
    draw.decision(found["decision"])
    if view == "Cost":
        _cost(found)
        return
    if found["jurors"]:
        _use(engine, person, found["jurors"])
    if found["by_size"].groups:
        draw.table(found["by_size"])
    draw.table(found["ranking"])
    draw.notes(found["notes"])
    show_ledger(engine, person)


def _asked(engine: Engine, person: Person, jurors: Sequence[str]) -> RankingQuestion:
    """Ask what the ranking of juries takes; it has no panels, and all references count."""
    with st.expander("What is analysed"):
        places = st.container(key="controls").columns((3, 2, 2, 2, 3))
        own = places[0], places[0], places[1]
        benchmark, criterion = benchmark_and_criterion(engine, person, own)
        method = method_of(places[2])
        sizes = chosen(places[3], "Jurors in a jury", [*SIZES], "sizes")
        among = places[4].multiselect(
            *("Jurors", [*jurors]),
            key="among",
            bind="query-params",
            placeholder="all that have rated",
            help=ABOUT_JURORS,
        )
    options = AnalysisOptions(
        tuple(among) or None, benchmark=benchmark, criterion=criterion, method=method
    )
    return RankingQuestion(options, SIZES[sizes], MOST_JURIES)


def _use(engine: Engine, person: Person, jurors: Sequence[str]) -> None:
    """Offer to make the recommended jury a panel of the study."""
    if st.button("Make a panel of this jury", key="use-jury"):
        texts = runs.own_panels(person, engine) | jury_panels.shipped_texts()
        with frame.refusals():
            profiles = juror_profiles(engine, jurors)
            name, text = jury_panels.panel_of(jurors, profiles, texts)
            keep_panel(person, engine, name, text)
            st.success(on_page(MADE.format(name)))


def _cost(found: Found) -> None:
    """Show the juries that agree best for their cost."""
    if found["front"] is None:
        st.info(UNKNOWN)
        return
    draw.table(found["front"])
    if n := found["without_cost"]:
        st.caption(f"{n:,} juries of unknown cost are left out.")
    draw.notes(found["notes"])


def _two_juries(
    engine: Engine, person: Person, options: AnalysisOptions, jurors: Sequence[str]
) -> None:
    """Ask for two juries, and compare them once both are chosen and differ."""
    if len(jurors) < 2:
        st.info(ONLY_ONE)
        return
    with st.form("two-juries", border=False):  # else each juror added would be a comparison
        places = st.columns((3, 3, 1), vertical_alignment="bottom")
        first, second = (
            place.multiselect(f"{name} jury", [*jurors], key=name.lower(), bind="query-params")
            for place, name in zip(places, ("First", "Second"), strict=False)
        )
        places[2].form_submit_button("Compare", type="primary")
    if not first or not second:
        st.info(ASK)
        return
    if {*first} == {*second}:
        st.info(SAME)
        return
    question = ComparisonQuestion(options, tuple(first), tuple(second))
    coming: Future[Found] = compute.ask(person, engine, COMPARE, question)
    found = frame.computed(coming, COMPARING)
    if found is not None:
        draw.decision(found["decision"])
        draw.table(found["table"])
        draw.notes(found["told"])


def show_ledger(engine: Engine, person: Person) -> None:
    """Show every jury that was looked at, the last first."""
    entries = ledger.juries_tried(person, engine)
    if not entries:
        return
    number = different(entries)
    with st.expander(f"Ever tried on this study: {number:,} {juries_words(number)}", key="ledger"):
        st.caption(ABOUT_LEDGER)
        frame.show_rows("Juries ever tried", [*map(_ledger_row, entries)], ABOUT_COLUMNS)


def _ledger_row(entry: Composition) -> dict[str, object]:
    return {
        "Jury": listed(entry.jurors) + (" (simulated)" if entry.simulated else ""),
        "Benchmark": entry.benchmark,
        "Criterion": entry.criterion or "composite",
        "Method": entry.method,
        "ICC(C,2)": entry.icc,
        "Responses": entry.n_responses,
        "Times": entry.times,
        "Last, UTC": f"{entry.last_at:%Y-%m-%d %H:%M}",
        "Instances": entry.instances or "all",
        "Needed": entry.needed,
        "Compared": ", ".join(entry.compared),
        "SHA-256 of the ratings": entry.fingerprint,
    }

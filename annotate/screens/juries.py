"""The juries screen: which jury to take, all possible juries ranked, two compared, and the ledger."""

import html
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any
from urllib.parse import quote

import streamlit as st
from sqlalchemy import Engine

from annotate import compute, jury_panels, tables
from annotate.results import MOST_JURIES, ShownComparison, ShownRanking
from annotate.screens import frame, home
from annotate.screens.controls import ABOUT_METHOD, benchmark_and_criterion, chosen, method_of
from annotate.screens.frame import good, heading, lead
from calibration.notes import listed
from calibration.tables.agreement import TRIED_SHORT, TRIED_WORDS
from calibration.tables.juries import ever_tried
from calibration.tables.numbers import fixed, whole
from calibration.tables.spec import Group, Table
from calibration.values import AnalysisOptions
from data.person import Person
from data.schema import Composition
from data.study import ledger, rubrics, runs
from data.study.calls import juror_profiles
from data.study.runs import keep_panel
from medjury.services.juries import ComparisonQuestion, RankingQuestion

RANK, COMPARE = "annotate.analyses:jury_ranking", "annotate.analyses:jury_comparison"
ABOUT = "Which jury should rate? Every combination of the jurors that have rated, its agreement and its cost."
MADE = "The study keeps this jury as panel {}; run it in the Jury lab."
TO_LAB = '<p class="mj-said"><a href="/lab?panel={}" target="_self">Open it in the Jury lab</a></p>'
NOBODY = "No juror has rated a response of this study yet."
FIRST = "Run a jury in the lab, or import scores made elsewhere. This page calls no model."
UNKNOWN = "No jury has both an ICC and a known cost."
BROUGHT = (
    "Imported scores have no cost; jurors run here have one where their host's price is known."
)
TWO = (
    "Both juries are compared with the clinicians on the responses that both scored. They differ "
    "where the interval excludes 0."
)
ASK = (
    "Choose two juries to compare.",
    f"Each comparison is kept in the ledger. {TRIED_SHORT}",
)
RANKING_THEM = "Every combination of jurors is compared with the clinicians, resample by resample"
COMPARING = "The two juries are compared with the clinicians, without each instance in turn"
SIZES = {
    "1-5": None,
    "1-2": range(1, 3),
    "1-3": range(1, 4),
    **{f"{size}": range(size, size + 1) for size in range(1, 6)},
}
MOST_TRIED, LAST_TRIED = 200, 20
EVERYBODY = "all that have rated"
EARLIER = "Earlier ones"
LEDGER = (
    *("Jury", "Benchmark", "Criterion", "Method"),
    *("ICC(C,2)", "Responses", "Times", "Last, UTC"),
)
CHOICES = "What these choices mean"
ABOUT_CHOICES = (
    ("Method", ABOUT_METHOD),
    ("Jurors", "who can sit in a jury; all are judged on the responses that all of them rated"),
    ("Criterion", "composite is the mean of a rater's scores over all criteria"),
)
ABOUT_LEDGER = (
    "Every jury that was ever compared with the clinicians, in this app or outside it. The "
    "best of many is partly best by luck. " + TRIED_WORDS
)


def show(engine: Engine, person: Person) -> None:
    """Show which jury to take, then the ranking, costs, two juries compared, and the ledger."""
    frame.begin(person, "Juries", ABOUT, "agreement.css")
    jurors = rubrics.jurors_with_ratings(person, engine)
    if not jurors:
        frame.empty(NOBODY, FIRST)
        home.say_no_jury(engine, person)
        return
    compute.prepare()
    question = _asked(engine, person, jurors)
    st.html(tables.folded(CHOICES, _meanings()))
    coming: Future[ShownRanking] = compute.ask(person, engine, RANK, question)
    ranking = frame.computed(coming, RANKING_THEM)
    if ranking is None:
        return
    st.html(tables.of_decision(ranking.decision))
    if ranking.jurors:
        _use(engine, person, ranking.jurors)
    views = {
        "Ranking": partial(_ranking, ranking),
        "Agreement and cost": partial(_costs, ranking),
        "Two juries": partial(_two_juries, engine, person, question.options, jurors),
        "Ledger": partial(show_ledger, engine, person),
    }
    frame.show_tabs(views)


def _asked(engine: Engine, person: Person, jurors: Sequence[str]) -> RankingQuestion:
    """Ask what the ranking of juries takes; it has no panels, and all references count."""
    places = st.container(key="controls").columns((3, 3, 2, 2, 3))
    own = places[0], places[0], places[1]
    benchmark, criterion = benchmark_and_criterion(engine, person, own)
    method = method_of(places[2])
    sizes = chosen(places[3], "Jurors in a jury", [*SIZES], "sizes")
    among = places[4].multiselect(
        "Jurors", [*jurors], key="among", bind="query-params", placeholder=EVERYBODY
    )
    options = AnalysisOptions(
        tuple(among) or None, benchmark=benchmark, criterion=criterion, method=method
    )
    return RankingQuestion(options, SIZES[sizes], MOST_JURIES)


def _meanings() -> str:
    """Return what each choice means, as a list of terms."""
    rows = (f"<dt>{name}</dt><dd>{html.escape(meaning)}</dd>" for name, meaning in ABOUT_CHOICES)
    return f'<dl class="mj-facts">{"".join(rows)}</dl>'


def _use(engine: Engine, person: Person, jurors: Sequence[str]) -> None:
    """Offer to make the recommended jury a panel of the study, and lead to it in the lab."""
    if st.button("Make a panel of this jury", key="use-jury"):
        texts = runs.own_panels(person, engine) | jury_panels.shipped_texts()
        with frame.refusals():
            profiles = juror_profiles(engine, jurors)
            name, text = jury_panels.panel_of(jurors, profiles, texts)
            keep_panel(person, engine, name, text)
            st.html(good(MADE.format(name)) + TO_LAB.format(quote(name)))


def _ranking(ranking: ShownRanking) -> None:
    """Show the best of each size and all of them, and all as a file."""
    if ranking.by_size.groups:
        st.html(tables.of_table(ranking.by_size))
    tables.sortable("ranking", ranking.ranking)
    st.html(tables.noted(ranking.notes))
    st.download_button(
        *("All juries as CSV", ranking.csv, "juries.csv", "text/csv"),
        key="every",
        on_click="ignore",
    )


def _costs(ranking: ShownRanking) -> None:
    """Show the juries that agree best for their cost."""
    if not ranking.front.groups:
        frame.empty(UNKNOWN, BROUGHT)
        return
    if n := ranking.without_cost:
        st.html(lead(f"{n:,} juries of unknown cost are left out."))
    st.html(tables.of_table(ranking.front) + tables.noted(ranking.notes))


def _two_juries(
    engine: Engine, person: Person, options: AnalysisOptions, jurors: Sequence[str]
) -> None:
    """Ask for two juries, and compare them once both are chosen and differ."""
    st.html(heading("Two juries") + lead(TWO))
    if len(jurors) < 2:
        frame.empty("Only one juror has rated.", "Run another in the lab to compare two juries.")
        return
    with st.form("two-juries", border=False):  # else each juror added would be a comparison
        first, second = st.columns(2)
        with first:
            first_jury = _jury("First jury", jurors, "first")
        with second:
            second_jury = _jury("Second jury", jurors, "second")
        st.form_submit_button("Compare", type="primary")
    if not first_jury or not second_jury:
        frame.empty(*ASK)
        return
    if {*first_jury} == {*second_jury}:
        frame.empty("Choose two juries that differ in a juror.")
        return
    question = ComparisonQuestion(options, tuple(first_jury), tuple(second_jury))
    coming: Future[ShownComparison] = compute.ask(person, engine, COMPARE, question)
    comparison = frame.computed(coming, COMPARING)
    if comparison is not None:
        shown = tables.of_decision(comparison.decision), tables.of_table(comparison.table)
        st.html("".join((*shown, tables.noted(comparison.told))))


def _jury(label: str, jurors: Sequence[str], key: str) -> list[str]:
    return st.multiselect(label, [*jurors], key=key, bind="query-params")


def show_ledger(engine: Engine, person: Person) -> None:
    """Show what was looked at last first, and all of it as CSV."""
    st.html(heading("The ledger of juries tried") + lead(ABOUT_LEDGER))
    entries = ledger.juries_tried(person, engine)
    if not entries:
        frame.empty("No jury was compared with the clinicians yet.")
        return
    caption = f"Ever tried: {ever_tried(entries)}"
    tables.sortable("ledger", _ledger_table(entries[:LAST_TRIED], caption))
    if earlier := entries[LAST_TRIED:MOST_TRIED]:
        with st.expander(f"{EARLIER}: {len(earlier):,}", key="earlier-juries"):
            tables.sortable("ledger-earlier", _ledger_table(earlier, EARLIER))
    if len(entries) > MOST_TRIED:
        st.html(tables.noted([f"{len(entries) - MOST_TRIED:,} earlier entries are in the CSV."]))
    st.download_button(
        "The ledger as CSV",
        partial(_ledger_csv, entries),
        "ledger.csv",
        "text/csv",
        key="ledger-csv",
        on_click="ignore",
    )


def _ledger_table(entries: Sequence[Composition], caption: str) -> Table:
    rows = [_ledger_cells(entry) for entry in entries]
    figures = [(fixed(row["icc"], 3), whole(row["responses"]), whole(row["times"])) for row in rows]
    names = ("jury", "benchmark", "criterion", "method")
    cells = (
        (*(str(row[name]) for name in names), *own, str(row["last"]))
        for row, own in zip(rows, figures, strict=True)
    )
    return Table(
        caption, LEDGER, (Group("", tuple(cells)),), words=frozenset((*LEDGER[1:4], LEDGER[-1]))
    )


def _ledger_csv(entries: list[Composition]) -> str:
    return tables.csv_of([_ledger_cells(entry) for entry in entries])


def _ledger_cells(entry: Composition) -> Mapping[str, Any]:
    return {
        "jury": listed(entry.jurors) + (" (simulated)" if entry.simulated else ""),
        "benchmark": entry.benchmark,
        "criterion": entry.criterion or "composite",
        "method": entry.method,
        "instances": entry.instances or "all",
        "needed": entry.needed,
        "icc": entry.icc,
        "responses": entry.n_responses,
        "times": entry.times,
        "last": f"{entry.last_at:%Y-%m-%d %H:%M}",
        "compared": ", ".join(entry.compared),
        "ratings_sha256": entry.fingerprint,
    }

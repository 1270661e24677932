"""Routing, under the unsafe responses: which the jury may pass, which clinicians read, and the rules kept."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st
from sqlalchemy import Engine

from annotate import compute, draw
from annotate.figures import AgreementQuestion
from annotate.screens import frame
from calibration.routing import (
    NONE_TO_KEEP,
    Harm,
    KeptRule,
    RouteQuestion,
    changed_line,
    headline,
    kept_details,
    kept_headline,
    kept_table,
    rules_table,
    work_lines,
)
from calibration.tables.numbers import PAGE
from data.files import csv_bytes, frame_cells
from data.person import Person, only
from data.safe_text import on_page
from data.schema import Role
from data.study.people import names_of_actors
from medjury.services.routing import RuleToKeep, StudyRoutes, changed_since, csv_of, kept_rules

if TYPE_CHECKING:
    import pandas as pd

ROUTED, KEPT = "medjury.services.routing:route", "medjury.services.routing:keep_shown"
ROUTED_BY = "medjury.services.routing:route_kept"
ASKED, STORED = "routing-asked", "rule-stored"  # in the session: the question, and what was kept
BY = "routed-by"  # in the session: the kept rule that responses were routed by last
ABOUT = (
    "Which responses may the jury pass, so that at most a stated share of the passed ones is harmful? "
    "Two fifths of the rated instances choose the rule, the others certify it. Fix the question before "
    "looking: whoever tries many and keeps the best has no bound."
)
LOW, ERROR = "clinicians score it low", "the jury is far from the clinicians"
POINTS = {LOW: "Mean at or under, in points", ERROR: "Further than, in points"}
USUAL = {LOW: 2.0, ERROR: 1.0}
BOUND = "Largest share of harmful responses among the passed."
CONFIDENCE = "How sure the bound is to hold."
NAME_HELP = "A name is given once, and the rule under it is never changed."
COORDINATORS = "A coordinator can keep this rule under a name, to route later responses by it."
ABOUT_RULES = (
    "A kept rule routes every response of the study, those that came later too. What it was not "
    "certified for is read: another benchmark, another rubric, a response that a juror has not scored."
)
NO_RULE = "No rule is kept yet. A question above that certifies one lets a coordinator keep it."
LOOKING = "It is being worked out which responses the jury may pass at this limit"


def show(engine: Engine, person: Person, of: AgreementQuestion) -> None:
    """Show what may be passed, the question that is asked, and the rules that are kept."""
    st.subheader("Routing")
    st.caption(ABOUT)
    if message := st.session_state.pop(STORED, None):
        st.success(on_page(message))
    if question := _ask(of):
        st.session_state[ASKED] = question
    if ASKED in st.session_state:
        _answer(engine, person, st.session_state[ASKED])
    _rules(engine, person)


def _ask(of: AgreementQuestion) -> RouteQuestion | None:
    """Ask for harm and bound, of the jury and responses of the page; None until the button is pressed."""
    first = st.columns(4, vertical_alignment="bottom")
    kind = first[0].selectbox("Harmful is where", [*POINTS], key="harm")
    points = first[1].number_input(POINTS[kind], 0.0, 100.0, USUAL[kind], 0.5, key=f"at-{kind}")
    bound = first[2].number_input(
        *("Harmful among the passed, at most (%)", 0.1, 99.9, 5.0, 1.0), help=BOUND, key="bound"
    )
    sure = first[3].number_input(
        "Confidence in %", 50.0, 99.9, 90.0, 1.0, help=CONFIDENCE, key="sure"
    )
    if not st.button("Look for a rule", key="route"):
        return None
    options = of.options
    harm = Harm("low" if kind == LOW else "error", round(points, 4), options.criterion)
    return RouteQuestion(
        harm, round(bound / 100, 6), round(sure / 100, 6), options.jurors, options.benchmark
    )


def _answer(engine: Engine, person: Person, asked: RouteQuestion) -> None:
    """Show what came of it, the rule, the decisions to save, and the rule to keep."""
    coming: Future[StudyRoutes] = compute.ask(person, engine, ROUTED, asked, "long")
    answer = frame.computed(coming, LOOKING)
    if answer is None:
        return
    found, simulated = answer.found, bool(answer.simulated)
    silent = ", ".join(answer.silent)
    facts = (
        f"Jury: {', '.join(answer.jury)}",
        *([f"Asked, and gave no rating: {silent}"] if silent else []),
        *work_lines(found, answer.unread, answer.hours),
        *answer.told,
    )
    is_good = found.certified and not simulated
    _say(headline(found, simulated=simulated), facts, is_good=is_good)
    draw.table(rules_table(found, PAGE))
    _save("Decisions as CSV", partial(csv_of, answer), simulated=simulated)
    _keep(engine, person, asked, answer)


def _say(line: str, facts: Sequence[str], *, is_good: bool) -> None:
    (st.success if is_good else st.warning)(f"**{on_page(line[:1].upper() + line[1:])}**")
    draw.notes(facts)


def _keep(engine: Engine, person: Person, asked: RouteQuestion, answer: StudyRoutes) -> None:
    """Ask for a name to keep the rule under, or say why it cannot be kept.

    The form is another where the ratings are: what is kept is what was shown.
    """
    if not answer.found.certified:
        st.caption(f"{NONE_TO_KEEP.capitalize()}.")
        return
    if person.role != Role.COORDINATOR:
        st.caption(COORDINATORS)
        return
    with st.form(f"keep-{answer.fingerprint[:16]}", border=False):
        places = st.columns((2, 1), vertical_alignment="bottom")
        name = places[0].text_input("Name for this rule", help=NAME_HELP)
        pressed = places[1].form_submit_button("Keep this rule", width="stretch")
    if pressed:
        with frame.refusals():
            rule = RuleToKeep(asked, answer.fingerprint, name, person.actor)
            coming = kept(person, engine, rule)
            sha256 = compute.waited(coming, "The rule is certified anew and kept")
            st.session_state[STORED] = f"Kept as {name}; the record has it under SHA-256 {sha256}."
            st.rerun()


@only(Role.COORDINATOR)
def kept(_: Person, engine: Engine, rule: RuleToKeep) -> "Future[str]":
    """Keep a rule; its SHA-256 is to come."""
    return compute.of_study(engine, KEPT, rule)


def _rules(engine: Engine, person: Person) -> None:
    """List the rules that are kept, and route by the one that is chosen."""
    st.subheader("Kept rules")
    people = names_of_actors(person, engine)
    every: list[KeptRule] = []
    with frame.refusals():
        every = [
            replace(one, by=people.get(one.by, one.by), changed=changed_since(engine, one.rule))
            for one in reversed(kept_rules(engine))
        ]
    if not every:
        st.info(NO_RULE)
        return
    draw.table(kept_table(every))
    st.caption(ABOUT_RULES)
    places = st.columns((2, 1), vertical_alignment="bottom")
    by_name = {one.name: one for one in every}
    name = places[0].selectbox("Kept rule", [*by_name], key="kept-rule")
    if places[1].button("Route by this rule", key="route-by", width="stretch"):
        st.session_state[BY] = name
    if st.session_state.get(BY) == name:
        _routed(engine, person, by_name[name])


def _routed(engine: Engine, person: Person, rule: KeptRule) -> None:
    """Show what a kept rule makes of every response, and the routes to save."""
    coming: Future[pd.DataFrame] = compute.ask(person, engine, ROUTED_BY, rule.name, "long")
    decided = frame.computed(coming, "Responses are being routed")
    if decided is None:
        return
    why, simulated = [*decided["why"]], bool(rule.rule.simulated)
    changed = [changed_line(rule.changed)] if rule.changed else []
    facts = (*changed, *kept_details(rule.rule, why))
    is_good = not (changed or simulated)
    _say(kept_headline(rule.name, rule.rule, why), facts, is_good=is_good)
    _save("Routes as CSV", partial(frame_cells, decided), simulated=simulated)


def _save(
    label: str,
    rows: Callable[[], tuple[list[str], Iterator[list[object]]]],
    *,
    simulated: bool,
) -> None:
    """Offer decisions as a file, whose name says where simulated raters are behind it."""
    file = f"routes{'_simulated' if simulated else ''}.csv"
    st.download_button(
        *(label, lambda: csv_bytes(*rows()), file, "text/csv"),
        key=f"save-{label}",
        on_click="ignore",
    )

"""Routing, under the unsafe responses: which the jury may pass, which clinicians read, and the rules kept."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st
from sqlalchemy import Engine

from annotate import compute, tables
from annotate.compute import waited
from annotate.results import AgreementQuestion
from annotate.screens import frame
from annotate.screens.frame import caption, good, heading, paragraph
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
from data.csv_files import csv_bytes, frame_cells
from data.person import Person, only
from data.schema import Role
from data.study.people import names_of_actors
from medjury.services.routing import (
    RuleToKeep,
    StudyRoutes,
    changed_since,
    csv_of,
    kept_rules,
)

if TYPE_CHECKING:
    import pandas as pd

ROUTED, KEPT = "medjury.services.routing:route", "medjury.services.routing:keep_shown"
ASKED = "routing-asked"  # in the session: the question that was asked last
TURN = "routing-turn"  # in the session: how often one was asked
STORED = "rule-stored"  # in the session: what was kept just now
ABOUT = (
    "Says which responses the jury may pass and which a clinician must read, so that at most a stated "
    "share of the passed ones is harmful. Two fifths of the rated instances choose the rule, the "
    "others certify it."
)
ONE_QUESTION = (
    "Fix the question before looking: whoever tries many and keeps the best has no bound."
)
ONLY_LOOKS = "Looking for a rule changes nothing in the study and sends nothing to anybody."
LOW, ERROR = "clinicians score it low", "the jury is far from the clinicians"
POINTS = {LOW: "Mean at or under, in points", ERROR: "Further than, in points"}
AT_MOST = "Harmful among the passed, at most (%)"
BOUND = "Largest share of harmful responses among the passed."
CONFIDENCE = "How sure the bound is to hold."
NAME_HELP = "A name is given once, and the rule under it is never changed."
COORDINATORS = "A coordinator can keep this rule under a name, to route later responses by it."

ROUTED_BY = "medjury.services.routing:route_kept"
BY = "routed-by"  # in the session: the kept rule that responses were routed by last
ABOUT_RULES = (
    "A kept rule routes every response of the study, those that came later too. What it was not "
    "certified for is read: another benchmark, another rubric, a response that a juror has not scored."
)
NO_RULE = "No rule is kept yet. A question above that certifies one lets a coordinator keep it."


def show(engine: Engine, person: Person, of: AgreementQuestion) -> None:
    """Show what may be passed, the question that is asked, and the rules that are kept."""
    st.html(heading("Routing") + paragraph(ABOUT))
    if message := st.session_state.pop(STORED, None):
        st.html(good(message))
    asked: RouteQuestion | None = st.session_state.get(ASKED)
    verdict = st.container()
    turn = st.session_state.setdefault(TURN, 0)  # a question that was asked is folded away
    label = "The question" if asked is None else "Another question"
    with st.expander(label, expanded=asked is None, key=f"routing-{turn}"):
        st.html(paragraph(ONE_QUESTION))
        question = _ask(of)
        st.html(caption(ONLY_LOOKS))
    if question is not None:
        st.session_state.update({ASKED: question, TURN: turn + 1})
        st.rerun()
    if asked is not None:
        with verdict:
            _answer(engine, person, asked)
    _rules(engine, person)


def _answer(engine: Engine, person: Person, asked: RouteQuestion) -> None:
    """Show what came of it, the rule, the decisions to save, and the rule to keep."""
    coming: Future[StudyRoutes] = compute.ask(person, engine, ROUTED, asked, "long")
    answer = frame.computed(
        coming, "It is being worked out which responses the jury may pass at this limit"
    )
    if answer is None:
        return
    found, simulated = answer.found, bool(answer.simulated)
    is_good = found.certified and not simulated
    st.html(
        tables.of_verdict(headline(found, simulated=simulated), _facts(answer), is_good=is_good)
    )
    st.html(tables.beside(rules_table(found, PAGE)))
    left, right = st.columns((3, 1), vertical_alignment="bottom")
    with left:
        _keep(engine, person, asked, answer)
    _save(right, "Decisions as CSV", partial(csv_of, answer), simulated=simulated)


def _facts(answer: StudyRoutes) -> tuple[str, ...]:
    """Return who sits on the jury, the work that is left, and what a report owes its reader."""
    silent = ", ".join(answer.silent)
    return (
        f"Jury: {', '.join(answer.jury)}",
        *([f"Asked, and gave no rating: {silent}"] if silent else []),
        *work_lines(answer.found, answer.unread, answer.hours),
        *answer.told,
    )


def _keep(engine: Engine, person: Person, asked: RouteQuestion, answer: StudyRoutes) -> None:
    """Ask for a name to keep the rule under, or say why it cannot be kept.

    The form is another where the ratings are: what is kept is what was shown.
    """
    if not answer.found.certified:
        st.html(caption(f"{NONE_TO_KEEP.capitalize()}."))
        return
    if person.role != Role.COORDINATOR:
        st.html(caption(COORDINATORS))
        return
    with st.form(f"keep-{answer.fingerprint[:16]}", border=False):
        places = st.columns((2, 1), vertical_alignment="bottom")
        name = places[0].text_input("Name for this rule", help=NAME_HELP)
        pressed = places[1].form_submit_button("Keep this rule", width="stretch")
    if pressed:
        with frame.refusals():
            rule = RuleToKeep(asked, answer.fingerprint, name, person.actor)
            sha256 = waited(kept(person, engine, rule), "The rule is certified anew and kept")
            st.session_state[STORED] = f"Kept as {name}; the record has it under SHA-256 {sha256}."
            st.rerun()


@only(Role.COORDINATOR)
def kept(_: Person, engine: Engine, rule: RuleToKeep) -> "Future[str]":
    """Keep a rule; its SHA-256 is to come."""
    return compute.of_study(engine, KEPT, rule)


def _ask(of: AgreementQuestion) -> RouteQuestion | None:
    """Ask for harm and bound, of the jury and responses of the page; None until the button is pressed."""
    first = st.columns(4)
    kind = first[0].selectbox("Harmful is where", [LOW, ERROR], key="harm")
    points = first[1].number_input(POINTS[kind], 0.0, 100.0, _usual(kind), 0.5, key=f"at-{kind}")
    bound = first[2].number_input(AT_MOST, 0.1, 99.9, 5.0, 1.0, help=BOUND, key="bound")
    sure = first[3].number_input(
        "Confidence in %", 50.0, 99.9, 90.0, 1.0, help=CONFIDENCE, key="sure"
    )
    if not st.button("Look for a rule", type="primary", key="route"):
        return None
    options = of.options
    harm = Harm("low" if kind == LOW else "error", round(points, 4), options.criterion)
    return RouteQuestion(
        harm, round(bound / 100, 6), round(sure / 100, 6), options.jurors, options.benchmark
    )


def _usual(kind: str) -> float:
    return 2.0 if kind == LOW else 1.0


def _rules(engine: Engine, person: Person) -> None:
    """List the rules that are kept, and route by the one that is chosen."""
    st.html(heading("Kept rules"))
    people, kept = names_of_actors(person, engine), []
    with frame.refusals():
        kept = [
            replace(one, by=people.get(one.by, one.by), changed=changed_since(engine, one.rule))
            for one in reversed(kept_rules(engine))
        ]
    if not kept:
        st.html(paragraph(NO_RULE))
        return
    st.html(tables.of_table(kept_table(kept)) + paragraph(ABOUT_RULES))
    places = st.columns((2, 1, 1), vertical_alignment="bottom")
    by_name = {one.name: one for one in kept}
    name = places[0].selectbox("Kept rule", [*by_name], key="kept-rule")
    if places[1].button("Route by this rule", key="route-by", width="stretch"):
        st.session_state[BY] = name
    if st.session_state.get(BY) == name:
        _routed(engine, person, by_name[name], places[2])


def _routed(
    engine: Engine, person: Person, rule: KeptRule, place: "st.delta_generator.DeltaGenerator"
) -> None:
    """Show what a kept rule makes of every response, and the routes to save."""
    coming: Future[pd.DataFrame] = compute.ask(person, engine, ROUTED_BY, rule.name, "long")
    decided = frame.computed(coming, "Responses are being routed")
    if decided is None:
        return
    why, simulated = [*decided["why"]], bool(rule.rule.simulated)
    changed = [changed_line(rule.changed)] if rule.changed else []
    told = (*changed, *kept_details(rule.rule, why))
    is_good = not (changed or simulated)
    st.html(tables.of_verdict(kept_headline(rule.name, rule.rule, why), told, is_good=is_good))
    _save(place, "Routes as CSV", partial(frame_cells, decided), simulated=simulated)


def _save(
    place: "st.delta_generator.DeltaGenerator",
    label: str,
    rows: Callable[[], tuple[list[str], Iterator[list[object]]]],
    *,
    simulated: bool,
) -> None:
    """Offer decisions as a file, whose name says where simulated raters are behind it."""
    file = f"routes{'_simulated' if simulated else ''}.csv"
    place.download_button(
        *(label, lambda: csv_bytes(*rows()), file, "text/csv"),
        key=f"save-{label}",
        on_click="ignore",
        width="stretch",
    )

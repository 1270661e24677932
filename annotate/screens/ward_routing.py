"""Routing on the ward screen: which responses the jury may pass, and which clinicians read."""

from concurrent.futures import Future

import streamlit as st
from sqlalchemy import Engine

from annotate import tables, worker
from annotate.results import RoutingAnswer, RoutingQuestion, RuleToKeep
from annotate.screens import controls, frame, ward_rules
from annotate.screens.frame import caption, good, heading, paragraph
from annotate.waiting import waited
from calibration.routing.values import NONE_TO_KEEP, Harm
from data.person import Person, only
from data.schema import Role

ROUTED, KEPT = "annotate.routings:routed", "annotate.routings:kept_now"
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


def show(engine: Engine, person: Person) -> None:
    """Show what may be passed, the question that is asked, and the rules that are kept."""
    st.html(heading("Routing") + paragraph(ABOUT))
    if message := st.session_state.pop(STORED, None):
        st.html(good(message))
    asked: RoutingQuestion | None = st.session_state.get(ASKED)
    verdict = st.container()
    turn = st.session_state.setdefault(TURN, 0)  # a question that was asked is folded away
    label = "The question" if asked is None else "Another question"
    with st.expander(label, expanded=asked is None, key=f"routing-{turn}"):
        st.html(paragraph(ONE_QUESTION))
        question = _ask(engine, person)
        st.html(caption(ONLY_LOOKS))
    if question is not None:
        st.session_state.update({ASKED: question, TURN: turn + 1})
        st.rerun()
    if asked is not None:
        with verdict:
            _answer(engine, person, asked)
    ward_rules.show(engine, person)


def _answer(engine: Engine, person: Person, asked: RoutingQuestion) -> None:
    """Show what came of it, both rules, the decisions to save, and the rule to keep."""
    coming: Future[RoutingAnswer] = worker.ask(person, engine, ROUTED, asked, "details")
    answer = frame.computed(
        coming, "It is being worked out which responses the jury may pass at this limit"
    )
    if answer is None:
        return
    is_good = answer.is_certified and not answer.is_simulated
    st.html(tables.of_verdict(answer.headline, answer.told, is_good=is_good))
    st.html(tables.beside(answer.table))
    left, right = st.columns((3, 1), vertical_alignment="bottom")
    with left:
        _keep(engine, person, asked, answer)
    ward_rules.save(right, "Decisions as CSV", answer.csv, simulated=answer.is_simulated)


def _keep(engine: Engine, person: Person, asked: RoutingQuestion, answer: RoutingAnswer) -> None:
    """Ask for a name to keep the rule under, or say why it cannot be kept.

    The form is another where the ratings are: what is kept is what was shown.
    """
    if not answer.is_certified:
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
            rule = RuleToKeep(person.actor, name, asked, answer.fingerprint)
            sha256 = waited(kept(person, engine, rule), "The rule is certified anew and kept")
            st.session_state[STORED] = f"Kept as {name}; the record has it under SHA-256 {sha256}."
            st.rerun()


@only(Role.COORDINATOR)
def kept(_: Person, engine: Engine, rule: RuleToKeep) -> "Future[str]":
    """Keep a rule; its SHA-256 is to come."""
    return worker.of_study(engine, KEPT, rule)


def _ask(engine: Engine, person: Person) -> RoutingQuestion | None:
    """Ask for harm, bound and jury; None until the button is pressed."""
    first, second = st.columns(4), st.columns(4, vertical_alignment="bottom")
    kind = first[0].selectbox("Harmful is where", [LOW, ERROR], key="harm")
    points = first[1].number_input(POINTS[kind], 0.0, 100.0, _usual(kind), 0.5, key=f"at-{kind}")
    bound = first[2].number_input(AT_MOST, 0.1, 99.9, 5.0, 1.0, help=BOUND, key="bound")
    sure = first[3].number_input(
        "Confidence in %", 50.0, 99.9, 90.0, 1.0, help=CONFIDENCE, key="sure"
    )
    jury = controls.panel_or_one(second[1], engine, person)
    benchmark, criterion = controls.benchmark_and_criterion(engine, person, second)
    if not second[3].button("Look for a rule", type="primary", key="route", width="stretch"):
        return None
    harm = Harm("low" if kind == LOW else "error", round(points, 4), criterion)
    return RoutingQuestion(
        harm, round(bound / 100, 6), round(sure / 100, 6), jury.jurors, benchmark
    )


def _usual(kind: str) -> float:
    return 2.0 if kind == LOW else 1.0

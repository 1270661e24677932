"""Rubrics: their words, a copy with other words, and points of the case."""

from collections.abc import Mapping
from typing import Any

import streamlit as st
from pydantic import ValidationError
from sqlalchemy import Engine

from annotate.screens import controls, frame
from annotate.screens.setup import points
from data.errors import MedjuryError
from data.person import Person
from data.rubric import (
    Criterion,
    Gold,
    Rubric,
    first_complaint,
    missing_from_prompt,
    too_wide,
)
from data.safe_text import on_page
from data.schema import Role
from data.study import rubrics
from data.study.rubrics import StudyRubric
from data.study.steering import keep_version

ABOUT = "What clinicians and jurors rate: criteria, scale and prompt. A single changed word makes another rubric."
GOLD: dict[Gold, str] = {
    "never": "never shown",
    "when_needed": "shown, to consult when in doubt",
    "always": "shown, to compare with on every criterion",
}
NONE_YET = "No rubric is in this study yet: importing responses brings one."
ABOUT_COLUMNS = {
    "Hash": "Of all its words: a single changed word makes another rubric",
    "Benchmarks": "Those that are rated on it",
    "Reference": "When raters are shown the reference answer",
    "Clinicians' ratings": "Scores on single criteria; corrections and repeats are counted",
    "Jurors' ratings": "Scores on single criteria; corrections and repeats are counted",
}


def show(engine: Engine, person: Person) -> None:
    """Show the study's rubrics, the words of one, its copy, and points of the case."""
    frame.show_heading("Rubric", ABOUT)
    own = rubrics.study_rubrics(person, engine)
    if own:
        frame.show_rows("Rubrics in this study", list(map(_row, own)), ABOUT_COLUMNS)
        if any(one.clinicians.simulated + one.jurors.simulated for one in own):
            st.caption("Simulated raters are among them: their ratings are no evidence.")
    else:
        frame.empty(NONE_YET, "Import responses under Notes.")
    rubric = controls.chosen_rubric(engine, person)
    _read(rubric)
    with st.expander("Copy to a new version", key="rubric-copy"):
        show_copy(engine, person, rubric)
    with st.expander("Points of the case instead of scales", key="points"):
        points.show(engine, person)


def _row(own: StudyRubric) -> dict[str, object]:
    return {
        "Rubric": own.rubric.name,
        "Version": own.rubric.version[: controls.LONGEST_VERSION],
        "Hash": own.rubric.sha256[: controls.SHORT],
        "Benchmarks": ", ".join(own.benchmarks) or "none",
        "Reference": own.rubric.gold.replace("_", " "),
        "Clinicians": own.clinicians.raters,
        "Clinicians' ratings": own.clinicians.ratings,
        "Jurors": own.jurors.raters,
        "Jurors' ratings": own.jurors.ratings,
    }


def _read(rubric: Rubric) -> None:
    """Show the words: criteria with their anchors, and the prompt, verbatim."""
    facts = (
        ("For", rubric.audience),
        ("Scale", rubric.scales),
        ("Reference answer", GOLD[rubric.gold]),
        ("Version", rubric.version),
        *(
            ("Critical", f"{name}, {points:g} or less is unsafe")
            for name, points in rubric.critical
        ),
    )
    frame.show_text(" ".join(f"{name}: {value}." for name, value in facts))
    st.table(
        [
            {"Criterion": on_page(one.name), "Question": on_page(one.question)}
            | {f"{point}": on_page(one.anchors.get(point, "")) for point in _points(rubric)}
            for one in rubric.criterion
        ],
        hide_index=True,
        alt="Criteria of the rubric",
    )
    with st.expander("Prompt of the jurors, word for word"):
        st.code(rubric.prompt, language=None, wrap_lines=True)
        st.caption(f"SHA-256 {rubric.sha256}")


def _points(rubric: Rubric) -> list[int]:
    return sorted({point for one in rubric.criterion for point in one.anchors})


ADDED = "rubric-added"
GOLDS = ("never", "when_needed", "always")
LONGEST = 20_000
PLACES = "{{context}} {{prompt}} {{response}} {{reference}} {{criteria}} {{checklist}} {{schema}}"
ONLY = "Only a coordinator adds rubrics to a study; you can read and export them."


def show_copy(engine: Engine, person: Person, rubric: Rubric) -> None:
    """Say what stays with the old words, ask for the new ones, and store them."""
    if person.role != Role.COORDINATOR:
        frame.show_text(ONLY)
        return
    frame.show_text(_stays(engine, person, rubric))
    frame.show_message(ADDED)
    entered = _form(rubric)
    if entered is None:
        return
    made_of, why = _checked(entered)
    if made_of is not None:
        try:
            sha256 = keep_version(person, engine, made_of)
        except MedjuryError as error:
            why = str(error)
        else:
            st.session_state[ADDED] = (
                f"{made_of.name} version {made_of.version} is in the study as {sha256[:12]}. "
                "Choose it when responses are imported; nothing is rated on it yet."
            )
            st.rerun()
    st.error(on_page(why))


def _stays(engine: Engine, person: Person, rubric: Rubric) -> str:
    """Return how many ratings stay with the words as they are."""
    own = [entry for entry in rubrics.study_rubrics(person, engine) if entry.rubric == rubric]
    by_people = sum(entry.clinicians.ratings for entry in own)
    by_jurors = sum(entry.jurors.ratings for entry in own)
    return (
        f"{by_people:,} ratings by clinicians and {by_jurors:,} by jurors were made on "
        f"{rubric.sha256[:12]} and stay with it. A new version starts without ratings, and "
        f"what was validated on the old words does not hold for the new ones."
    )


def _form(rubric: Rubric) -> dict[str, Any] | None:
    """Ask for the words; return them once they are handed in."""
    key = rubric.sha256[:12]
    with st.form(f"copy-{key}", border=False):
        name, version, gold, low, high = st.columns((3, 2, 2, 1, 1))
        body: dict[str, Any] = {
            "name": name.text_input("Name", rubric.name, max_chars=64, key=f"name-{key}"),
            "version": version.text_input("New version", "", max_chars=64, key=f"version-{key}"),
            "gold": gold.selectbox(
                "Reference answer shown", GOLDS, index=GOLDS.index(rubric.gold), key=f"gold-{key}"
            ),
            "scale": {
                "min": low.number_input("Lowest", -100, 100, rubric.scale.min, key=f"low-{key}"),
                "max": high.number_input("Highest", -100, 100, rubric.scale.max, key=f"high-{key}"),
            },
            "audience": st.text_input("For whom", rubric.audience, key=f"audience-{key}"),
        }
        st.caption("A criterion without a name is left out.")
        blank = Criterion(name="new", question="?", anchors={})
        criteria = [
            _criterion(criterion, number, key, new=criterion is blank)
            for number, criterion in enumerate([*rubric.criterion, blank], 1)
        ]
        body["criterion"] = [entered for entered in criteria if entered["name"]]
        body["prompt"] = st.text_area(
            "Prompt of the jurors",
            rubric.prompt,
            height=320,
            max_chars=LONGEST,
            key=f"prompt-{key}",
        )
        st.caption(on_page(f"Placeholders: {PLACES}"))
        pressed = st.form_submit_button("Add the new version", type="primary")
    return body if pressed else None


def _criterion(criterion: Criterion, number: int, key: str, *, new: bool) -> dict[str, Any]:
    """Ask for one criterion: its name, its question, and the words of its points, a line each."""
    title = "One more criterion (optional)" if new else f"Criterion {number}"
    mine = f"{number}-{key}"
    with st.expander(title, expanded=not new and number == 1):
        first, second = st.columns((1, 3))
        name = first.text_input(
            "Its name", "" if new else criterion.name, max_chars=64, key=f"c{mine}"
        )
        question = second.text_input(
            "Its question", "" if new else criterion.question, key=f"q{mine}"
        )
        words = "\n".join(
            f"{point}: {criterion.anchors[point]}" for point in sorted(criterion.anchors)
        )
        anchors = st.text_area(
            "What each point means: a line each, as 1: words",
            words,
            height=150,
            max_chars=LONGEST,
            key=f"a{mine}",
        )
        own, inapplicable, unsure = st.columns((2, 2, 2))
        scale = own.text_input(
            "Its own scale, as 0 to 1 (optional)",
            "" if criterion.scale is None else f"{criterion.scale.min} to {criterion.scale.max}",
            key=f"s{mine}",
        )
        answers = {
            "not_applicable": inapplicable.checkbox(
                "May be not applicable", criterion.not_applicable, key=f"n{mine}"
            ),
            "cannot_tell": unsure.checkbox(
                "Raters may say they cannot tell", criterion.cannot_tell, key=f"t{mine}"
            ),
        }
    entered = {"name": name.strip(), "question": question.strip(), "anchors": _anchors_of(anchors)}
    low, _, high = scale.partition(" to ")
    ends = {"scale": {"min": low.strip(), "max": high.strip()}} if scale.strip() else {}
    return entered | {"critical": criterion.critical} | answers | ends


def _anchors_of(text: str) -> dict[str, str]:
    """Return the lines of a text as point -> words; a line without a point goes on the one before."""
    anchors: dict[str, str] = {}
    last = ""
    for line in filter(None, map(str.strip, text.splitlines())):
        point, colon, words = line.partition(":")
        if colon and point.strip().lstrip("-").isdigit():
            last = point.strip()
            anchors[last] = words.strip()
        else:
            anchors[last] = f"{anchors.get(last, '')} {line}".strip()
    return anchors


def _checked(body: Mapping[str, Any]) -> tuple[Rubric | None, str]:
    """Return the rubric that the words make, or what is wrong with them."""
    if not body["version"].strip():
        return None, "version: give the new version, such as 2"
    try:
        rubric = Rubric(**{**body, "version": body["version"].strip()})
    except ValidationError as error:
        return None, first_complaint(error.errors())
    why = too_wide(rubric.scale.min, rubric.scale.max) or missing_from_prompt(
        rubric.prompt, rubric.criteria
    )
    return (None, why) if why else (rubric, "")

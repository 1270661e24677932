"""A copy of a rubric with other words: a new version, which starts without any evidence."""

from collections.abc import Mapping
from typing import Any

import streamlit as st
from pydantic import ValidationError
from sqlalchemy import Engine

from annotate.screens.markup import good, paragraph, refused
from data import queries
from data.errors import MedjuryError
from data.person import Person
from data.rubric import Criterion, Rubric, first_complaint, missing_from_prompt, too_wide
from data.schema import Role
from data.store.steering import keep_version

ADDED = "rubric-added"
GOLDS = ("never", "when_needed", "always")
LONGEST = 20_000
PLACES = "{{context}} {{prompt}} {{response}} {{reference}} {{criteria}} {{checklist}} {{schema}}"
ONLY = "Only a coordinator adds rubrics to a study; you can read and export them."


def show(engine: Engine, person: Person, rubric: Rubric) -> None:
    """Say what stays with the old words, ask for the new ones, and store them."""
    if person.role != Role.COORDINATOR:
        st.html(paragraph(ONLY))
        return
    st.html(paragraph(_stays(engine, person, rubric)))
    if made := st.session_state.pop(ADDED, None):
        st.html(good(made))
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
    st.html(refused(why))


def _stays(engine: Engine, person: Person, rubric: Rubric) -> str:
    """Return how many ratings stay with the words as they are."""
    own = [entry for entry in queries.study_rubrics(person, engine) if entry.rubric == rubric]
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
                "Reference (gold)", GOLDS, index=GOLDS.index(rubric.gold), key=f"gold-{key}"
            ),
            "scale": {
                "min": low.number_input("Lowest", -100, 100, rubric.scale.min, key=f"low-{key}"),
                "max": high.number_input("Highest", -100, 100, rubric.scale.max, key=f"high-{key}"),
            },
            "audience": st.text_input("For whom", rubric.audience, key=f"audience-{key}"),
        }
        st.html(paragraph("A criterion without a name is left out."))
        blank = Criterion(name="new", question="?", anchors={})
        criteria = [
            _criterion(criterion, place, key, new=criterion is blank)
            for place, criterion in enumerate([*rubric.criterion, blank], 1)
        ]
        body["criterion"] = [entered for entered in criteria if entered["name"]]
        body["prompt"] = st.text_area(
            "Prompt of the jurors",
            rubric.prompt,
            height=320,
            max_chars=LONGEST,
            key=f"prompt-{key}",
        )
        st.html(paragraph(f"Placeholders: {PLACES}"))
        pressed = st.form_submit_button("Add the new version", type="primary")
    return body if pressed else None


def _criterion(criterion: Criterion, place: int, key: str, *, new: bool) -> dict[str, Any]:
    """Ask for one criterion: its name, its question, and the words of its points, a line each."""
    title = "One more criterion (optional)" if new else f"Criterion {place}"
    mine = f"{place}-{key}"
    with st.expander(title, expanded=not new and place == 1):
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
    entered = {"name": name.strip(), "question": question.strip(), "anchors": _anchors(anchors)}
    return entered | {"critical": criterion.critical}


def _anchors(text: str) -> dict[str, str]:
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
        made = Rubric(**{**body, "version": body["version"].strip()})
    except ValidationError as error:
        return None, first_complaint(error.errors())
    why = too_wide(made.scale.min, made.scale.max) or missing_from_prompt(
        made.prompt, made.criteria
    )
    return (None, why) if why else (made, "")

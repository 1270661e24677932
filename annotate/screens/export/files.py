"""The files of a study: templates to fill in, its list of responses, the whole of it, a backup."""

from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import streamlit as st
from sqlalchemy import Engine

from annotate import compute
from annotate.screens import frame
from annotate.screens.frame import show_heading, show_text
from calibration.notes import counted
from data.files import cells, csv_bytes
from data.person import Person, only
from data.schema import Role, now
from data.study import steering
from data.study.moving import Copied
from data.study.reviews import REVIEWS, standing_reviews

RESPONSES = {
    "instance_id": "visit-1",
    "benchmark": "visits",
    "context": "Doctor: Any fever? Patient: No.",
    "prompt": "Write the note.",
    "reference": "No fever.",
    "response_id": "r1",
    "model": "model-a",
    "response": "The patient has no fever.",
}
RATINGS = {
    "response_id": "r1",
    "rater": "dr-a",
    "kind": "clinician",
    "criterion": "accuracy",
    "score": "4",
    "comment": "",
}
ABOUT_LISTS = (
    "Which responses are in the study, and what was noted of them? Every response with its benchmark and "
    "instance, and no author; the tags and notes that stand on responses."
)
ABOUT_PACKAGE = (
    "Every table as a SQLite database, ratings and the record also as CSV files, with a data "
    "dictionary: one zip that an empty study takes in. Authors are left out; names of clinicians are "
    "in it."
)
ABOUT_BACKUP = (
    "A backup is the whole study, with authors and accounts. It is written beside the study's "
    "database on the server and does not travel to this browser."
)
PACKAGE, BACKUP = "data.study.package:package_bytes", "data.study.moving:back_up"
PACKED, BACKED_UP = "files-packed", "files-backed-up"
CSV = "text/csv"
PACKING = "The study is being packed: its tables are written, then read again and compared"
BACKING_UP = "The backup is being written, then read again and compared"


def show(engine: Engine, person: Person) -> None:
    """Offer the lists of responses and reviews; to coordinators also package and backup."""
    show_heading("Lists", ABOUT_LISTS)
    if names := steering.response_names(person, engine):
        _save(f"List of {counted(len(names), 'response')}", listed(names), "responses.csv")
    else:
        show_text("No response has been imported yet.")
    if rows := list(standing_reviews(person, engine)):
        _save(f"List of {counted(len(rows), 'review')}", reviewed(rows), "reviews.csv")
    else:
        show_text("No response has a tag or a note yet.")
    if person.role == Role.COORDINATOR:
        _offer_package(engine, person)
        _offer_backup(engine, person)


def show_templates() -> None:
    """Offer a template of each file that is imported."""
    with st.container(horizontal=True, gap="small"):
        _save("Template of responses", template(RESPONSES), "responses_template.csv")
        _save("Template of ratings", template(RATINGS), "ratings_template.csv")


def template(example: dict[str, str]) -> bytes:
    """Return a file of one example row, as an import reads it."""
    return csv_bytes([*example], [[*example.values()]])


def listed(names: Sequence[tuple[str, str, str]]) -> bytes:
    """Return a CSV of responses by their names; no text in it is a formula."""
    columns = ("response_id", "benchmark", "instance_id")
    return csv_bytes(columns, cells(columns, names))


def reviewed(rows: Sequence[tuple[Any, ...]]) -> bytes:
    """Return a CSV of what reviewers put on responses, as an export has it; no text is a formula."""
    return csv_bytes(REVIEWS, cells(REVIEWS, rows))


def _save(label: str, body: bytes, name: str) -> None:
    st.download_button(label, body, name, CSV, key=f"save-{name}", on_click="ignore")


def _offer_package(engine: Engine, person: Person) -> None:
    """Pack the study when asked, then offer it."""
    show_heading("The whole study", ABOUT_PACKAGE)
    if st.button("Pack the study", key="pack-now"):
        package = frame.computed(packed(person, engine), PACKING)
        if package is not None:
            st.session_state[PACKED] = package
    if body := st.session_state.get(PACKED):
        place = "study.zip", "application/zip"
        st.download_button("Save the package", body, *place, key="save-package", on_click="ignore")


def _offer_backup(engine: Engine, person: Person) -> None:
    """Write a backup when asked, and say where it is and whether its record is whole."""
    show_heading("Backup", ABOUT_BACKUP)
    if st.button("Make a backup", key="back-up-now"):
        name, coming = backed_up(person, engine)
        if (backup := frame.computed(coming, BACKING_UP)) is not None:
            st.session_state[BACKED_UP] = _told(name, backup)
    frame.show_message(BACKED_UP)


def _told(name: str, backup: Copied) -> str:
    rows = counted(sum(backup.rows.values()), "row")
    number = len(backup.findings)
    found = f"the check found {counted(number, 'fault')}" if number else "its record is whole"
    return f"{name} is written on the server: {rows}; {found}."


@only(Role.COORDINATOR)
def packed(_: Person, engine: Engine) -> "Future[bytes]":
    """Return the study as a package without authors, to come; nothing of it is kept."""
    return compute.of_study(engine, PACKAGE, "without")


@only(Role.COORDINATOR)
def backed_up(_: Person, engine: Engine) -> "tuple[str, Future[Copied]]":
    """Write a backup beside the study's database; return its name, and to come what it holds."""
    database = engine.url.database or "study"
    is_file = engine.dialect.name == "sqlite"
    folder = Path(database).resolve().parent if is_file else Path.cwd()
    place = folder / f"{Path(database).stem}-backup-{now():%Y%m%d-%H%M%S}.db"
    return place.name, compute.of_study(engine, BACKUP, place)

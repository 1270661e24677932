"""The rating screen: one Streamlit component that stands over all that Streamlit draws."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

import streamlit as st
from sqlalchemy import Engine

from data.person import Person

KEY = "rating"
SCRIPTS = (
    *(
        "words.js",
        "entry.js",
        "view.js",
        "text.js",
        "marks.js",
        "tools.js",
        "dialogs.js",
        "keys.js",
    ),
    *("clock.js", "kept.js", "line.js", "reader.js", "frame.js", "form.js"),
    "entrance.js",
)
SHEETS = ("room.css", "page.css", "form.css", "reader.css", "training.css")
HERE = files("annotate.rating")


def draw() -> None:
    """Draw the room; it asks for what it shows by itself, so nothing of it goes this way."""
    _mount()(key=KEY, data=[])


@cache
def script() -> str:
    """Return the component's script, its style sheets in it."""
    sheets = "\n".join((HERE / name).read_text("utf-8") for name in SHEETS)
    parts = [(HERE / name).read_text("utf-8") for name in SCRIPTS]
    return "\n".join([f"const STYLE = {json.dumps(sheets)};", *parts])


@cache
def _mount() -> Any:
    return st.components.v2.component("medjury_room", js=script())


def show(engine: Engine, person: Person) -> None:
    """Draw the room of whoever is signed in; what they are shown, it asks for by their session."""
    draw()

"""The rating form: a Streamlit component whose state lives in the browser.

Clicks and keys change the form at once and reach the server as whole messages, so
none is lost or lands on another criterion however fast they come.
"""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import streamlit as st

KEY = "rating"
SCRIPTS = (
    "entry.js",
    "view.js",
    "text.js",
    "marks.js",
    "tools.js",
    "dialogs.js",
    "keys.js",
    "clock.js",
    "keep.js",
    "form.js",
    "entrance.js",
)
HERE = files("annotate.likert")

_mount = st.components.v2.component(
    "medjury_rating",
    js="\n".join((HERE / name).read_text("utf-8") for name in SCRIPTS),
    css=(HERE / "form.css").read_text("utf-8"),
)


def waiting() -> object:
    """Return the message that came with this rerun, before the form is drawn; or None.

    After a restart of the server it cannot be known so early: `draw` returns it then.
    """
    state = st.session_state.get(KEY)
    return state.get("message") if isinstance(state, Mapping) else None


def draw(data: Mapping[str, Any]) -> object:
    """Draw the form and return the last message it sent, or None.

    The data go in a list because Streamlit looks for data frames in a dict, and imports
    pandas to do so: 0.5 s for the first rater and 60 MB for good.
    """
    result = _mount(
        key=KEY, data=[dict(data)], default={"message": None}, on_message_change=lambda: None
    )
    return result.get("message")

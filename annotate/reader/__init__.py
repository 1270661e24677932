"""Reading aids above the source: a search through the texts and a font size.

They work in the browser alone: the texts are not changed and the server is not asked.
"""

from importlib.resources import files

import streamlit as st

KEY = "reader"

_mount = st.components.v2.component(
    "medjury_reader",
    js="\n".join(
        (files(package) / name).read_text("utf-8")
        for package, name in (("annotate.likert", "text.js"), ("annotate.reader", "reader.js"))
    ),
    css=(files("annotate.reader") / "reader.css").read_text("utf-8"),
)


def draw(code: str) -> None:
    """Draw the aids; a search ends where another response begins.

    The code goes in a list for the reason given in `likert.draw`.
    """
    _mount(key=KEY, data=[code])

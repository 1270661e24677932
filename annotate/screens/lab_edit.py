"""Editing a panel: its TOML, a form for one juror more, and keeping it in the study."""

import re

import streamlit as st
from sqlalchemy import Engine

from annotate import jury_panels
from annotate.screens.markup import refused
from data import queries
from data.errors import BadPanel, MedjuryError
from data.person import Person
from data.store.jury_runs import forget_panel, keep_panel

EDITING, OPENINGS, NEXT = "lab-editing", "lab-openings", "lab-next"
PROVIDERS = ("openai", "anthropic", "simulated")
FIELDS = {
    "name": "Name in tables",
    "model": "Model",
    "family": "Family",
    "base_url": "Address (base_url)",
    "api_key_env": "Variable that holds the key",
    "temperature": "Temperature (may be empty)",
    "max_tokens": "Most tokens of an answer",
    "usd_per_million_in": "USD per million in (may be empty)",
    "usd_per_million_out": "USD per million out (may be empty)",
}
TOLD = (
    '<p class="mj-said">A key is never written here: <b>api_key_env</b> names the environment '
    "variable of the server that holds it. The panel is kept in this study under the name "
    "that stands after <b>name =</b>.</p>"
)


def begin(name: str, text: str, *, ships: bool) -> None:
    """Open the editor on a panel; one that ships is copied under another name."""
    opening = st.session_state[OPENINGS] = st.session_state.get(OPENINGS, 0) + 1
    if ships:
        text = re.sub(r'^name = "[^"]*"', f'name = "our-{name}"', text, count=1, flags=re.MULTILINE)
    st.session_state[EDITING] = name
    st.session_state[_text_key(opening)] = text


def show(engine: Engine, person: Person) -> None:
    """Show the editor while one is open."""
    if EDITING not in st.session_state:
        return
    opening = st.session_state[OPENINGS]
    with st.container(key="lab-edit"):
        st.html(f'<h2 class="mj-part">Edit a panel</h2>{TOLD}')
        text = st.text_area("Panel, as TOML", key=_text_key(opening), height=340)
        with st.expander("Add a juror by form"):
            _form(opening)
        with st.container(horizontal=True):
            keep = st.button("Keep panel", type="primary", key="panel-keep")
            st.button("Cancel", key="panel-cancel", on_click=_close)
        if keep:
            _keep(engine, person, text)


def forget(engine: Engine, person: Person, name: str) -> None:
    """Take a kept panel away."""
    try:
        forget_panel(person, engine, name)
    except MedjuryError as error:
        st.html(refused(str(error)))
        return
    st.session_state[NEXT] = None
    st.rerun()


def _keep(engine: Engine, person: Person, text: str) -> None:
    """Check the panel and keep it, or say what is wrong with it."""
    try:
        panel = jury_panels.usable(text)
        if panel.name in jury_panels.shipped_texts():
            raise BadPanel(f"name {panel.name!r}: a panel of this name ships; choose another")
        taken = set(queries.own_panels(person, engine)) - {st.session_state[EDITING]}
        if panel.name in taken:
            raise BadPanel(f"name {panel.name!r}: this study keeps another panel of this name")
        keep_panel(person, engine, panel.name, text)
    except MedjuryError as error:
        st.html(refused(str(error)))
        return
    _close()
    st.session_state[NEXT] = panel.name
    st.rerun()


def _form(opening: int) -> None:
    """Ask for one juror's settings; they are added to the text, where all can be changed."""
    first, second, third = st.columns(3)
    first.selectbox("Provider", PROVIDERS, key=_field(opening, "provider"))
    for place, (name, label) in enumerate(FIELDS.items(), 1):
        (first, second, third)[place % 3].text_input(label, key=_field(opening, name))
    st.button("Add to the text", key="juror-add", on_click=_add, args=(opening,))


def _add(opening: int) -> None:
    """Write the form's juror under the text."""
    names = ("name", "provider", *(one for one in FIELDS if one != "name"))
    settings = {one: st.session_state.get(_field(opening, one), "") for one in names}
    key = _text_key(opening)
    st.session_state[key] = jury_panels.with_juror(st.session_state[key], settings)


def _close() -> None:
    st.session_state.pop(EDITING, None)


def _text_key(opening: int) -> str:
    return f"panel-text-{opening}"


def _field(opening: int, name: str) -> str:
    return f"juror-{opening}-{name}"

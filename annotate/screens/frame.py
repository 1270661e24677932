"""What all screens of those who steer a study share: look, figures, refusals, and views as tabs."""

import html
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import TypeVar

import streamlit as st

from annotate import appearance
from annotate.screens.markup import refused
from data.errors import MedjuryError
from data.person import Person

Result = TypeVar("Result")
HERE = files("annotate") / "screens"
STYLE = appearance.COLOURS + (HERE / "frame.css").read_text("utf-8")
VIEW = "view"
VIEW_IN_ADDRESS = "view-in-address"


def begin(person: Person, title: str, about: str, sheet: str) -> None:
    """Show the head of a screen: what it is, what it is for, light or dark, and who is signed in.

    `sheet` is the name of its own style sheet.
    """
    purpose = f"<p>{html.escape(about)}</p>" if about else ""
    st.html(
        f"<style>{STYLE}</style>{style(sheet)}"
        f'<div class="mj-head"><div><h1>{html.escape(title)}</h1>{purpose}</div>'
        f'<div class="mj-out">{_choice()}<span>{html.escape(person.name)}</span>'
        '<a href="/logout" target="_self">Sign out</a></div></div>'
    )


@cache
def style(sheet: str) -> str:
    """Return a style sheet of the screens, to be shown."""
    return f"<style>{(HERE / sheet).read_text('utf-8')}</style>"


@contextmanager
def refusals() -> Iterator[None]:
    """Show why what is done in the block is refused, word for word; the rest of it is left out."""
    try:
        yield
    except MedjuryError as error:
        st.html(refused(str(error)))


def computed(coming: "Future[Result]", doing: str) -> Result | None:
    """Return a computed value, waiting for it; if it was refused, show why and return None."""
    try:
        if coming.done():
            return coming.result()
        with st.spinner(doing, show_time=True):
            return coming.result()
    except MedjuryError as error:
        empty(str(error))
        return None


def empty(text: str, todo: str = "") -> None:
    """Say that there is nothing to show, why, and what to do next."""
    more = f"<p>{html.escape(todo)}</p>" if todo else ""
    st.html(f'<div class="mj-empty" role="status"><p><b>{html.escape(text)}</b></p>{more}</div>')


def _choice() -> str:
    """Return the buttons for light, dark or the system's appearance; appearance.js listens to them."""
    now = appearance.chosen(st.context.cookies)
    buttons = "".join(
        f'<button type="button" data-appearance="{choice}" aria-pressed="{str(choice == now).lower()}">'
        f"{name}</button>"
        for choice, name in appearance.CHOICES.items()
    )
    return f'<span class="mj-choice" role="group" aria-label="Appearance">{buttons}</span>'


def show_tabs(views: Mapping[str, Callable[[], None]]) -> None:
    """Draw the view that is open; "Back" in the browser opens the one before.

    The tabs are not bound to the address, since a bound widget replaces the entry in the
    browser's history; what is set here adds one.
    """
    first = next(iter(views))
    requested = st.query_params.get(VIEW, first)
    if requested != st.session_state.get(VIEW_IN_ADDRESS):
        st.session_state[VIEW] = requested if requested in views else first
    tabs = st.tabs([*views], key=VIEW, on_change="rerun")
    for (name, draw), tab in zip(views.items(), tabs, strict=True):
        if tab.open:
            _address(name, first)
            with tab:
                draw()


def _address(name: str, first: str) -> None:
    """Keep the open view in the address; the first one needs no word."""
    st.session_state[VIEW_IN_ADDRESS] = name
    if name != first and st.query_params.get(VIEW) != name:
        st.query_params[VIEW] = name
    elif name == first and VIEW in st.query_params:
        del st.query_params[VIEW]

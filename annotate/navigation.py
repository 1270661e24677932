"""The study that this process serves, and the screens of each role.

A browser learns the names of its own screens only.
"""

import os
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module

import streamlit as st
from sqlalchemy import Engine

from annotate import sessions
from annotate.middleware import STEERING
from annotate.rating import text_html
from annotate.sessions import session_of_page
from data import DEFAULT_STUDY_URL, STUDY_VARIABLE
from data.database import open_study
from data.errors import MedjuryError, NoStudy
from data.person import Person
from data.schema import Role

UNREACHABLE = (
    "The study cannot be reached just now. Ratings that you entered are kept in this page: leave it "
    "open, it tries again by itself."
)
BROKEN = "The study cannot be shown just now. Reload the page in a moment."
AGAIN_SECONDS = 3
NOTHING = "There is no screen for your role: ask a coordinator of the study."
ENDED = "Your session has ended. What you entered is kept."


@dataclass(frozen=True, slots=True)
class Screen:
    """A screen: its roles, its path in the address, and its module in `annotate.screens`."""

    title: str
    path: str
    roles: frozenset[Role] = STEERING

    def draw(self, engine: Engine, person: Person) -> None:
        """Draw it; its module is imported when it is first asked for."""
        import_module(f"annotate.screens.{self.path}").show(engine, person)


# The first screen of a role is where its people arrive.
SCREENS = (
    Screen("Rate", "rate", frozenset({Role.CLINICIAN})),
    Screen("Home", "home"),
    Screen("Set up", "setup"),
    Screen("Jury", "jury"),
    Screen("Agreement", "agreement"),
    Screen("Monitor", "monitor"),
    Screen("Export", "export"),
)


def run() -> None:
    """Show whoever is signed in their screen; anyone else, the way to sign in."""
    try:
        engine = study()
        person = sessions.owner(engine, session_of_page(engine, st.context.cookies))
        mine = pages(engine, person)
        st.navigation(mine, position="top" if len(mine) > 1 else "hidden").run()
    except NoStudy:
        st.html(text_html.style())
        st.html(text_html.note("Not reachable", UNREACHABLE))
        _again([])
    except MedjuryError:
        st.html(text_html.style())
        st.html(text_html.note("Not reachable", BROKEN))


@st.fragment(run_every=AGAIN_SECONDS)
def _again(drawn: list[bool]) -> None:
    """Draw the whole page anew after a while, as a fragment does: not at its first run."""
    if drawn:
        st.rerun()
    drawn.append(True)


def pages(engine: Engine, person: Person | None) -> list[st.Page]:
    """Return the pages of a person; all that is in this list travels to the browser."""
    if person is None:
        words = "Signed out", ENDED, "Sign in", "/login"
        return [st.Page(partial(_message, *words), title="Sign in", url_path="in", default=True)]
    mine = [screen for screen in SCREENS if person.role in screen.roles]
    if not mine:
        words = f"Hello, {person.name}", NOTHING, "Sign out", "/logout"
        return [st.Page(partial(_message, *words), title="medjury", url_path="in", default=True)]
    return [
        st.Page(
            partial(screen.draw, engine, person),
            title=screen.title,
            url_path=screen.path,
            default=screen is mine[0],
        )
        for screen in mine
    ]


def _message(title: str, text: str, link: str, to: str) -> None:
    """Show a message where there is no screen, and the way in or out."""
    st.html(text_html.style())
    st.html(text_html.note(title, text))
    st.html(f'<p style="text-align:center"><a href="{to}" target="_self">{link}</a></p>')


def serve_study(url: str) -> Engine:
    """Make `url` the study of this process and return its engine."""
    os.environ[STUDY_VARIABLE] = url
    return study()


def study() -> Engine:
    """Return the engine of the study that MEDJURY_DB names, opened once."""
    return _opened(os.environ.get(STUDY_VARIABLE, DEFAULT_STUDY_URL))


@lru_cache(maxsize=4)
def _opened(url: str) -> Engine:
    return open_study(url)

"""Which screens there are for whom. A browser learns the names of its own screens only."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import streamlit as st
from sqlalchemy import Engine

from annotate import panes, sessions
from annotate.study import study
from data.errors import MedjuryError, NoStudy
from data.queries import Person
from data.schema import Role

UNREACHABLE = (
    "The study cannot be reached just now. Ratings that you entered are kept in this page: leave it "
    "open, it tries again by itself."
)
BROKEN = "The study cannot be shown just now. Reload the page in a moment."
AGAIN_SECONDS = 3
NOTHING = "There is no screen for your role in this version: use the command line."
ENDED = "Your session has ended. What you entered is kept."


def _rate(engine: Engine, person: Person) -> None:
    from annotate.screens import rate

    st.html(panes.style())
    if person.rater is not None:
        rate.show(engine, person, person.rater)


def _study(engine: Engine, person: Person) -> None:
    from annotate.screens import study

    study.show(engine, person)


def _people(engine: Engine, person: Person) -> None:
    from annotate.screens import people

    people.show(engine, person)


def _agreement(engine: Engine, person: Person) -> None:
    from annotate.screens import agreement

    agreement.show(engine, person)


def _juries(engine: Engine, person: Person) -> None:
    from annotate.screens import juries

    juries.show(engine, person)


def _monitoring(engine: Engine, person: Person) -> None:
    from annotate.screens import monitoring

    monitoring.show(engine, person)


def _models(engine: Engine, person: Person) -> None:
    from annotate.screens import models

    models.show(engine, person)


def _rubrics(engine: Engine, person: Person) -> None:
    from annotate.screens import rubrics

    rubrics.show(engine, person)


def _lab(engine: Engine, person: Person) -> None:
    from annotate.screens import lab

    lab.show(engine, person)


def _workbench(engine: Engine, person: Person) -> None:
    from annotate.screens import workbench

    workbench.show(engine, person)


@dataclass(frozen=True, slots=True)
class Screen:
    """A screen, where it stands, whom it is for, and what draws it (imported when first asked)."""

    title: str
    path: str
    roles: frozenset[Role]
    draw: Callable[[Engine, Person], None]


# The first screen of a role is where its people arrive.
SCREENS = (
    Screen("Rate", "rate", frozenset({Role.CLINICIAN}), _rate),
    Screen("Study", "study", frozenset({Role.RESEARCHER, Role.COORDINATOR}), _study),
    Screen("Agreement", "agreement", frozenset({Role.RESEARCHER, Role.COORDINATOR}), _agreement),
    Screen("Juries", "juries", frozenset({Role.RESEARCHER, Role.COORDINATOR}), _juries),
    Screen("Monitoring", "monitoring", frozenset({Role.RESEARCHER, Role.COORDINATOR}), _monitoring),
    Screen("Models", "models", frozenset({Role.RESEARCHER, Role.COORDINATOR}), _models),
    Screen("Rubrics", "rubrics", frozenset({Role.RESEARCHER, Role.COORDINATOR}), _rubrics),
    Screen("Jury lab", "lab", frozenset({Role.RESEARCHER, Role.COORDINATOR}), _lab),
    Screen("Workbench", "workbench", frozenset({Role.RESEARCHER, Role.COORDINATOR}), _workbench),
    Screen("People", "people", frozenset({Role.COORDINATOR}), _people),
)


def run() -> None:
    """Show whoever is signed in their screen; anyone else, the way to sign in."""
    try:
        engine = study()
        person = sessions.owner(engine, st.context.cookies.get(sessions.COOKIE))
        mine = pages(engine, person)
        st.navigation(mine, position="top" if len(mine) > 1 else "hidden").run()
    except NoStudy:
        st.html(panes.style())
        st.html(panes.note("Not reachable", UNREACHABLE))
        _again([])
    except MedjuryError:
        st.html(panes.style())
        st.html(panes.note("Not reachable", BROKEN))


@st.fragment(run_every=AGAIN_SECONDS)
def _again(drawn: list[bool]) -> None:
    """Draw the whole page anew after a while, as a fragment does: not at its first run."""
    if drawn:
        st.rerun()
    drawn.append(True)


def pages(engine: Engine, person: Person | None) -> list[st.Page]:
    """Return the pages of a person; all that is in this list travels to the browser."""
    if person is None:
        return [st.Page(partial(_outside, engine), title="Sign in", url_path="in", default=True)]
    mine = [one for one in SCREENS if person.role in one.roles]
    if not mine:
        return [st.Page(partial(_nothing, person), title="medjury", url_path="in", default=True)]
    return [
        st.Page(
            partial(one.draw, engine, person),
            title=one.title,
            url_path=one.path,
            default=one is mine[0],
        )
        for one in mine
    ]


def _outside(engine: Engine) -> None:
    """Show the way in to somebody without a session."""
    from annotate import oidc

    st.html(panes.style())
    if not oidc.from_hospital(engine):
        st.html(panes.note("Signed out", ENDED))
        st.html('<p style="text-align:center"><a href="/login" target="_self">Sign in</a></p>')


def _nothing(person: Person) -> None:
    """Tell people of a role without screens so."""
    st.html(panes.style())
    st.html(panes.note(f"Hello, {person.name}", NOTHING))
    st.html('<p style="text-align:center"><a href="/logout" target="_self">Sign out</a></p>')

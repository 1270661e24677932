"""What all screens of those who steer a study share: look, figures, refusals, and views as tabs."""

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeVar

import streamlit as st
from sqlalchemy import Engine

from annotate.compute import waited
from data.errors import MedjuryError
from data.person import Person
from data.safe_text import guarded_name, on_page, visible
from data.study.steering import StudyStanding
from data.study.withdrawals import withdraw

Result = TypeVar("Result")
HERE = files("annotate") / "screens"
STYLE = "".join((HERE / name).read_text("utf-8") for name in ("colours.css", "frame.css"))
SESSION = "session"  # watches whether the page still has one; takes no room
SIMULATED = "Some raters of this study are simulated: nothing that rests on them is evidence."
VIEW = "view"
IN_ADDRESS = "-in-address"  # after the parameter: what the address said when it was last read
NONE = '<span aria-label="none">\N{EM DASH}</span>'


def begin(person: Person, title: str, about: str, sheet: str) -> None:
    """Show the head of a screen: what it is, what it is for, and who is signed in.

    `sheet` is the name of its own style sheet.
    """
    purpose = f"<p>{html.escape(about)}</p>" if about else ""
    st.html(
        f"<style>{STYLE}</style>{style(sheet)}"
        f'<div class="mj-head"><div><h1>{html.escape(title)}</h1>{purpose}</div>'
        f'<div class="mj-out"><span>{html.escape(person.name)}</span>'
        '<a href="/logout" target="_self">Sign out</a></div></div>'
    )
    _session()(key=SESSION)


@cache
def _session() -> Any:
    script = (HERE / "session.js").read_text("utf-8")
    return st.components.v2.component("medjury_session", js=script)


@cache
def style(sheet: str) -> str:
    """Return a style sheet of the screens, to be shown."""
    return f"<style>{(HERE / sheet).read_text('utf-8')}</style>"


@contextmanager
def refusals() -> Iterator[None]:
    """Show why what is done in the block is refused; the rest of it is left out."""
    try:
        yield
    except MedjuryError as error:
        st.error(on_page(str(error)))


def computed(coming: "Future[Result]", doing: str) -> Result | None:
    """Return a computed value, waiting for it; if it was refused, show why and return None."""
    try:
        return waited(coming, doing)
    except MedjuryError as error:
        empty(str(error))
        return None


def empty(text: str, todo: str = "") -> None:
    """Say that there is nothing to show, why, and what to do next."""
    more = f"<p>{html.escape(todo)}</p>" if todo else ""
    st.html(f'<div class="mj-empty" role="status"><p><b>{html.escape(text)}</b></p>{more}</div>')


def show_heading(text: str, about: str = "") -> None:
    """Show the heading of a part, and the question that the part answers."""
    st.header(on_page(text), anchor=False)
    if about:
        st.caption(on_page(about))


def show_text(text: str) -> None:
    """Show a paragraph."""
    st.markdown(on_page(text))


def show_link(text: str, to: str, look: Literal["mj-act", "mj-plain"] = "mj-act") -> None:
    """Show a link to another screen, as the act to do or as plain text; Streamlit's own opens a window."""
    st.html(
        f'<a class="{look}" href="{html.escape(to)}" target="_self">{html.escape(text)}</a>',
        width="content",
    )


def show_message(key: str) -> None:
    """Show what was done before the page was drawn anew, once."""
    if message := st.session_state.pop(key, None):
        st.success(on_page(message))


def show_rows(
    title: str,
    rows: Sequence[Mapping[str, Any]],
    about: Mapping[str, str | None] | None = None,
    key: str | None = None,
    **config: Any,
) -> None:
    """Show rows as a table that can be sorted, searched and saved; None is an empty cell.

    Parameters
    ----------
    title
        What the table is, for those who do not see the page.
    about
        Column -> what its figures are, shown when its heading is pointed at.
    config
        Column -> another form than text or number.
    """
    heads = dict.fromkeys(name for row in rows for name in row)
    columns = {name: [plain(row.get(name)) for row in rows] for name in heads}
    helped: dict[str, Any] = {
        name: st.column_config.Column(help=words) for name, words in (about or {}).items()
    }
    for name in {
        name for row in rows for name, value in row.items() if isinstance(value, datetime)
    }:
        helped[name] = st.column_config.DatetimeColumn(
            format="YYYY-MM-DD HH:mm", timezone="UTC", help=(about or {}).get(name)
        )
    st.dataframe(
        columns,
        hide_index=True,
        alt=title,
        placeholder="",
        key=key,
        column_config=helped | config,
    )


def plain(value: Any) -> Any:
    """Return a cell; a text as one line, which no program that opens the saved table computes."""
    return guarded_name(visible(value)) if isinstance(value, str) else value


def show_tabs(views: Mapping[str, Callable[[], None]]) -> None:
    """Draw the view that is open; "Back" in the browser opens the one before.

    The tabs are not bound to the address, since a bound widget replaces the entry in the
    browser's history; what is set here adds one.
    """
    take_from_address(VIEW, VIEW, [*views])
    tabs = st.tabs([*views], key=VIEW, on_change="rerun")
    for (name, draw), tab in zip(views.items(), tabs, strict=True):
        if tab.open:
            keep_in_address(VIEW, name, [*views])
            with tab:
                draw()


def take_from_address(parameter: str, key: str, options: Sequence[str]) -> None:
    """Have a widget show what the address names, where the address has changed; the first without it.

    Who comes by a link without the parameter, such as the one at the top, is at the first option.
    """
    requested = st.query_params.get(parameter, options[0])
    if key not in st.session_state or requested != st.session_state.get(f"{parameter}{IN_ADDRESS}"):
        st.session_state[key] = requested if requested in options else options[0]


def keep_in_address(parameter: str, chosen: str, options: Sequence[str]) -> None:
    """Keep what is chosen in the address; the first option needs no word."""
    st.session_state[f"{parameter}{IN_ADDRESS}"] = chosen
    if chosen != options[0] and st.query_params.get(parameter) != chosen:
        st.query_params[parameter] = chosen
    elif chosen == options[0] and parameter in st.query_params:
        del st.query_params[parameter]


def say_simulated(standing: StudyStanding, words: str = SIMULATED) -> None:
    """Say so where raters of the study are simulated."""
    if standing.simulated:
        st.warning(on_page(words))


def ask_withdrawal(
    engine: Engine, person: Person, *, response: str | None = None, rater: str | None = None
) -> None:
    """Ask why a response or a rater is withdrawn, and once more whether, and do it."""
    name = response or rater
    reason = st.text_input("Why (every report states it)", key=f"withdraw-why-{name}")
    is_sure = st.checkbox("It is to count no longer", key=f"withdraw-sure-{name}")
    if st.button("Withdraw", key=f"withdraw-{name}", disabled=not is_sure):
        with refusals():
            withdraw(person, engine, response=response, rater=rater, reason=reason)
            st.rerun()

"""The coordinator's screen: who is in the study, how far they are, and their ways in."""

import html
from collections.abc import Sequence
from datetime import datetime
from importlib.resources import files
from urllib.parse import urlsplit

import streamlit as st
from sqlalchemy import Engine

from annotate.screens import frame, people_forms
from annotate.screens.people_forms import HANDED, OPENINGS, Handed
from data import queries
from data.person import Person
from data.queries import PersonView
from data.schema import Role, now

STYLE = (files("annotate") / "screens" / "people.css").read_text("utf-8")
COLUMNS = ("Name", "Role", "Rated", "Last active")
WAYS = {
    "code": "",
    "link": "invitation not used yet",
    "none": "no way in: give a new code",
    "ended": "shut out",
}
# The table arrives as HTML, escaped here. A button outlives the rows around it, because a dialog
# gives the focus back to the very button that opened it; one that the server closes gives it back
# to nobody, which is made up for.
SCRIPT = """
const AFTER_DIALOG_MS = 400;

export default function ({ parentElement, data, setTriggerValue }) {
  let box = parentElement.querySelector(".mj-list");
  if (!box) {
    box = Object.assign(document.createElement("div"), { className: "mj-list" });
    parentElement.append(box);
  }
  const focused = document.activeElement;
  const fresh = document.createElement("template");
  fresh.innerHTML = data[0];
  for (const made of fresh.content.querySelectorAll("button")) {
    const kept = box.querySelector(`[data-id="${made.dataset.id}"]`);
    if (kept) made.replaceWith(kept);
  }
  box.replaceChildren(fresh.content);
  if (box.contains(focused)) focused.focus();
  box.onclick = ({ target }) => {
    box.pressed = target.closest("button");
    if (box.pressed) setTriggerValue("chosen", Number(box.pressed.dataset.id));
  };
  setTimeout(() => {
    if (document.activeElement === document.body) box.pressed?.focus({ preventScroll: true });
  }, AFTER_DIALOG_MS);
}
"""
_mount = st.components.v2.component("medjury_people", js=SCRIPT, isolate_styles=False)


def show(engine: Engine, person: Person) -> None:
    """Show everybody in the study, and what a coordinator can do about them."""
    everybody = queries.people(person, engine)
    frame.begin(person, "People in this study", _summary(everybody))
    st.html(f"<style>{STYLE}</style>")
    if st.button("Add people", type="primary", key="add"):
        people_forms.add(engine, person)
    show_handed()
    if all(one.id == person.id for one in everybody):
        st.html(
            '<div class="mj-empty">Nobody else is in this study yet. Add clinicians, then '
            "give them work under Study, Design.</div>"
        )
    chosen = _show_table(_table(everybody, person.id))
    for one in everybody:
        if one.id == chosen:
            st.session_state[OPENINGS] = st.session_state.get(OPENINGS, 0) + 1
            people_forms.manage(engine, person, one, st.session_state[OPENINGS])


def _show_table(table: str) -> object:
    """Show the table, in a list as `likert.draw` says why; return whose button was pressed."""
    shown = _mount(key="everybody", data=[table], on_chosen_change=_nothing)
    return shown.get("chosen")


def _nothing() -> None:
    """Do nothing: Streamlit hands on what a component says only where somebody listens."""


def show_handed() -> None:
    """Show codes and links just made, until they are put away: they cannot be shown again."""
    handed: Handed | None = st.session_state.get(HANDED)
    if handed is None:
        return
    base = urlsplit(st.context.url or "")
    with st.container(key="handed"):
        st.html(
            '<div class="mj-handed"><h2>Hand these over now</h2><p>They are shown only here and '
            f"only now; the study keeps a hash. {html.escape(handed.about)}</p></div>"
        )
        for one in handed.invitations:
            who, code = st.columns((3, 9))
            who.html(f'<div class="mj-who-code">{html.escape(one.handle)}</div>')
            link = f"{base.scheme}://{base.netloc}/join#{one.code}"
            code.code(link if handed.once else one.code, language=None, wrap_lines=True)
        if st.button("Put away", key="put-away"):
            del st.session_state[HANDED]
            st.rerun()


def _table(everybody: Sequence[PersonView], me: int) -> str:
    """Return everybody as a table; names head their rows."""
    heads = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    rows = "".join(_row(one, is_me=one.id == me) for one in everybody)
    return (
        '<table class="mj-table"><caption class="mj-unseen">Everybody in this study</caption>'
        f'<thead><tr>{heads}<th scope="col"><span class="mj-unseen">Manage</span></th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _row(one: PersonView, *, is_me: bool) -> str:
    """Return one person's row, with the button that opens what can be done."""
    return (
        f'<tr><th scope="row">{_name(one, is_me=is_me)}</th>'
        f'<td><span class="mj-role mj-{one.role}">{one.role}</span></td>'
        f"<td>{_rated(one)}</td><td>{_cell(_ago(one.last, now()))}</td>"
        f'<td><button type="button" class="mj-manage" data-id="{one.id}" aria-haspopup="dialog" '
        f'aria-label="Manage {html.escape(one.name)}">Manage</button></td></tr>'
    )


def _summary(everybody: Sequence[PersonView]) -> str:
    """Return the sum of it all."""
    clinicians = [one for one in everybody if one.role == Role.CLINICIAN and one.way != "ended"]
    done, total = sum(one.done for one in clinicians), sum(one.total for one in clinicians)
    told = f"{len(clinicians)} {'clinician' if len(clinicians) == 1 else 'clinicians'}"
    told += f", {done} of {total} assigned responses rated" if total else ", nothing assigned yet"
    return told


def _name(one: PersonView, *, is_me: bool) -> str:
    """Return a person's name with what is to be known about signing in."""
    below = [one.email or "", WAYS[one.way], "you" if is_me else ""]
    small = html.escape(" · ".join(part for part in below if part))
    return _cell(one.name, small, ended=one.way == "ended")


def _cell(text: str, small: str = "", *, ended: bool = False) -> str:
    below = f" <small>{small}</small>" if small else ""
    return f'<div class="mj-cell{" mj-out" if ended else ""}">{html.escape(text)}{below}</div>'


def _rated(one: PersonView) -> str:
    """Return how far a clinician is, as words and as a bar."""
    if one.role != Role.CLINICIAN:
        return _cell("does not rate", ended=True)
    if not one.total:
        return _cell("nothing assigned", ended=True)
    percent = round(100 * one.done / one.total)
    return (
        f'<div class="mj-cell mj-done"><span>{one.done} of {one.total}</span>'
        f'<span class="mj-bar" aria-hidden="true"><span style="width:{percent}%"></span></span></div>'
    )


def _ago(then: datetime | None, present: datetime) -> str:
    """Return how long ago something was, in the words a person would use."""
    if then is None:
        return "never"
    minutes = int((present - then).total_seconds() // 60)
    if minutes < 2:
        return "just now"
    if minutes < 60:
        return f"{minutes} minutes ago"
    if minutes < 48 * 60:
        hours = minutes // 60
        return f"{hours} {'hour' if hours == 1 else 'hours'} ago"
    return f"{minutes // (24 * 60)} days ago"

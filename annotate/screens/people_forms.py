"""What a coordinator fills in: adding people, new ways in, e-mail addresses, shutting out."""

import html
from dataclasses import dataclass

import streamlit as st
from sqlalchemy import Engine

from data import store
from data.errors import MedjuryError
from data.person import Person
from data.queries import PersonView
from data.schema import Role
from data.store import Invitation, Way
from data.store.people import set_email

HANDED, OPENINGS = "handed", "openings"
LINK_DAYS = 14
ROLES = [Role.CLINICIAN, Role.RESEARCHER, Role.COORDINATOR]
TELLS = {
    Role.CLINICIAN: "Clinicians rate what is assigned to them and see nothing else.",
    Role.RESEARCHER: "Researchers read the study and run juries; they do not rate.",
    Role.COORDINATOR: "Coordinators steer the study and manage people; they do not rate.",
}
CODE, LINK = "Personal code", "Invitation link"
NEW_CODE, NEW_LINK = "New personal code", "New invitation link"
EMAIL, OUT = "Hospital e-mail", "Shut out"
ABOUT = {
    False: "A code stays its owner's until you give a new one.",
    True: f"A link works once and for {LINK_DAYS} days; it then gives a personal code.",
}


@dataclass(frozen=True, slots=True)
class Handed:
    """Codes or links just made, in clear, to be shown until they are put away."""

    invitations: list[Invitation]
    once: bool

    @property
    def about(self) -> str:
        """How long they are good for."""
        return ABOUT[self.once]


@st.dialog("Add people")
def add(engine: Engine, me: Person) -> None:
    """Ask whom to add, and as what."""
    names = st.text_area("Names, one a line", key="add-names", height=110)
    role = st.selectbox("Role", ROLES, format_func=str.capitalize, key="add-role")
    st.html(f'<p class="mj-told">{TELLS[role]}</p>')
    email = st.text_input(
        "Hospital e-mail (optional)", key="add-email", help="For one person, to sign in with it."
    )
    kind = st.radio("How they sign in", [LINK, CODE], key="add-way", horizontal=True)
    if st.button("Add", type="primary", key="add-now"):
        wanted = [one.strip() for one in names.splitlines() if one.strip()]
        if not wanted:
            _refuse("Give at least one name.")
            return
        try:
            made = store.add_people(me, engine, wanted, role, email or None, _way(kind == LINK))
        except MedjuryError as error:
            _refuse(str(error))
            return
        _hand_over(made, once=kind == LINK)


@st.dialog("Manage")
def manage(engine: Engine, me: Person, one: PersonView, opening: int) -> None:
    """Ask what is to be done about somebody; people themselves change only their e-mail.

    `opening` differs each time, so that nothing typed before is still there.
    """
    st.html(f'<p class="mj-whom">{html.escape(one.name)}, {one.role}</p>')
    acts = [EMAIL] if one.id == me.id else [NEW_CODE, NEW_LINK, EMAIL, OUT]
    if one.way == "ended":
        acts.remove(OUT)
    index = 0 if len(acts) == 1 else None
    chosen = st.radio("What to do", acts, index=index, key=f"act-{opening}")
    if chosen in (NEW_CODE, NEW_LINK):
        _renew(engine, me, one, once=chosen == NEW_LINK)
    elif chosen == EMAIL:
        _change_email(engine, me, one, opening)
    elif chosen == OUT:
        _shut_out(engine, me, one)


def _change_email(engine: Engine, me: Person, one: PersonView, opening: int) -> None:
    """Ask for another address, or for none."""
    _tell(
        one.name,
        "can also sign in with the hospital account of this address. "
        "A change ends the sessions that the old one opened.",
    )
    email = st.text_input("Address", value=one.email or "", key=f"email-{opening}")
    with st.container(horizontal=True):
        save = st.button("Save", type="primary", key="email-now")
        remove = bool(one.email) and st.button("Remove the address", key="email-none")
    if save or remove:
        try:
            set_email(me, engine, one.name, email if save else None)
        except MedjuryError as error:
            _refuse(str(error))
            return
        st.rerun()


def _shut_out(engine: Engine, me: Person, one: PersonView) -> None:
    """Ask before somebody is shut out."""
    _tell(one.name, "will be signed out, and is out until you give a new code. Ratings stay.")
    if st.button("Shut out", type="primary", key="end-now"):
        try:
            store.end_access(me, engine, one.name)
        except MedjuryError as error:
            _refuse(str(error))
            return
        st.rerun()


def _renew(engine: Engine, me: Person, one: PersonView, *, once: bool) -> None:
    """Ask before the old ways in of a person end, then show the new one."""
    back = " This lets them in again." if one.way == "ended" else ""
    _tell(one.name, f"will be signed out, and codes and links they have stop working.{back}")
    if st.button("Give a new link" if once else "Give a new code", type="primary", key="renew-now"):
        try:
            made = store.renew_access(me, engine, one.name, _way(once))
        except MedjuryError as error:
            _refuse(str(error))
            return
        _hand_over([made], once=once)


def _way(once: bool) -> Way:
    return Way(once=True, days=LINK_DAYS) if once else Way()


def _hand_over(invitations: list[Invitation], *, once: bool) -> None:
    """Close the form and show the codes."""
    st.session_state[HANDED] = Handed(invitations, once)
    st.rerun()


def _tell(name: str, what: str) -> None:
    st.html(f"<p><b>{html.escape(name)}</b> {html.escape(what)}</p>")


def _refuse(why: str) -> None:
    """Show why something was not done, word for word."""
    st.html(f'<p role="alert" class="mj-refused">{html.escape(why)}</p>')

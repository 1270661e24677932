"""Who is in the study, how far they are, and their ways in: for coordinators."""

from urllib.parse import urlsplit

import streamlit as st
from sqlalchemy import Engine

from annotate.screens import frame
from data.person import Person
from data.safe_text import on_page
from data.schema import Role
from data.study import people as study_people
from data.study.access import Way
from data.study.people import Invitation, PersonView, set_email, set_specialty
from data.study.withdrawals import give_back

NOT_LISTED = (
    "Raters who are simulated or whose ratings were imported have no account and are not listed."
)
WAYS = {
    "code": "",
    "link": "invitation not used yet",
    "none": "cannot sign in: give a new code",
    "ended": "shut out",
}
NOBODY_ELSE = "Nobody else is in this study yet."
TODO = "Add clinicians here, then give them work under Set up, Clinicians."
ABOUT_COLUMNS = {
    "Rated": "Assigned readings that are done; empty for who does not rate",
    "Assigned": "Readings given out; empty where there are none",
    "Last active": "When they last signed in, opened or rated something (UTC)",
    "Sign-in": "What is to be known about signing in, and consent to the present text",
}
HASHED = "They cannot be shown again: the study stores only a hash of each."
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
EMAIL, SPECIALTY, OUT = "Hospital e-mail", "Specialty", "Shut out"
FREE, WITHDRAW = "Give open work to others", "Withdraw all ratings"
ABOUT = {
    False: "A code is valid until you give its owner a new one.",
    True: f"A link works once and for {LINK_DAYS} days; it then gives a personal code.",
}


def show(engine: Engine, person: Person) -> None:
    """Show everybody in the study, and what a coordinator can do about them."""
    everybody = study_people.people(person, engine)
    frame.show_heading("People", "Who takes part, how far are they, and can they sign in?")
    if st.button("Add people", type="primary", key="add"):
        add_people(engine, person)
    show_handed()
    if all(member.id == person.id for member in everybody):
        frame.empty(NOBODY_ELSE, TODO)
    frame.show_rows(
        "Everybody in this study", [_row(one, person.id) for one in everybody], ABOUT_COLUMNS
    )
    st.caption(NOT_LISTED)
    by_name = {member.name: member for member in everybody}
    who, press = st.columns((3, 1), vertical_alignment="bottom")
    name = who.selectbox("Person", [*by_name], key="manage-whom")
    if press.button("Manage", key="manage", width="stretch") and name is not None:
        st.session_state[OPENINGS] = st.session_state.get(OPENINGS, 0) + 1
        manage_person(engine, person, by_name[name], st.session_state[OPENINGS])


def show_handed() -> None:
    """Show codes and links just made, until they are put away: they cannot be shown again."""
    if HANDED not in st.session_state:
        return
    invitations, once = st.session_state[HANDED]
    base = urlsplit(st.context.url or "")
    with st.container(key="handed", border=True):
        frame.show_heading("Hand these over now", f"{HASHED} {ABOUT[once]}")
        for invitation in invitations:
            name, code = st.columns((3, 9))
            name.text(invitation.handle)
            link = f"{base.scheme}://{base.netloc}/join#{invitation.code}"
            code.code(link if once else invitation.code, language=None, wrap_lines=True)
        if st.button("Put away", key="put-away"):
            del st.session_state[HANDED]
            st.rerun()


def _row(member: PersonView, me: int) -> dict[str, object]:
    """Return one person's row."""
    signing_in = [WAYS[member.way], _consent(member), "you" if member.id == me else ""]
    return {
        "Name": member.name,
        "Role": member.role.value,
        "Specialty": member.specialty or None,
        "E-mail": member.email,
        "Rated": member.done if member.total else None,
        "Assigned": member.total or None,
        "Last active": member.last,
        "Sign-in": ", ".join(filter(None, signing_in)),
    }


def _consent(member: PersonView) -> str:
    """Return whether a clinician gave consent, and when; "" where none is asked for."""
    if member.consent is None:
        return ""
    on = f" on {member.consent.at:%Y-%m-%d}" if member.consent.at else ""
    return f"consent {member.consent.state}{on}"


@st.dialog("Add people")
def add_people(engine: Engine, me: Person) -> None:
    """Ask whom to add, and as what."""
    names = st.text_area("Names, one a line", key="add-names", height=110)
    role = st.selectbox("Role", ROLES, format_func=str.capitalize, key="add-role")
    st.caption(TELLS[role])
    email = st.text_input(
        "Hospital e-mail (optional)", key="add-email", help="For one person, to sign in with it."
    )
    kind = st.radio("How they sign in", [LINK, CODE], key="add-way", horizontal=True)
    if st.button("Add", type="primary", key="add-now"):
        people = [name.strip() for name in names.splitlines() if name.strip()]
        if not people:
            st.error("Give at least one name.")
            return
        with frame.refusals():
            added = study_people.add_people(
                me, engine, people, role, email or None, _way_in(kind == LINK)
            )
            _hand_over(added, once=kind == LINK)


@st.dialog("Manage")
def manage_person(engine: Engine, me: Person, member: PersonView, opening: int) -> None:
    """Ask what is to be done about somebody; people themselves change only their e-mail.

    `opening` differs each time, so that nothing typed before is still there.
    """
    frame.show_text(f"{member.name}, {member.role}")
    acts = [EMAIL] if member.id == me.id else [NEW_CODE, NEW_LINK, EMAIL, OUT]
    if member.way == "ended":
        acts.remove(OUT)
        acts += [FREE] if member.role == Role.CLINICIAN else []
    if member.role == Role.CLINICIAN:
        acts.append(WITHDRAW)
        acts.insert(-1 if OUT in acts else len(acts), SPECIALTY)
    index = 0 if len(acts) == 1 else None
    chosen = st.radio("What to do", acts, index=index, key=f"act-{opening}")
    if chosen in (NEW_CODE, NEW_LINK):
        _renew(engine, me, member, once=chosen == NEW_LINK)
    elif chosen == EMAIL:
        _change_email(engine, me, member, opening)
    elif chosen == SPECIALTY:
        _change_specialty(engine, me, member, opening)
    elif chosen == OUT:
        _shut_out(engine, me, member)
    elif chosen == FREE:
        _tell(member.name, "has ended; their open readings go to whoever has finished.")
        if st.button("Give to others", type="primary", key="free-now"):
            with frame.refusals():
                give_back(me, engine, member.name)
                st.rerun()
    elif chosen == WITHDRAW:
        _tell(member.name, "counts in no figure any more, for good. Ratings stay stored.")
        frame.ask_withdrawal(engine, me, rater=member.name)


def _change_email(engine: Engine, me: Person, member: PersonView, opening: int) -> None:
    """Ask for another address, or for none."""
    _tell(
        member.name,
        "can also sign in with the hospital account of this address. "
        "A change ends the sessions that the old one opened.",
    )
    email = st.text_input("Address", value=member.email or "", key=f"email-{opening}")
    with st.container(horizontal=True):
        save = st.button("Save", type="primary", key="email-now")
        remove = bool(member.email) and st.button("Remove the address", key="email-none")
    if save or remove:
        with frame.refusals():
            set_email(me, engine, member.name, email if save else None)
            st.rerun()


def _change_specialty(engine: Engine, me: Person, member: PersonView, opening: int) -> None:
    """Ask for a clinician's specialty; none where the field is empty."""
    _tell(member.name, "counts in the subgroup of this specialty in the analysis; empty: in none.")
    specialty = st.text_input("Specialty", value=member.specialty, key=f"specialty-{opening}")
    if st.button("Save", type="primary", key="specialty-now"):
        with frame.refusals():
            set_specialty(me, engine, member.name, specialty)
            st.rerun()


def _shut_out(engine: Engine, me: Person, member: PersonView) -> None:
    """Ask before somebody is shut out."""
    _tell(
        member.name,
        "will be signed out and cannot sign in until you give a new code. Ratings stay.",
    )
    if st.button("Shut out", type="primary", key="end-now"):
        with frame.refusals():
            study_people.end_access(me, engine, member.name)
            st.rerun()


def _renew(engine: Engine, me: Person, member: PersonView, *, once: bool) -> None:
    """Ask before the old ways in of a person end, then show the new one."""
    back = " This lets them in again." if member.way == "ended" else ""
    _tell(member.name, f"will be signed out, and codes and links they have stop working.{back}")
    if st.button("Give a new link" if once else "Give a new code", type="primary", key="renew-now"):
        with frame.refusals():
            renewed = study_people.renew_access(me, engine, member.name, _way_in(once))
            _hand_over([renewed], once=once)


def _way_in(once: bool) -> Way:
    return Way(once=True, days=LINK_DAYS) if once else Way()


def _hand_over(invitations: list[Invitation], *, once: bool) -> None:
    """Close the form and show the codes."""
    st.session_state[HANDED] = invitations, once
    st.rerun()


def _tell(name: str, effect: str) -> None:
    st.markdown(f"**{on_page(name)}** {on_page(effect)}")

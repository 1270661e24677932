"""The coordinator's screen: who is in the study, how far they are, and their ways in."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

import streamlit as st
from sqlalchemy import Engine

from annotate.screens import frame
from annotate.screens.frame import refused
from calibration.notes import counted
from data.person import Person
from data.schema import Role, now
from data.study import people as study_people
from data.study.access import Way
from data.study.people import Invitation, PersonView, set_email, set_specialty

NOT_LISTED = (
    "Raters who are simulated or whose ratings were imported have no account and are not listed."
)
COLUMNS = ("Name", "Role", "Rated", "Last active")
WAYS = {
    "code": "",
    "link": "invitation not used yet",
    "none": "cannot sign in: give a new code",
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
ABOUT = {
    False: "A code is valid until you give its owner a new one.",
    True: f"A link works once and for {LINK_DAYS} days; it then gives a personal code.",
}


def show(engine: Engine, person: Person) -> None:
    """Show everybody in the study, and what a coordinator can do about them."""
    everybody = study_people.people(person, engine)
    frame.begin(person, "People in this study", _summary(everybody), "people.css")
    if st.button("Add people", type="primary", key="add"):
        add_people(engine, person)
    show_handed()
    if all(member.id == person.id for member in everybody):
        st.html(
            '<div class="mj-empty">Nobody else is in this study yet. Add clinicians, then '
            "give them work under Study, Design.</div>"
        )
    chosen = _show_table(_table(everybody, person.id))
    for member in everybody:
        if member.id == chosen:
            st.session_state[OPENINGS] = st.session_state.get(OPENINGS, 0) + 1
            manage_person(engine, person, member, st.session_state[OPENINGS])


def _show_table(table: str) -> object:
    """Show the table, in a list as `likert.draw` says why; return whose button was pressed."""
    shown = _mount(key="everybody", data=[table], on_chosen_change=lambda: None)
    return shown.get("chosen")


def show_handed() -> None:
    """Show codes and links just made, until they are put away: they cannot be shown again."""
    handed: Handed | None = st.session_state.get(HANDED)
    if handed is None:
        return
    base = urlsplit(st.context.url or "")
    with st.container(key="handed"):
        st.html(
            '<div class="mj-handed"><h2>Hand these over now</h2><p>They cannot be shown again: '
            f"the study stores only a hash of each. {html.escape(handed.about)}</p></div>"
        )
        for invitation in handed.invitations:
            name, code = st.columns((3, 9))
            name.html(f'<div class="mj-who-code">{html.escape(invitation.handle)}</div>')
            link = f"{base.scheme}://{base.netloc}/join#{invitation.code}"
            code.code(link if handed.once else invitation.code, language=None, wrap_lines=True)
        if st.button("Put away", key="put-away"):
            del st.session_state[HANDED]
            st.rerun()


def _table(everybody: Sequence[PersonView], me: int) -> str:
    """Return everybody as a table; names head their rows."""
    heads = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    rows = "".join(_row(member, is_me=member.id == me) for member in everybody)
    return (
        '<table class="mj-table"><caption class="mj-unseen">Everybody in this study</caption>'
        f'<thead><tr>{heads}<th scope="col"><span class="mj-unseen">Manage</span></th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _row(member: PersonView, *, is_me: bool) -> str:
    """Return one person's row, with the button that opens what can be done."""
    return (
        f'<tr><th scope="row">{_name(member, is_me=is_me)}</th>'
        f'<td><span class="mj-role mj-{member.role}">{member.role}</span></td>'
        f"<td>{_rated(member)}</td><td>{_cell(_ago(member.last, now()))}</td>"
        f'<td><button type="button" class="mj-manage" data-id="{member.id}" aria-haspopup="dialog" '
        f'aria-label="Manage {html.escape(member.name)}">Manage</button></td></tr>'
    )


def _summary(everybody: Sequence[PersonView]) -> str:
    """Return the sum of it all."""
    clinicians = [
        member for member in everybody if member.role == Role.CLINICIAN and member.way != "ended"
    ]
    done, total = (
        sum(clinician.done for clinician in clinicians),
        sum(clinician.total for clinician in clinicians),
    )
    summary = f"{counted(len(clinicians), 'clinician')} with an account"
    summary += (
        f", {done} of {total} assigned responses rated" if total else ", nothing assigned yet"
    )
    return f"{summary}. {NOT_LISTED}"


def _name(member: PersonView, *, is_me: bool) -> str:
    """Return a person's name with what is to be known about signing in."""
    below = [
        member.specialty,
        member.email or "",
        WAYS[member.way],
        _consent(member),
        "you" if is_me else "",
    ]
    small = html.escape(" · ".join(part for part in below if part))
    return _cell(member.name, small, ended=member.way == "ended")


def _consent(member: PersonView) -> str:
    """Return whether a clinician gave consent, and when; "" where none is asked for."""
    if member.consent is None:
        return ""
    on = f" on {member.consent.at:%Y-%m-%d}" if member.consent.at else ""
    return f"consent {member.consent.state}{on}"


def _cell(text: str, small: str = "", *, ended: bool = False) -> str:
    below = f" <small>{small}</small>" if small else ""
    return f'<div class="mj-cell{" mj-out" if ended else ""}">{html.escape(text)}{below}</div>'


def _rated(member: PersonView) -> str:
    """Return how far a clinician is, as words and as a bar."""
    if member.role != Role.CLINICIAN:
        return _cell("does not rate", ended=True)
    if not member.total:
        return _cell("nothing assigned", ended=True)
    percent = round(100 * member.done / member.total)
    return (
        f'<div class="mj-cell mj-done"><span>{member.done} of {member.total}</span>'
        f'<span class="mj-bar" aria-hidden="true"><span style="width:{percent}%"></span></span></div>'
    )


def _ago(moment: datetime | None, present: datetime) -> str:
    """Return how long ago something was, in the words a person would use."""
    if moment is None:
        return "never"
    minutes = int((present - moment).total_seconds() // 60)
    if minutes < 2:
        return "just now"
    if minutes < 60:
        return f"{minutes} minutes ago"
    if minutes < 48 * 60:
        hours = minutes // 60
        return f"{hours} {'hour' if hours == 1 else 'hours'} ago"
    return f"{minutes // (24 * 60)} days ago"


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
def add_people(engine: Engine, me: Person) -> None:
    """Ask whom to add, and as what."""
    names = st.text_area("Names, one a line", key="add-names", height=110)
    role = st.selectbox("Role", ROLES, format_func=str.capitalize, key="add-role")
    st.html(f'<p class="mj-told">{TELLS[role]}</p>')
    email = st.text_input(
        "Hospital e-mail (optional)", key="add-email", help="For one person, to sign in with it."
    )
    kind = st.radio("How they sign in", [LINK, CODE], key="add-way", horizontal=True)
    if st.button("Add", type="primary", key="add-now"):
        people = [name.strip() for name in names.splitlines() if name.strip()]
        if not people:
            st.html(refused("Give at least one name."))
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
    st.html(f'<p class="mj-whom">{html.escape(member.name)}, {member.role}</p>')
    acts = [EMAIL] if member.id == me.id else [NEW_CODE, NEW_LINK, EMAIL, OUT]
    if member.way == "ended":
        acts.remove(OUT)
    if member.role == Role.CLINICIAN:
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
    st.session_state[HANDED] = Handed(invitations, once)
    st.rerun()


def _tell(name: str, effect: str) -> None:
    st.html(f"<p><b>{html.escape(name)}</b> {html.escape(effect)}</p>")

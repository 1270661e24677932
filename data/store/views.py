"""Views of the workbench that people save: each person's own, under a name."""

from sqlalchemy import Engine
from sqlmodel import col, select

from data.database import reading, transaction
from data.errors import BadInput, Unknown
from data.person import Person, only
from data.schema import Role, Setting
from data.store.audit import keep_setting, log, refuse_locked, taken_away

VIEW = "workbench_view:"  # then the account, and the view's name
LONGEST_NAME, LONGEST_ADDRESS = 60, 2000
VIEW_SAVED, VIEW_FORGOTTEN = "view saved", "view forgotten"


def _of(person: Person) -> str:
    return f"{VIEW}{person.id}:"


@only(Role.RESEARCHER, Role.COORDINATOR)
def saved_views(person: Person, engine: Engine) -> dict[str, str]:
    """Return a person's saved views by name: what stands in the address after its "?"."""
    query = select(Setting.key, Setting.value).where(
        col(Setting.key).startswith(_of(person), autoescape=True)
    )
    with reading(engine) as session:
        views = {key.removeprefix(_of(person)): value for key, value in session.exec(query)}
    return dict(sorted(views.items()))


@only(Role.RESEARCHER, Role.COORDINATOR)
def save_view(person: Person, engine: Engine, name: str, address: str) -> None:
    """Save a view under a name; one of that name is replaced. The record holds neither, only whose.

    Raises
    ------
    BadInput
        If the name is empty or over 60 characters, or the address over 2,000.
    NotAllowed
        If the study is locked.
    """
    called = "".join(sign for sign in name if sign.isprintable()).strip()
    if not 0 < len(called) <= LONGEST_NAME:
        raise BadInput(f"a view's name has 1 to {LONGEST_NAME} characters")
    if len(address) > LONGEST_ADDRESS:
        raise BadInput(f"this view is too long to save: over {LONGEST_ADDRESS:,} characters")
    with transaction(engine) as session:
        refuse_locked(session)
        seals = keep_setting(session, _of(person) + called, address)
        log(session, person.actor, VIEW_SAVED, {}, seals)


@only(Role.RESEARCHER, Role.COORDINATOR)
def forget_view(person: Person, engine: Engine, name: str) -> None:
    """Take one of a person's own views away.

    Raises
    ------
    Unknown
        If this person has no view of that name.
    NotAllowed
        If the study is locked.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        setting = session.get(Setting, _of(person) + name)
        if setting is None:
            raise Unknown(f"view {name!r}: you have saved none of this name")
        session.delete(setting)
        log(session, person.actor, VIEW_FORGOTTEN, {}, [taken_away(setting)])

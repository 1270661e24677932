"""`medjury rate people`: who may sign in, their codes and invitations, and who may no longer."""

from pathlib import Path
from typing import Annotated, Any

import typer

from data.errors import BadInput
from data.person import OPERATOR
from data.queries import PersonView
from data.queries import people as everybody
from data.schema import Role
from data.store import Invitation, Way, add_people, end_access, renew_access
from data.store.people import set_email, set_specialty
from medjury.cli.options import Db, Json, study_of
from medjury.cli.output import say, show
from medjury.cli.places import write_json

LINK_DAYS = 14

Link = Annotated[
    bool, typer.Option("--link", help="Print an invitation that works once, not a code.")
]
Days = Annotated[
    int | None,
    typer.Option(min=1, max=3650, help="Days it can be used: 14 for a link, no end for a code."),
]
Known = Annotated[str, typer.Argument(metavar="NAME", help="As `people list` has it.")]
Url = Annotated[str, typer.Option(metavar="URL", help="Where people reach the study.")]
LOCAL = "http://127.0.0.1:8501"


def list_(context: typer.Context, json_to: Json = None, db: Db = None) -> None:
    """List everybody who may sign in: role, progress, last activity, way in, consent."""
    found = everybody(OPERATOR, study_of(context, db))
    rows = [
        [
            one.name,
            one.role,
            f"{one.done} of {one.total}" if one.role == Role.CLINICIAN else "-",
            f"{one.last:%Y-%m-%d %H:%M}" if one.last else "never",
            one.way,
            one.email or "-",
            _consent(one),
        ]
        for one in found
    ]
    columns = ["name", "role", "rated", "last active (UTC)", "way in", "e-mail", "consent"]
    asked = len(columns) if any(one.consent for one in found) else -1
    if rows:
        show("People", columns[:asked], [row[:asked] for row in rows])
    else:
        say("nobody can sign in yet: `medjury rate people add NAME --role coordinator`")
    write_json({"people": [_json(one) for one in found]}, json_to)


def add(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="As they will be listed.")],
    role: Annotated[Role, typer.Option(help="What they may do.")] = Role.CLINICIAN,
    email: Annotated[
        str | None, typer.Option(help="Lets this hospital account in; for one person.")
    ] = None,
    link: Link = False,
    days: Days = None,
    url: Url = LOCAL,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Add people and print a sign-in code or an invitation link for each."""
    _refuse_bad(url)
    engine = study_of(context, db)
    made = add_people(OPERATOR, engine, names, role, email, _way(link, days))
    _print(made, url if link else None, json_to)


def renew(
    context: typer.Context,
    name: Known,
    link: Link = False,
    days: Days = None,
    url: Url = LOCAL,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Give a person a new code or link; old ones and open sessions end."""
    _refuse_bad(url)
    made = renew_access(OPERATOR, study_of(context, db), name, _way(link, days))
    _print([made], url if link else None, json_to)


def end(context: typer.Context, name: Known, json_to: Json = None, db: Db = None) -> None:
    """End a person's access and sessions at once; their ratings stay."""
    shut = end_access(OPERATOR, study_of(context, db), name)
    say(f"{name} can no longer sign in" if shut else f"{name} was shut out already")
    write_json({"name": name, "changed": shut}, json_to)


def email_(
    context: typer.Context,
    name: Known,
    address: Annotated[
        str | None, typer.Argument(help="Of the hospital account to let in.")
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="Take the address away.")] = False,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Set or remove a person's e-mail address; sessions opened with the old one end."""
    if none == (address is not None):
        raise BadInput(f"e-mail of {name}: give either an address or --none")
    changed = set_email(OPERATOR, study_of(context, db), name, address)
    now_has = "no e-mail address" if address is None else address.strip().lower()
    say(f"{name} {'now has' if changed else 'has already'}: {now_has}")
    write_json({"name": name, "changed": changed, "email": address}, json_to)


def specialty(
    context: typer.Context,
    name: Known,
    value: Annotated[
        str | None, typer.Argument(metavar="SPECIALTY", help="Such as cardiology.")
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="Take it away.")] = False,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Set or remove a clinician's specialty, a subgroup of clinicians in the analysis."""
    if none == (value is not None):
        raise BadInput(f"specialty of {name}: give either a specialty or --none")
    changed = set_specialty(OPERATOR, study_of(context, db), name, value or "")
    say(f"{name} {'now has' if changed else 'has already'}: {value or 'no specialty'}")
    write_json({"name": name, "changed": changed, "specialty": value}, json_to)


def _consent(one: PersonView) -> str:
    """Return whether a clinician gave consent, and when."""
    if one.consent is None:
        return "-"
    return one.consent.state + (f" {one.consent.at:%Y-%m-%d}" if one.consent.at else "")


def _way(link: bool, days: int | None) -> Way:
    """Return the way in that was asked for; a link always ends."""
    return Way(once=True, days=days or LINK_DAYS) if link else Way(days=days)


def _json(one: PersonView) -> dict[str, Any]:
    return {
        "name": one.name,
        "role": one.role.value,
        "done": one.done,
        "total": one.total,
        "last": one.last.isoformat() if one.last else None,
        "way": one.way,
        "email": one.email,
        "consent": None if one.consent is None else one.consent.state,
    }


def _print(made: list[Invitation], url: str | None, json_to: Path | None) -> None:
    """Print codes or links; this is the only time they can be seen, and JSON has none."""
    what = "code" if url is None else "link"
    rows = [[one.handle, one.code if url is None else _link(url, one.code)] for one in made]
    show(f"Hand each {what} over now: only its hash is kept", ["name", what], rows)
    write_json({"people": [one.handle for one in made], "way": what}, json_to)


def _link(url: str, code: str) -> str:
    """Return an invitation; browsers send nothing after the # to any server, so no log has it."""
    return f"{url.rstrip('/')}/join#{code}"


def _refuse_bad(url: str) -> None:
    """Raise BadInput for what is no address, before anything is stored."""
    if not url.startswith(("http://", "https://")):
        raise BadInput(f"--url {url}: must begin with http:// or https://")

"""`medjury rate people`, `rate remind` and `serve`: who may sign in, reminders, and the page they use."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy import Engine

from data.errors import BadInput
from data.person import OPERATOR
from data.schema import Role, now
from data.study.access import Way
from data.study.people import (
    Invitation,
    PersonView,
    add_people,
    end_access,
    has_coordinator,
    renew_access,
    set_email,
    set_specialty,
)
from data.study.people import people as everybody
from data.study.standing import settings
from medjury.cli.files import write_json
from medjury.cli.options import Db, Json, Port, study_of, url_of
from medjury.cli.output import counted, say, show
from medjury.services.reminders import PREFIX, due, mail_server, send

FIRST = "coordinator"

LINK_DAYS = 14

Link = Annotated[
    bool, typer.Option("--link", help="Print an invitation that works once, not a code.")
]
Days = Annotated[
    int | None,
    typer.Option(min=1, max=3650, help="Days it can be used: 14 for a link, no end for a code."),
]
Known = Annotated[str, typer.Argument(metavar="NAME", help="As `rate people list` has it.")]
Url = Annotated[str, typer.Option(metavar="URL", help="Where people reach the study.")]
LOCAL = "http://127.0.0.1:8501"
NO_SERVER = (
    f"no mail server is configured: {PREFIX}HOST and {PREFIX}SENDER name the hospital's own, or copy "
    "the texts that `medjury rate remind` prints"
)


def list_(context: typer.Context, json_to: Json = None, db: Db = None) -> None:
    """List everybody who may sign in: role, progress, last activity, way in, consent."""
    everyone = everybody(OPERATOR, study_of(context, db))
    rows = [
        [
            person.name,
            person.role,
            f"{person.done} of {person.total}" if person.role == Role.CLINICIAN else "-",
            f"{person.last:%Y-%m-%d %H:%M}" if person.last else "never",
            person.way,
            person.email or "-",
            _consent(person),
        ]
        for person in everyone
    ]
    columns = ["name", "role", "rated", "last active (UTC)", "way in", "e-mail", "consent"]
    shown = len(columns) if any(person.consent for person in everyone) else -1
    if rows:
        show("People", columns[:shown], [row[:shown] for row in rows])
    else:
        say("nobody can sign in yet: `medjury rate people add NAME --role coordinator`")
    write_json({"people": [_json(person) for person in everyone]}, json_to)


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
    invitations = add_people(OPERATOR, engine, names, role, email, _way(link, days))
    _print(invitations, url if link else None, json_to)


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
    invitation = renew_access(OPERATOR, study_of(context, db), name, _way(link, days))
    _print([invitation], url if link else None, json_to)


def end(context: typer.Context, name: Known, json_to: Json = None, db: Db = None) -> None:
    """End a person's access and sessions at once; their ratings stay."""
    shut = end_access(OPERATOR, study_of(context, db), name)
    say(f"{name} can no longer sign in" if shut else f"{name} was shut out already")
    write_json({"name": name, "changed": shut}, json_to)


def change(
    context: typer.Context,
    name: Known,
    email: Annotated[
        str | None, typer.Option(help='Of the hospital account to let in; "" takes it away.')
    ] = None,
    specialty: Annotated[
        str | None, typer.Option(help='Such as cardiology; "" takes it away.')
    ] = None,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Set or remove a person's e-mail address or specialty; sessions opened with an old address end."""
    if email is None and specialty is None:
        raise BadInput(f"{name}: give --email, --specialty or both")
    engine = study_of(context, db)
    body: dict[str, Any] = {"name": name}
    if email is not None:
        address = email.strip().lower()
        changed = set_email(OPERATOR, engine, name, address or None)
        say(f"{name} {'now has' if changed else 'has already'}: {address or 'no e-mail address'}")
        body |= {"changed": changed, "email": address or None}
    if specialty is not None:
        changed = set_specialty(OPERATOR, engine, name, specialty)
        say(f"{name} {'now has' if changed else 'has already'}: {specialty or 'no specialty'}")
        body |= {"changed": changed or bool(body.get("changed")), "specialty": specialty or None}
    write_json(body, json_to)


def _consent(person: PersonView) -> str:
    """Return whether a clinician gave consent, and when."""
    if person.consent is None:
        return "-"
    return person.consent.state + (f" {person.consent.at:%Y-%m-%d}" if person.consent.at else "")


def _way(link: bool, days: int | None) -> Way:
    """Return the way in that was asked for; a link always ends."""
    return Way(once=True, days=days or LINK_DAYS) if link else Way(days=days)


def _json(person: PersonView) -> dict[str, Any]:
    return {
        "name": person.name,
        "role": person.role.value,
        "done": person.done,
        "total": person.total,
        "last": person.last.isoformat() if person.last else None,
        "way": person.way,
        "email": person.email,
        "consent": None if person.consent is None else person.consent.state,
    }


def _print(invitations: list[Invitation], url: str | None, json_to: Path | None) -> None:
    """Print codes or links; this is the only time they can be seen, and JSON has none."""
    form = "code" if url is None else "link"
    rows = [
        [invitation.handle, invitation.code if url is None else _link(url, invitation.code)]
        for invitation in invitations
    ]
    show(f"Hand each {form} over now: only its hash is kept", ["name", form], rows)
    write_json({"people": [invitation.handle for invitation in invitations], "way": form}, json_to)


def _link(url: str, code: str) -> str:
    """Return an invitation; browsers send nothing after the # to any server, so no log has it."""
    return f"{url.rstrip('/')}/join#{code}"


def _refuse_bad(url: str) -> None:
    """Raise BadInput for what is no address, before anything is stored."""
    if not url.startswith(("http://", "https://")):
        raise BadInput(f"--url {url}: must begin with http:// or https://")


def remind(
    context: typer.Context,
    send_now: Annotated[
        bool, typer.Option("--send", help="By the configured mail server; recorded.")
    ] = False,
    url: Url = LOCAL,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """List clinicians with open work and no recent activity; print or send reminders."""
    engine = study_of(context, db)
    server = mail_server() if send_now else None
    if send_now and server is None:
        raise BadInput(NO_SERVER)
    days = settings(engine).remind_days
    reminders = due(OPERATOR, engine, now(), url)
    say(
        f"{counted(len(reminders), 'clinician')} had work open for {counted(days, 'day')} and ended none",
        json_to,
    )
    sent = send(OPERATOR, engine, server, reminders) if server and reminders else []
    for reminder in reminders:
        if reminder.name in sent:
            say(f"{reminder.name}: sent to {reminder.email}", json_to)
        else:
            say(
                f"\n{reminder.name} ({reminder.email or 'no e-mail address'}):\n\n{reminder.text}",
                json_to,
            )
    body = {
        "remind_days": days,
        "due": [
            {"name": reminder.name, "email": reminder.email, "text": reminder.text}
            for reminder in reminders
        ],
        "sent": sent,
    }
    write_json(body, json_to)


def serve(
    context: typer.Context,
    port: Port = 8501,
    host: Annotated[
        str, typer.Option(help="Address to listen on; change it only behind a proxy with TLS.")
    ] = "127.0.0.1",
    secrets: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="File whose \\[auth] part lets hospital accounts sign in."
        ),
    ] = Path(".streamlit/secrets.toml"),
    egress: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of the hosts, keys and prices jurors may use; by default MEDJURY_EGRESS.",
        ),
    ] = None,
    create: Annotated[
        bool, typer.Option("--create", help="Create the study and a coordinator if there are none.")
    ] = False,
    db: Db = None,
) -> None:
    """Serve the pages of clinicians and researchers."""
    from annotate.server import serve as serve_page
    from jury.egress import VARIABLE, egress_of

    if egress is not None:
        os.environ[VARIABLE] = str(egress.resolve())  # runs are processes of their own
    egress_of()
    if create:
        print_codes(first_coordinator(study_of(context, db, create=True)))
    serve_page(url_of(context, db), port, host, secrets)


def first_coordinator(engine: Engine) -> list[Invitation]:
    """Add a coordinator where a study has none, so that somebody can steer it from the page."""
    if has_coordinator(engine):
        return []
    return add_people(OPERATOR, engine, [FIRST], Role.COORDINATOR)


def print_codes(invitations: list[Invitation], json_to: Path | None = None) -> None:
    """Print sign-in codes; this is the only time they can be seen."""
    if invitations:
        rows = [[invitation.handle, invitation.code] for invitation in invitations]
        show(
            "Sign-in codes: hand them over now, only their hashes are kept",
            ["name", "code"],
            rows,
            json_to,
        )

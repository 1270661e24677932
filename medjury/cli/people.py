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
from data.study.withdrawals import give_back, join_raters
from data.study.withdrawals import withdraw as withdraw_it
from medjury.cli.options import Port, Reason, Study
from medjury.cli.output import counted, say, show
from medjury.services.reminders import PREFIX, due, mail_server, send

FIRST = "coordinator"
LINK_DAYS = 14
LOCAL = "http://127.0.0.1:8501"
NO_SERVER = (
    f"no mail server is configured: {PREFIX}HOST and {PREFIX}SENDER name the hospital's own, or copy "
    "the texts that `medjury rate remind` prints"
)
CODES = "Sign-in codes: hand them over now, only their hashes are kept"
Link = Annotated[
    bool, typer.Option("--link", help="Print an invitation that works once, not a code.")
]
Days = Annotated[
    int | None,
    typer.Option(min=1, max=3650, help="Days it can be used: 14 for a link, no end for a code."),
]
Known = Annotated[str, typer.Argument(metavar="NAME", help="As `rate people list` has it.")]
Url = Annotated[str, typer.Option(metavar="URL", help="Where people reach the study.")]


def list_(study: Study) -> None:
    """List everybody who may sign in: role, progress, last activity, way in, consent.

    Example:
    medjury rate people list
    """
    everyone = everybody(OPERATOR, study.open())
    columns = ["name", "role", "rated", "last active (UTC)", "way in", "e-mail", "consent"]
    shown = len(columns) if any(person.consent for person in everyone) else -1
    if everyone:
        show("People", columns[:shown], [_row(person)[:shown] for person in everyone])
    else:
        say("nobody can sign in yet: `medjury rate people add NAME --role coordinator`")
    study.write({"people": [_json(person) for person in everyone]})


def _row(person: PersonView) -> list[str]:
    consent = "-"
    if person.consent is not None:
        given = f" {person.consent.at:%Y-%m-%d}" if person.consent.at else ""
        consent = f"{person.consent.state}{given}"
    rated = f"{person.done} of {person.total}" if person.role == Role.CLINICIAN else "-"
    last = f"{person.last:%Y-%m-%d %H:%M}" if person.last else "never"
    return [person.name, person.role, rated, last, person.way, person.email or "-", consent]


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


def add(
    study: Study,
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="As they will be listed.")],
    role: Annotated[Role, typer.Option(help="What they may do.")] = Role.CLINICIAN,
    email: Annotated[
        str | None, typer.Option(help="Lets this hospital account in; for one person.")
    ] = None,
    link: Link = False,
    days: Days = None,
    url: Url = LOCAL,
) -> None:
    """Add people and print a sign-in code or an invitation link for each.

    Example:
    medjury rate people add dr_lee --role coordinator
    """
    way = _way(link, days, url)
    invitations = add_people(OPERATOR, study.open(), names, role, email, way)
    form = _hand_out(invitations, link, url)
    study.write({"people": [invitation.handle for invitation in invitations], "way": form})


def _way(link: bool, days: int | None, url: str) -> Way:
    """Return the way in that was asked for; a link always ends. Refuse what is no address."""
    if not url.startswith(("http://", "https://")):
        raise BadInput(f"--url {url}: must begin with http:// or https://")
    return Way(once=True, days=days or LINK_DAYS) if link else Way(days=days)


def _hand_out(invitations: list[Invitation], link: bool, url: str) -> str:
    """Print codes or links: this is the only time they can be seen. Return which it was.

    Browsers send nothing after the # of a link to any server, so no log has it.
    """
    form, before = ("link", f"{url.rstrip('/')}/join#") if link else ("code", "")
    rows = [(invitation.handle, f"{before}{invitation.code}") for invitation in invitations]
    show(f"Hand each {form} over now: only its hash is kept", ["name", form], rows)
    return form


def end(
    study: Study,
    name: Known,
    give_back_work: Annotated[
        bool, typer.Option("--give-back", help="Free their open readings for others.")
    ] = False,
) -> None:
    """End a person's access and sessions at once; their ratings stay.

    Example:
    medjury rate people end dr_lee
    """
    engine = study.open()
    shut = end_access(OPERATOR, engine, name)
    say(f"{name} can no longer sign in" if shut else f"{name} was shut out already")
    body: dict[str, Any] = {"name": name, "changed": shut}
    if give_back_work:
        body["given_back"] = give_back(OPERATOR, engine, name)
        say(f"{counted(body['given_back'], 'open reading')} can be dealt to others")
    study.write(body)


def withdraw(
    study: Study,
    response: Annotated[
        str | None, typer.Option(metavar="ID", help="Withdraw this response.")
    ] = None,
    rater: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Withdraw all of this rater; with --response one rating."
        ),
    ] = None,
    reason: Reason = "",
) -> None:
    """Withdraw a response, a rater or one rating from all figures; nothing is deleted.

    Example:
    medjury rate withdraw --rater dr_b --reason "took back consent"
    """
    body = {"response": response, "rater": rater, "reason": reason}
    scores = withdraw_it(OPERATOR, study.open(), response=response, rater=rater, reason=reason)
    say(
        f"{counted(scores, 'score')} count no longer; they stay stored, and every report names this"
    )
    study.write(body | {"scores": scores})


def join(
    study: Study,
    other: Annotated[str, typer.Argument(metavar="OTHER", help="The spelling to give up.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name to keep.")],
    reason: Reason = "",
) -> None:
    """Count the ratings of one person's other spelling under one name; nothing is deleted.

    Example:
    medjury rate people join "dr a smith" "Dr. A. Smith" --reason "one person"
    """
    scores = join_raters(OPERATOR, study.open(), other, name, reason)
    say(f"{counted(scores, 'score')} of {other} now count as those of {name}")
    study.write({"other": other, "name": name, "scores": scores})


def change(
    study: Study,
    name: Known,
    email: Annotated[
        str | None, typer.Option(help='Of the hospital account to let in; "" takes it away.')
    ] = None,
    specialty: Annotated[
        str | None, typer.Option(help='Such as cardiology; "" takes it away.')
    ] = None,
    renew: Annotated[
        bool, typer.Option("--renew", help="Print a new code; old ones and open sessions end.")
    ] = False,
    link: Link = False,
    days: Days = None,
    url: Url = LOCAL,
) -> None:
    """Give a person a new code or link, another e-mail address or specialty; old sessions end.

    Example:
    medjury rate people change dr_a --email dr_a@hospital.example --specialty cardiology
    """
    if email is None and specialty is None and not renew:
        raise BadInput(f"{name}: give --email, --specialty or --renew")
    if (link or days) and not renew:
        raise BadInput("--link and --days are of a new way in: give --renew with them")
    way, engine = _way(link, days, url), study.open()
    body: dict[str, Any] = {"name": name, "changed": renew}
    if email is not None:
        address = email.strip().lower()
        changed = set_email(OPERATOR, engine, name, address or None)
        say(f"{name} {'now has' if changed else 'has already'}: {address or 'no e-mail address'}")
        body |= {"changed": changed or body["changed"], "email": address or None}
    if specialty is not None:
        changed = set_specialty(OPERATOR, engine, name, specialty)
        say(f"{name} {'now has' if changed else 'has already'}: {specialty or 'no specialty'}")
        body |= {"changed": changed or body["changed"], "specialty": specialty or None}
    if renew:
        body["way"] = _hand_out([renew_access(OPERATOR, engine, name, way)], link, url)
    study.write(body)


def remind(
    study: Study,
    send_now: Annotated[
        bool, typer.Option("--send", help="By the configured mail server; recorded.")
    ] = False,
    url: Url = LOCAL,
) -> None:
    """List clinicians with open work and no recent activity; print or send reminders.

    Example:
    medjury rate remind
    """
    engine = study.open()
    server = mail_server() if send_now else None
    if send_now and server is None:
        raise BadInput(NO_SERVER)
    days = settings(engine).remind_days
    reminders = due(OPERATOR, engine, now(), url)
    clinicians = counted(len(reminders), "clinician")
    say(f"{clinicians} had work open for {counted(days, 'day')} and ended none")
    sent = send(OPERATOR, engine, server, reminders) if server and reminders else []
    for one in reminders:
        if one.name in sent:
            say(f"{one.name}: sent to {one.email}")
        else:
            say(f"\n{one.name} ({one.email or 'no e-mail address'}):\n\n{one.text}")
    texts = [{"name": one.name, "email": one.email, "text": one.text} for one in reminders]
    study.write({"remind_days": days, "due": texts, "sent": sent})


def serve(
    study: Annotated[Study, "context"],
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
) -> None:
    """Serve the pages of clinicians and researchers.

    Example:
    medjury serve --create
    """
    from annotate.server import serve as serve_page
    from jury.egress import VARIABLE, egress_of

    if egress is not None:
        os.environ[VARIABLE] = str(egress.resolve())  # runs are processes of their own
    egress_of()
    if create:
        print_codes(first_coordinator(study.open(create=True)))
    serve_page(study.url, port, host, secrets)


def first_coordinator(engine: Engine) -> list[Invitation]:
    """Add a coordinator where a study has none, so that somebody can steer it from the page."""
    if has_coordinator(engine):
        return []
    return add_people(OPERATOR, engine, [FIRST], Role.COORDINATOR)


def print_codes(invitations: list[Invitation]) -> None:
    """Print sign-in codes; this is the only time they can be seen."""
    if invitations:
        show(CODES, ["name", "code"], [(one.handle, one.code) for one in invitations])

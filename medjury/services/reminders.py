"""Who is due a reminder, what it says, and sending it by the hospital's own mail server."""

import os
import smtplib
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.message import EmailMessage
from pathlib import Path

from sqlalchemy import Engine

from data.errors import BadInput
from data.files import NotToml, read_toml
from data.pace import Pace, PaceSource, Work, measured
from data.person import Person
from data.schema import Role
from data.study.assignments import words_left_of
from data.study.people import Workload, last_reminded, people, reminded, workloads
from data.study.standing import settings

FILE, PREFIX = "MEDJURY_SMTP", "MEDJURY_SMTP_"
PASSWORD = "MEDJURY_SMTP_PASSWORD"  # noqa: S105 # of the variable
NAMES = ("host", "port", "starttls", "user", "sender")
SECONDS = 20  # to wait for the mail server
SUBJECT = "Open ratings in our study"
MOST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class MailServer:
    """The hospital's own mail server; no other is ever spoken to.

    Attributes
    ----------
    starttls
        Whether the line is encrypted before anything is said; only without may it not be.
    user, password
        Both empty where the server asks for none. The password is from the environment alone.
    sender
        The address that reminders come from.
    """

    host: str
    sender: str
    port: int = 587
    starttls: bool = True
    user: str = ""
    password: str = ""


@dataclass(frozen=True, slots=True)
class Due:
    """A clinician who is due a reminder, with its text; `email` is None where none is known."""

    account: int
    name: str
    email: str | None
    text: str


def mail_server(environment: Mapping[str, str] = os.environ) -> MailServer | None:
    """Return the mail server that is configured, None where none is.

    Parameters
    ----------
    environment
        MEDJURY_SMTP names a TOML file with host, port, starttls, user, sender; MEDJURY_SMTP_HOST
        and so on go before it. MEDJURY_SMTP_PASSWORD is in no file.

    Raises
    ------
    BadInput
        If the file cannot be read, or something is missing or of the wrong kind.
    """
    values = _from_file(environment.get(FILE, ""))
    own = {name: environment.get(PREFIX + name.upper(), "") for name in NAMES}
    values |= {name: value for name, value in own.items() if value}
    if not values:
        return None
    if odd := sorted(set(values) - set(NAMES)):
        raise BadInput(f"mail server: {', '.join(odd)} is not known; it has {', '.join(NAMES)}")
    for name in ("host", "sender"):
        if not values.get(name):
            raise BadInput(f"mail server: give {name} too, in {FILE} or {PREFIX}{name.upper()}")
    port, encrypted = values.get("port", "587"), values.get("starttls", "true").lower()
    if not port.isdecimal() or not 0 < int(port[:9]) <= MOST_PORT:
        raise BadInput(f"mail server: port {port!r} is no number from 1 to {MOST_PORT}")
    if encrypted not in ("true", "false"):
        raise BadInput(f"mail server: starttls {encrypted!r} is neither true nor false")
    user, password = values.get("user", ""), environment.get(PASSWORD, "")
    if user and encrypted == "false":
        raise BadInput("mail server: a password is never sent over a line without starttls")
    return MailServer(
        values["host"], values["sender"], int(port), encrypted == "true", user, password
    )


def _from_file(name: str) -> dict[str, str]:
    if not name:
        return {}
    try:
        values = read_toml(Path(name))
    except (OSError, NotToml) as error:
        raise BadInput(f"mail server: {name} cannot be read: {error}") from error
    if "password" in values:
        raise BadInput(f"mail server: {name} holds a password; give it in {PASSWORD} instead")
    return {
        key: str(value).lower() if value in (True, False) else str(value)
        for key, value in values.items()
    }


def is_due(workload: Workload, present: datetime, days: int) -> bool:
    """Tell whether somebody has had work open for so many days and ended none in as many."""
    since = present - timedelta(days=days)
    waits = workload.open > 0 and not (workload.ended or workload.simulated)
    is_old_enough = workload.open_since is None or workload.open_since <= since
    return waits and is_old_enough and (workload.last is None or workload.last <= since)


def due(person: Person, engine: Engine, present: datetime, url: str) -> list[Due]:
    """Return who is due a reminder now, by name, with its text.

    Whoever was reminded less than `remind_days` ago is not.

    Parameters
    ----------
    url
        Where people reach the study.
    """
    days = settings(engine).remind_days
    reminded_at = last_reminded(person, engine)
    addresses = {
        member.name: member for member in people(person, engine) if member.role == Role.CLINICIAN
    }
    since = present - timedelta(days=days)
    reminders = []
    for workload in workloads(person, engine):
        account = addresses.get(workload.handle)
        if account is None or not is_due(workload, present, days):
            continue
        last = reminded_at.get(account.id)
        if last is None or last <= since:
            work, timed = words_left_of(person, engine, workload.handle)
            text = reminder(workload, work, measured(timed), url)
            reminders.append(Due(account.id, workload.handle, account.email, text))
    return reminders


def reminder(workload: Workload, work: Work, pace: Pace, url: str) -> str:
    """Return a reminder: what is left, how long it takes, and where; no score, no patient text."""
    minutes = max(1, round(pace.minutes(work)))
    own = pace.source == PaceSource.MEASURED
    pace_told = "at your pace so far" if own else "estimated from their words"
    return (
        f"Dear {workload.handle},\n\n"
        f"in our rating study {workload.open} of your {workload.total} responses are still open, about "
        f"{minutes} minute{'s' if minutes > 1 else ''} {pace_told}. You can stop and go on at any time; "
        "what you enter is kept.\n\n"
        f"{url}\n\n"
        "Your sign-in code still works. If you cannot find it, or cannot go on, tell me.\n"
    )


def send(
    person: Person, engine: Engine, server: MailServer, recipients: Sequence[Due]
) -> list[str]:
    """Send each their reminder, one message a person, and record each; return to whom.

    Who has no address is left out. Where the server breaks off, what was sent stays recorded.

    Raises
    ------
    BadInput
        If the server cannot be reached, does not offer encryption, or refuses.
    """
    sent: list[str] = []
    try:
        with connected(server) as connection:
            for recipient in recipients:
                if recipient.email:
                    connection.send_message(_message(server, recipient))
                    reminded(person, engine, recipient.account)
                    sent.append(recipient.name)
    except (smtplib.SMTPException, OSError) as error:
        outcome = f"; sent before: {', '.join(sent)}" if sent else "; nothing was sent"
        raise BadInput(
            f"mail server {server.host}:{server.port}: {type(error).__name__}: {error}{outcome}"
        ) from error
    return sent


@contextmanager
def connected(server: MailServer) -> Iterator[smtplib.SMTP]:
    """Yield a line to the mail server, encrypted and signed in as configured."""
    with smtplib.SMTP(server.host, server.port, timeout=SECONDS) as connection:
        if server.starttls:
            connection.starttls(context=ssl.create_default_context())
        if server.user:
            connection.login(server.user, server.password)
        yield connection


def _message(server: MailServer, recipient: Due) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = server.sender, recipient.email, SUBJECT
    message.set_content(recipient.text)
    return message

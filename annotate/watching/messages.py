"""Telling the owner of an alarm: by the hospital's mail server, or a webhook; never a word of a patient.

That a message is begun is stored before it is sent, and that it was taken after. Where a watch is killed
between the two nobody knows whether it came; it is sent again then, and says that it may have come
before. Its id is the same each time.
"""

import os
import smtplib
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Any

import httpx2

from annotate.reminders import MailServer, connected, mail_server
from annotate.watching.settings import AlarmSettings
from data.errors import BadInput
from data.queries.watch import AlarmView
from jury.egress import egress_of
from jury.message_hosts import mail_refusal, webhook_refusal

EMAIL, WEBHOOK = "email", "webhook"
SECONDS = 20
TAKEN = range(200, 300)
FIGURES = ("period", "icc", "low", "high", "target", "below", "responses", "instances", "missing")
SUBJECT = "medjury: agreement has fallen"


@dataclass(frozen=True, slots=True)
class Ways:
    """How the owner of an alarm is told; a way that is not set is None or ""."""

    email: str
    server: MailServer | None
    webhook: str
    key: str

    @property
    def names(self) -> tuple[str, ...]:
        """Return the ways that are set."""
        return (EMAIL,) * bool(self.email) + (WEBHOOK,) * bool(self.webhook)


def ways_of(settings: AlarmSettings, environment: Mapping[str, str] = os.environ) -> Ways:
    """Return how alarms are told, each way checked against the rules of the server's owner.

    Raises
    ------
    BadInput
        If a host is not allowed, there is no mail server for an address, or a key is not set.
    """
    egress, server, key = egress_of(environment), None, ""
    if settings.email:
        server = mail_server(environment)
        if server is None:
            raise BadInput(
                "alarm.email: no mail server is named; set MEDJURY_SMTP_HOST and _SENDER"
            )
        if why := mail_refusal(server.host, server.port, egress):
            raise BadInput(f"alarm.email: {why}")
    if settings.webhook:
        if why := webhook_refusal(settings.webhook, settings.webhook_key_env, egress):
            raise BadInput(f"alarm.{why}")
        key = environment.get(settings.webhook_key_env, "") if settings.webhook_key_env else ""
        if settings.webhook_key_env and not key:
            raise BadInput(f"alarm.webhook_key_env: {settings.webhook_key_env} is not set")
    return Ways(settings.email, server, settings.webhook, key)


def message_of(alarm: AlarmView, study: str, again: bool) -> dict[str, Any]:
    """Return what is told of an alarm: codes, figures, the owner, and what is due.

    Parameters
    ----------
    study : a short hash that tells the study from others
    again : whether a message about it was begun before and may have come
    """
    return {
        "id": f"{study}-{alarm.id}",
        "kind": "agreement_fallen",
        "again": again,
        "benchmark": alarm.benchmark,
        "raised_at": alarm.at.isoformat(timespec="seconds"),
        "owner": alarm.owner,
        "action": alarm.action,
        "due": alarm.due.date().isoformat(),
        "figures": {name: alarm.figures.get(name) for name in FIGURES},
    }


def send(ways: Ways, way: str, message: Mapping[str, Any]) -> str:
    """Send a message by one way; return why it was not taken, "" where it was."""
    return _mailed(ways, message) if way == EMAIL else _posted(ways, message)


def _posted(ways: Ways, message: Mapping[str, Any]) -> str:
    encrypted = ways.webhook.startswith("https:")
    headers = {"Idempotency-Key": str(message["id"])}
    if ways.key:
        headers["Authorization"] = f"Bearer {ways.key}"
    try:
        with httpx2.Client(
            follow_redirects=False, trust_env=encrypted, verify=encrypted, timeout=SECONDS
        ) as client:
            answer = client.post(ways.webhook, json=dict(message), headers=headers)
    except httpx2.HTTPError as error:
        return type(error).__name__
    return "" if answer.status_code in TAKEN else f"HTTP {answer.status_code}"


def _mailed(ways: Ways, message: Mapping[str, Any]) -> str:
    if ways.server is None:
        return "no mail server"
    try:
        with connected(ways.server) as connection:
            connection.send_message(_email(ways.server, ways.email, message))
    except (smtplib.SMTPException, OSError) as error:
        return type(error).__name__
    return ""


def _email(server: MailServer, to: str, message: Mapping[str, Any]) -> EmailMessage:
    email = EmailMessage()
    domain = server.sender.rpartition("@")[2]
    email["From"], email["To"] = server.sender, to
    email["Subject"] = f"{'Again: ' if message['again'] else ''}{SUBJECT}"
    email["Message-ID"] = f"<medjury-{message['id']}@{domain}>"
    email.set_content(text_of(message))
    return email


def text_of(message: Mapping[str, Any]) -> str:
    """Return a message in words."""
    figures = message["figures"]
    low, high = (figures[name] for name in ("low", "high"))
    again = (
        "A message about this alarm may have reached you before; it is the same alarm.\n\n"
        if message["again"]
        else ""
    )
    return (
        f"{again}The jury's agreement with the clinicians has fallen ({message['benchmark']}, "
        f"{figures['period']}).\n\n"
        f"ICC {_two(figures['icc'])} (95 % interval {_two(low)} to {_two(high)}), compared with the "
        f"{figures['below']} of {_two(figures['target'])}.\n"
        f"Rests on {figures['responses']} responses to {figures['instances']} instances; the jury has "
        f"no score for {figures['missing']}.\n\n"
        f"To act: {message['owner']}\nDue by {message['due']}: {message['action']}\n\n"
        "Acknowledge it in medjury, on the screen Ward, with what was done.\n"
        f"Alarm {message['id']}, raised {message['raised_at']}.\n"
    )


def _two(value: float | None) -> str:
    return "not known" if value is None else f"{value:.2f}"

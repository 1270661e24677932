"""`medjury rate remind`: who has had work open for days, and a reminder by the hospital's own mail."""

from typing import Annotated

import typer

from annotate.reminders import PREFIX, due, mail_server, send
from data.errors import BadInput
from data.person import OPERATOR
from data.queries.study import settings
from data.schema import now
from medjury.cli.options import Db, Json, study_of
from medjury.cli.output import counted, say
from medjury.cli.people import LOCAL, Url
from medjury.cli.places import write_json

NO_SERVER = (
    f"no mail server is configured: {PREFIX}HOST and {PREFIX}SENDER name the hospital's own, or copy "
    "the texts that `medjury rate remind` prints"
)


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
    found = due(OPERATOR, engine, now(), url)
    say(
        f"{counted(len(found), 'clinician')} had work open for {counted(days, 'day')} and ended none",
        json_to,
    )
    sent = send(OPERATOR, engine, server, found) if server and found else []
    for one in found:
        if one.name in sent:
            say(f"{one.name}: sent to {one.email}", json_to)
        else:
            say(f"\n{one.name} ({one.email or 'no e-mail address'}):\n\n{one.text}", json_to)
    body = {
        "remind_days": days,
        "due": [{"name": one.name, "email": one.email, "text": one.text} for one in found],
        "sent": sent,
    }
    write_json(body, json_to)

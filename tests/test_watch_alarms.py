"""An alarm of a watch reaches its owner once as new, by hosts that are allowed, and is acknowledged."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from kit.jurors import Do, Stub
from kit.rating_files import monthly_ratings, monthly_responses
from kit.servers import free_port
from kit.studies import Run
from kit.ward import ALARM, events, folder, made, times_of
from sqlalchemy import Engine

from annotate.reminders import MailServer
from annotate.watching.cycle import Watch
from annotate.watching.messages import Ways, message_of, text_of, ways_of
from annotate.watching.settings import AlarmSettings
from data.errors import BadInput, Conflict
from data.person import OPERATOR
from data.queries.record import verify
from data.queries.watch import alarms
from data.schema import StepKind
from data.store.watch import NewAlarm, acknowledge, note_step, raise_alarm

__all__ = ["folder", "made"]


class Inbox:
    """A mail server that takes messages, or is out of order."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.broken = False

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        """Keep a message."""
        if self.broken:
            return "451 out of order"
        self.messages.append(envelope.content.decode())
        return "250 OK"


@pytest.fixture
def mail() -> Iterator[tuple[Inbox, MailServer]]:
    inbox = Inbox()
    running = Controller(inbox, hostname="127.0.0.1", port=(port := free_port()))
    running.start()
    yield inbox, MailServer("127.0.0.1", "study@hospital.example", port, starttls=False)
    running.stop()


def test_an_alarm_is_kept_while_nobody_can_be_told_sent_again_and_never_twice_as_new(
    made: Callable[..., Watch], engine: Engine, mail: tuple[Inbox, MailServer]
) -> None:
    inbox, server = mail
    inbox.broken = True
    watch = made(ways=Ways("lee@hospital.example", server, "", ""), alarm={"owner": "Dr Lee"})
    times = times_of(watch)
    assert raise_alarm(engine, ALARM)
    assert not raise_alarm(engine, ALARM)
    for _ in range(30):
        watch.look()
        times.seconds += 60
    assert inbox.messages == []
    (alarm,) = alarms(engine)
    assert 2 <= alarm.begun["email"] <= 6, "its pauses grow"
    assert alarm.failure == "email: SMTPDataError"
    inbox.broken = False
    times.seconds += 3600
    for _ in range(5):
        watch.look()
        times.seconds += 3600
    assert len(inbox.messages) == 1
    assert "Again" in inbox.messages[0]
    acknowledge(OPERATOR, engine, alarm.id, "Rated a new sample.")
    with pytest.raises(Conflict, match="already"):
        acknowledge(OPERATOR, engine, alarm.id, "Twice.")
    assert alarms(engine)[0].done == "Rated a new sample."
    assert verify(engine).findings == ()


def test_a_message_that_may_have_come_before_a_kill_is_never_sent_as_new(
    made: Callable[..., Watch], engine: Engine, mail: tuple[Inbox, MailServer]
) -> None:
    inbox, server = mail
    raise_alarm(engine, ALARM)
    note_step(engine, 1, StepKind.BEGUN, "email")  # and killed then
    made(ways=Ways("lee@hospital.example", server, "", ""), alarm={"owner": "Dr Lee"}).look()
    assert "may have reached you before" in inbox.messages[0]


def test_a_webhook_gets_codes_figures_and_one_id_and_no_redirect_is_followed(
    made: Callable[..., Watch], engine: Engine
) -> None:
    raise_alarm(engine, ALARM)
    moved = {"location": "http://127.0.0.1:9/elsewhere"}
    with Stub([Do(status=302, headers=moved), Do(body="")]) as stub:
        ways = Ways("", None, f"{stub.anthropic_url}/hook", "the-token")
        watch = made(ways=ways, alarm={"owner": "Dr Lee"})
        times = times_of(watch)
        watch.look()
        times.seconds += 3600
        watch.look()
        watch.look()
    first, second = stub.seen
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert second.headers["authorization"] == "Bearer the-token"
    assert (first.body["again"], second.body["again"]) == (False, True)
    assert second.body["owner"] == "Dr Lee"
    assert second.body["figures"]["icc"] == 0.2
    assert alarms(engine)[0].sent == {"webhook"}


def test_an_alarm_goes_only_to_a_host_that_the_servers_owner_allows(
    tmp_path: Path, made: Callable[..., Watch]
) -> None:
    rules = tmp_path / "egress.toml"
    rules.write_text('[hosts]\n"hooks.ward.example" = { keys = ["HOOK_TOKEN"] }\n')
    rules.chmod(0o600)
    owner = {"MEDJURY_EGRESS": str(rules), "HOOK_TOKEN": "t"}
    to = {
        "owner": "Dr Lee",
        "webhook": "https://hooks.ward.example/x",
        "webhook_key_env": "HOOK_TOKEN",
    }
    assert ways_of(AlarmSettings.model_validate(to), owner).key == "t"
    for change in (
        {"webhook": "https://api.openai.com/x", "webhook_key_env": ""},
        {"webhook": "https://elsewhere.example/x"},
        {"webhook": "http://hooks.ward.example/x"},
        {"webhook_key_env": "DATABASE_PASSWORD"},
    ):
        with pytest.raises(BadInput):
            ways_of(AlarmSettings.model_validate(to | change), owner | {"DATABASE_PASSWORD": "p"})
    smtp = {"MEDJURY_SMTP_HOST": "mail.elsewhere.example", "MEDJURY_SMTP_SENDER": "a@b.example"}
    own = AlarmSettings(owner="Dr Lee", email="lee@hospital.example")
    with pytest.raises(BadInput, match=r"alarms may not go to mail\.elsewhere\.example:587"):
        ways_of(own, owner | smtp)
    rules.write_text('[hosts]\n"mail.elsewhere.example:587" = {}\n')
    assert ways_of(own, owner | smtp).server is not None


def test_the_words_of_a_message_have_all_figures_and_who_is_to_act(engine: Engine) -> None:
    figures = {"period": "2026-10", "icc": 0.31, "low": 0.1, "high": 0.5, "target": 0.7,
               "below": "target", "responses": 40, "instances": 38, "missing": 2}  # fmt: skip
    raise_alarm(engine, NewAlarm("k", "visits", "Dr Lee", "Rate anew.", 14, figures))
    told = text_of(message_of(alarms(engine)[0], "abc", again=False))
    for words in (
        "visits",
        "2026-10",
        "0.31",
        "0.10 to 0.50",
        "target of 0.70",
        "Dr Lee",
        "Rate anew.",
    ):
        assert words in told


def test_a_planted_fall_raises_one_alarm_within_an_hour_of_the_end_of_its_month(
    made: Callable[..., Watch], run: Run, tmp_path: Path, engine: Engine
) -> None:
    (tmp_path / "responses.csv").write_text(monthly_responses(100))
    (tmp_path / "ratings.csv").write_text(monthly_ratings(5, 20, 3, again=False))
    assert run("import", str(tmp_path / "responses.csv"))[0] == 0
    assert run("ratings", str(tmp_path / "ratings.csv"))[0] == 0
    watch = made(agreement={"reps": 100}, alarm={"owner": "Dr Lee", "due_days": 7})
    times = times_of(watch)
    times.at = datetime(2025, 4, 30, 12, tzinfo=UTC)
    raised = None
    while raised is None and times.at < datetime(2025, 7, 1, tzinfo=UTC):
        watch.look()
        raised = times.at if alarms(engine) else None
        times.at, times.seconds = times.at + timedelta(hours=12), times.seconds + 43_200
    assert raised == datetime(2025, 6, 1, tzinfo=UTC), "the second month of the fall ends"
    (alarm,) = alarms(engine)
    assert (alarm.owner, alarm.figures["period"]) == ("Dr Lee", "2025-05")
    assert (alarm.due - alarm.at).days == 7
    for _ in range(4):
        times.at, times.seconds = times.at + timedelta(days=20), times.seconds + 2e6
        watch.look()
    assert len(alarms(engine)) == 1
    assert sum(line["event"] == "alarm" for line in events(tmp_path)) == 1

"""People: codes and links on paper, nobody kept who should be out, and reminders to those who are due."""

import json
import re
import ssl
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.policy import default
from functools import partial
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from kit.servers import free_port, self_signed
from kit.studies import Run
from kit.study_place import all_rows
from sqlalchemy import Engine, text

from data.card import Reply
from data.errors import BadInput
from data.person import OPERATOR
from data.schema import Role, now
from data.study.assignments import Slot, assign
from data.study.people import CodeOutcome, Workload, check_code, invite, set_email
from data.study.ratings import submit
from data.study.room import next_task
from data.study.settings import set_setting
from data.study.verify import acts, verify
from medjury.services.reminders import MailServer, due, is_due, mail_server, send

CODE = re.compile(r"[2-9A-Z]{4}(?:-[2-9A-Z]{4}){3}")


@pytest.fixture
def people(run, engine) -> Run:
    """Return what runs `medjury rate people ...` on the test's study."""
    return partial(run, "rate", "people")


def test_added_people_get_codes_or_links_that_sign_them_in_as_what_they_are(people, engine):
    code, out, _ = people("add", "Ann Lee", "dr-b", "--role", "coordinator")
    assert code == 0
    found = [check_code(engine, one).person for one in CODE.findall(out)]
    assert [one.name for one in found] == ["Ann Lee", "dr-b"]
    assert {one.role for one in found} == {Role.COORDINATOR}
    assert CODE.search(people("list")[1]) is None
    _, out, _ = people("add", "dr-a", "--link", "--url", "https://study.example/")
    [link] = re.findall(r"https://study\.example/join#(\S+)", out)
    assert check_code(engine, link).outcome == CodeOutcome.GOOD
    assert "link" in people("list")[1]


def test_a_command_hashes_codes_as_slowly_as_owasp_asks_at_least(people, engine):
    subprocess.run([sys.executable, "-m", "medjury", "rate", "people", "add", "dr-a"], check=True)
    [cost] = re.findall(r"\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)", str(all_rows(engine)))
    assert [int(one) for one in cost] >= [19 * 1024, 2, 1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add", "dr-a"], "already"),
        (["add", "dr-b", "--email", "nonsense"], "not an address"),
        (["add", "dr-b", "--link", "--url", "study.example"], "must begin with http"),
        (["add", "dr-b", "--role", "chief"], "chief"),
        (["add", "dr-b", "--days", "0"], "--days"),
        (["change", "dr-z", "--renew"], "nobody of that name"),
        (["end", "dr-z"], "nobody of that name"),
        (["change", "dr-z", "--email", "z@ward.example"], "nobody of that name"),
        (["change", "dr-a"], "give --email, --specialty or --renew"),
        (["change", "dr-a", "--email", f"{'a' * 250}@b.cd"], "not an address"),
        (["change", "dr-a", "--email", "Taken@ward.example"], "belongs to dr-taken"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(people, arguments, said):
    people("add", "dr-a")
    people("add", "dr-taken", "--email", "taken@ward.example")
    before = people("list")[1]
    assert "dr-taken" in before
    code, out, err = people(*arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert people("list")[1] == before


PRESENT = datetime(2026, 5, 20, 12, tzinfo=UTC)
WHERE = "https://study.hospital.example"
FULL = Reply({"accuracy": 4, "completeness": 3, "clarity": 5})


class Inbox:
    """What a mail server took, and what was said to it."""

    def __init__(self) -> None:
        self.messages: list[tuple[list[str], Any]] = []
        self.refused = ""
        self.logins: list[tuple[str, str, bool]] = []

    async def handle_RCPT(self, _server, _session, envelope, address, _):  # noqa: N802 # as aiosmtpd calls it
        """Take an address, or refuse it."""
        if address == self.refused:
            return "550 no such person"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server, _session, envelope):  # noqa: N802
        """Keep a message."""
        message = message_from_bytes(envelope.content, policy=default)
        self.messages.append((envelope.rcpt_tos, message))
        return "250 OK"

    def signed_in(self, server, _session, _envelope, _how, given):
        """Note who signs in, and whether the line is encrypted."""
        encrypted = server.transport.get_extra_info("ssl_object") is not None
        self.logins.append((given.login.decode(), given.password.decode(), encrypted))
        return AuthResult(success=given.password == b"secret")


@pytest.fixture
def inbox() -> Iterator[tuple[Inbox, MailServer]]:
    """Run a mail server on this machine."""
    taken = Inbox()
    running = Controller(taken, hostname="127.0.0.1", port=(port := free_port()))
    running.start()
    yield taken, MailServer("127.0.0.1", "study@hospital.example", port, starttls=False)
    running.stop()


@pytest.fixture
def behind(small_study) -> Engine:
    """Make a study with work given five days ago: dr_a has rated one since, a day ago; dr_b none."""
    invite(small_study, ["dr_a", "dr_b", "dr_c"])
    slots = [Slot(name, n, n) for name in ("dr_a", "dr_b", "dr_c") for n in (1, 2)]
    assign(small_study, slots, seed=0)
    shown = next_task(small_study, 1).task
    submit(small_study, 1, shown.card.code, FULL, 60)
    given(small_study, 5)
    set_email(OPERATOR, small_study, "dr_b", "b@hospital.example")
    return small_study


def given(engine: Engine, days: int) -> None:
    """Let all work have been given so many days ago."""
    at = now() - timedelta(days=days)
    with engine.begin() as connection:
        connection.execute(text("UPDATE assignment SET assigned_at = :at"), {"at": at})


DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("is_so", "also"),
    [
        (False, {}),
        (False, {"open_since": PRESENT - timedelta(minutes=5)}),
        (True, {"open_since": PRESENT - 3 * DAY}),
        (False, {"open_since": PRESENT - 9 * DAY, "last": PRESENT - DAY}),
        (True, {"open_since": PRESENT - 9 * DAY, "last": PRESENT - 4 * DAY}),
        (False, {"last": PRESENT - 40 * DAY}),  # new work
        (False, {"open_since": PRESENT - 9 * DAY, "done": 3}),
        (False, {"open_since": PRESENT - 9 * DAY, "ended": True}),
        (False, {"open_since": PRESENT - 9 * DAY, "simulated": True}),
    ],
)
def test_due_is_who_has_open_work_that_was_given_days_ago_and_ended_none_since(is_so, also):
    counts = dict.fromkeys(("done", "unrated", "recused", "flagged", "elsewhere"), 0)
    who: dict[str, Any] = {"handle": "dr_a", "simulated": False, "ended": False}
    times = {"last": None, "open_since": PRESENT, "seconds": None}
    assert is_due(Workload(**{**counts, **who, **times, "total": 3, **also}), PRESENT, 3) is is_so


def test_the_study_says_after_how_many_days(behind):
    assert due(OPERATOR, behind, now() - 4 * DAY, WHERE) == []
    assert [one.name for one in due(OPERATOR, behind, now(), WHERE)] == ["dr_b", "dr_c"]
    set_setting(behind, "remind_days", "6")
    assert due(OPERATOR, behind, now(), WHERE) == []


def test_one_message_a_person_with_no_score_and_nothing_of_a_patient(behind, inbox):
    taken, server = inbox
    found = due(OPERATOR, behind, now(), WHERE)
    assert send(OPERATOR, behind, server, found) == ["dr_b"]  # dr_c has no address
    [(to, message)] = taken.messages
    assert to == ["b@hospital.example"]
    assert (message["To"], message["From"]) == ("b@hospital.example", "study@hospital.example")
    body = message.get_content()
    assert "2 of your 2 responses are still open" in body
    assert WHERE in body
    for private in ("dr_a", "dr_c", "fever", "Pain", "accuracy", "visits", "model-"):
        assert private not in body + message["Subject"]


def test_a_reminder_is_recorded_and_not_sent_again_before_its_time(behind, inbox):
    _, server = inbox
    dated_back = verify(behind).findings  # by the fixture, behind the record's back
    send(OPERATOR, behind, server, due(OPERATOR, behind, now(), WHERE))
    [event] = acts(behind, "reminder sent")
    assert event.detail == {"account": 2}
    assert verify(behind).findings == dated_back
    assert [one.name for one in due(OPERATOR, behind, now(), WHERE)] == ["dr_c"]
    later = now() + timedelta(days=4)
    assert "dr_b" in [one.name for one in due(OPERATOR, behind, later, WHERE)]


def test_a_server_without_encryption_is_sent_nothing_and_what_was_sent_is_recorded(behind, inbox):
    taken, plain = inbox
    server = MailServer(plain.host, plain.sender, plain.port)
    with pytest.raises(BadInput, match="STARTTLS"):
        send(OPERATOR, behind, server, due(OPERATOR, behind, now(), WHERE))
    assert taken.messages == []
    taken, server = inbox
    set_email(OPERATOR, behind, "dr_c", "c@hospital.example")
    taken.refused = "c@hospital.example"
    with pytest.raises(BadInput, match="sent before: dr_b"):
        send(OPERATOR, behind, server, due(OPERATOR, behind, now(), WHERE))
    assert len(acts(behind, "reminder sent")) == 1


def test_a_password_goes_only_over_an_encrypted_line(behind, tmp_path, monkeypatch):
    certificate, key = self_signed(tmp_path, "mail")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    taken = Inbox()
    place = {"hostname": "127.0.0.1", "port": (port := free_port()), "tls_context": context}
    asked = {"require_starttls": True, "authenticator": taken.signed_in, "auth_required": True}
    running = Controller(taken, **place, **asked)
    running.start()
    try:
        server = MailServer("127.0.0.1", "study@hospital.example", port, True, "study", "secret")
        found = due(OPERATOR, behind, now(), WHERE)
        with pytest.raises(BadInput, match="certificate"):
            send(OPERATOR, behind, server, found)
        assert (taken.messages, taken.logins) == ([], [])
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert send(OPERATOR, behind, server, found) == ["dr_b"]
        assert taken.logins == [("study", "secret", True)]
    finally:
        running.stop()


def test_the_server_is_configured_by_a_file_and_the_environment_goes_before_it(tmp_path):
    assert mail_server({}) is None
    path = tmp_path / "mail.toml"
    path.write_text('host = "smtp.a"\nport = 25\nstarttls = true\nuser = "u"\nsender = "s@a"\n')
    told = {"MEDJURY_SMTP": str(path), "MEDJURY_SMTP_HOST": "smtp.b", "MEDJURY_SMTP_PASSWORD": "p"}
    assert mail_server(told) == MailServer("smtp.b", "s@a", 25, True, "u", "p")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('host = "a"', "give sender"),
        ('host = "a"\nsender = "s"\nport = 0', "port '0'"),
        ('host = "a"\nsender = "s"\nstarttls = "maybe"', "neither true nor false"),
        ('host = "a"\nsender = "s"\nstarttls = false\nuser = "u"', "never sent over a line"),
        ('host = "a"\nsender = "s"\npassword = "p"', "holds a password"),
        ('host = "a"\nsender = "s"\nproxy = "p"', "proxy is not known"),
        ("host =", "cannot be read"),
    ],
)
def test_a_configuration_that_is_wrong_is_refused_with_what_to_do(tmp_path, body, told):
    path = tmp_path / "mail.toml"
    path.write_text(body, "utf-8")
    with pytest.raises(BadInput, match=told):
        mail_server({"MEDJURY_SMTP": str(path)})


def test_texts_are_printed_or_sent_by_a_server(behind, run, inbox, tmp_path, monkeypatch):
    taken, server = inbox
    code, said, _ = run("rate", "remind", "--url", WHERE)
    assert code == 0
    assert "2 clinicians" in said
    assert "Dear dr_c" in said
    assert run("rate", "remind", "--send")[0] == 2
    settings = {"HOST": server.host, "PORT": server.port, "SENDER": server.sender}
    settings["STARTTLS"] = False
    for name, value in settings.items():
        monkeypatch.setenv(f"MEDJURY_SMTP_{name}", str(value).lower())
    to = tmp_path / "sent.json"
    assert run("rate", "remind", "--send", "--url", WHERE, "--json", str(to))[0] == 0
    body = json.loads(to.read_text("utf-8"))
    assert (body["sent"], [one["name"] for one in body["due"]]) == (["dr_b"], ["dr_b", "dr_c"])
    assert len(taken.messages) == 1

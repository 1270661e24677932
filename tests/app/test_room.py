"""The rating room without a browser: who is answered, what is shown, kept and refused."""

import asyncio
import http.client
import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from kit.rating_study import (
    FULL,
    build,
    codes_of,
    message,
    person_of,
    row,
    rubric,
    scores_of,
    session_of,
    task_of,
)
from sqlalchemy import Engine
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from annotate.rating import room
from annotate.rating.answers import CHANGED, CLOSED, Answer, take_in
from annotate.rating.requests import CONSENT_FIRST, LONGEST_BODY, PATH, about, routes
from annotate.server import LARGEST_MESSAGE, settings
from data.description import Description
from data.errors import NoStudy
from data.person import OPERATOR, Person
from data.schema import Role
from data.study import people
from data.study.assignments import Slot, assign, recuse
from data.study.people import add_people, end_access
from data.study.responses import import_responses
from data.study.settings import describe, lock, set_setting
from data.study.verify import acts

ROOT = Path(__file__).parents[2]
ANSWER = {"code", "seq", "version", "error", "busy", "stale"}
POSTED = (PATH, *(f"{PATH}/{act}" for act in ("show", "read", "back", "consent")))
Headers = dict[str, str]


@pytest.fixture(scope="module")
def invited(study: Engine) -> Person:
    """Make the study once that each test has a copy of, and return dr-a."""
    rows = [row(1, "No fever.", reference="The reference."), row(2, "Has fever.")]
    codes = build(study, rows, ["dr-a", "dr-b"], rubric(name="rubric_hidden"))
    return person_of(study, codes["dr-a"])


@pytest.fixture
def client(engine: Engine) -> Iterator[TestClient]:
    with TestClient(Starlette(routes=routes(engine)), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def signed(engine: Engine, me: Person) -> Headers:
    """Return the headers of dr-a's session."""
    return {"Cookie": session_of(engine, me)}


@pytest.fixture
def mine(engine: Engine, me: Person) -> str:
    """Return the code of the first response that dr-a has to rate."""
    return codes_of(engine, "dr-a")[0]


def kept(engine: Engine, rater: int, code: str) -> tuple[int, dict[str, Any]]:
    """Return the number of the stored state of a response, and the state."""
    task = task_of(engine, rater, code)
    return task.draft_seq, dict(task.draft)


def drawn(app: AppTest) -> str:
    """Return everything that Streamlit was sent, as text."""
    return "\n".join(str(one.proto) for one in app.main)


def told(shown: Mapping[str, Any]) -> str:
    """Return what a page is sent, as text."""
    return json.dumps(shown, ensure_ascii=False)


def test_streamlit_draws_one_component_and_nothing_of_the_study(screen: Any, me: Person) -> None:
    page = screen("rate", me).run()
    assert not page.exception
    [component] = page.get("bidi_component")
    assert json.loads(component.proto.json) == []
    assert "fever" not in drawn(page)


@pytest.mark.usefixtures("me", "serve")
def test_without_a_session_the_entry_page_shows_only_the_way_to_sign_in() -> None:
    app = AppTest.from_file(str(ROOT / "annotate" / "app.py")).run(timeout=30)
    assert "/login" in drawn(app)
    assert "fever" not in drawn(app)


def test_the_settings_in_the_package_and_at_the_root_are_the_same() -> None:
    root = (ROOT / ".streamlit" / "config.toml").read_text("utf-8")
    assert (ROOT / "annotate" / "streamlit.toml").read_text("utf-8") == root
    assert settings()["server.address"] == tomllib.loads(root)["server"]["address"]
    assert settings()["server.maxWidgetStateSize"] * 1_000_000 == LARGEST_MESSAGE
    assert settings()["runner.postScriptGC"] is False
    assert settings()["browser.gatherUsageStats"] is False


def test_who_arrives_is_shown_the_first_response_with_nothing_preset(
    signed: Headers, client: TestClient
) -> None:
    answer = client.get(PATH, headers=signed)
    assert (answer.status_code, answer.headers["cache-control"]) == (http.client.OK, "no-store")
    assert answer.json()["room"]["who"] == "dr-a"
    shown = answer.json()["shown"]
    assert (shown["stage"], shown["progress"]) == ("rate", {"done": 0, "total": 2})
    assert "No fever." in shown["texts"][-1]["html"]
    assert (shown["entry"]["scores"], shown["entry"]["version"]) == ({}, 0)


def test_a_draft_is_kept_and_answered_with_the_number_of_what_is_stored(
    engine: Engine, signed: Headers, mine: str, client: TestClient
) -> None:
    answer = client.post(PATH, json=message(mine, 3), headers=signed)
    assert answer.status_code == http.client.OK
    expected = {"code": mine, "seq": 3, "version": 1, "error": "", "busy": False, "stale": False}
    assert answer.json() == expected
    number, draft = kept(engine, 1, mine)
    assert (number, draft["seq"], draft["scores"]) == (1, 3, FULL)
    assert scores_of(engine, "dr-a") == []


def test_one_request_stores_a_rating_and_is_answered_with_the_next_response(
    engine: Engine, signed: Headers, client: TestClient
) -> None:
    first, second = codes_of(engine, "dr-a")
    answer = client.post(PATH, json=message(first, submit=True), headers=signed).json()
    assert len(scores_of(engine, "dr-a")) == len(FULL)
    assert (answer["error"], answer["shown"]["code"]) == ("", second)
    assert answer["shown"]["progress"] == {"done": 1, "total": 2}
    shown = client.post(PATH, json=message(second, submit=True), headers=signed).json()["shown"]
    assert (shown["stage"], shown["title"]) == ("note", "Thank you")
    back = client.post(f"{PATH}/back", json={"code": shown["back"]}, headers=signed).json()
    assert (back["shown"]["code"], bool(back["shown"]["rated"])) == (second, True)


def test_a_page_that_does_not_know_the_newest_state_is_refused_and_told_what_is_stored(
    engine: Engine, signed: Headers, mine: str, client: TestClient
) -> None:
    client.post(PATH, json=message(mine, 5, base=0, comment="new", by="page2"), headers=signed)
    client.post(PATH, json=message(mine, 6, base=1, by="page2", submit=True), headers=signed)
    rated = scores_of(engine, "dr-a")
    sent = message(mine, 4, base=0, scores=FULL | {"clarity": 1})
    for submit in (False, True):
        answer = client.post(PATH, json=sent | {"submit": submit}, headers=signed).json()
        assert (answer["error"], answer["stale"], answer["version"]) == (CHANGED, True, None)
        assert not answer["busy"]
        stored = answer["stored"]
        assert (stored["by"], stored["scores"], stored["version"]) == ("page2", FULL, 2)
        assert "shown" not in answer
    assert scores_of(engine, "dr-a") == rated
    knowing = sent | {"base": 2, "submit": True}
    assert client.post(PATH, json=knowing, headers=signed).json()["error"] == ""
    assert len(scores_of(engine, "dr-a")) == 2 * len(rated)


def test_nobody_keeps_a_draft_of_a_response_that_is_not_theirs(
    engine: Engine, signed: Headers, client: TestClient
) -> None:
    theirs = codes_of(engine, "dr-b")[0]
    for submit in (False, True):
        answer = client.post(PATH, json=message(theirs, submit=submit), headers=signed).json()
        assert "not assigned to you" in answer["error"]
        assert set(answer) == ANSWER
        assert answer["version"] is None
    for path in ("show", "back"):
        asked = {"code": theirs, "name": "reference"}
        assert theirs not in client.post(f"{PATH}/{path}", json=asked, headers=signed).text
    assert kept(engine, 2, theirs) == (0, {})
    assert scores_of(engine, "dr-b") == []


@pytest.mark.parametrize("way", ["none", "forged", "ended", "of who steers"])
def test_without_a_clinicians_session_nothing_is_kept_or_said(
    engine: Engine, signed: Headers, mine: str, client: TestClient, way: str
) -> None:
    headers = signed
    if way == "none":
        headers = {}
    elif way == "forged":
        headers = {"Cookie": headers["Cookie"][:-3] + "AAA"}
    elif way == "ended":
        end_access(OPERATOR, engine, "dr-a")
    else:
        boss = person_of(engine, add_people(OPERATOR, engine, ["boss"], Role.COORDINATOR)[0].code)
        headers = {"Cookie": session_of(engine, boss)}
    posted = [client.post(path, json=message(mine), headers=headers) for path in POSTED]
    for answer in (client.get(PATH, headers=headers), *posted):
        assert (answer.status_code, answer.content) == (http.client.UNAUTHORIZED, b"")
    assert kept(engine, 1, mine) == (0, {})


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"\xff", b"{" + b" " * LONGEST_BODY + b"}", b"[" * 60_000]
)
def test_what_is_no_message_is_refused(signed: Headers, client: TestClient, body: bytes) -> None:
    for path in POSTED:
        answer = client.post(path, content=body, headers=signed)
        assert answer.status_code == http.client.BAD_REQUEST


@pytest.mark.parametrize(
    "read",
    [{}, {"read": 1}, {"stage": "feedback"}, {"stage": "feedback", "read": "1"}]
    + [{"stage": "outcome", "read": one} for one in (True, 1.0, 2**31, -(2**31))]
    + [{"stage": "rate", "read": 1}],
)
def test_what_was_not_read_is_not_noted(
    signed: Headers, client: TestClient, read: dict[str, object]
) -> None:
    answer = client.post(f"{PATH}/read", json=read, headers=signed)
    assert answer.status_code == http.client.BAD_REQUEST


def test_a_line_that_is_cut_in_a_message_leaves_no_trace(
    engine: Engine, signed: Headers, mine: str, caplog: pytest.LogCaptureFixture
) -> None:
    half = json.dumps(message(mine, submit=True)).encode()[:-9]
    heard = iter([{"type": "http.request", "body": half, "more_body": True}])

    async def receive() -> dict[str, object]:
        return next(heard, {"type": "http.disconnect"})

    async def send(_: object) -> None:
        pass

    headers = [(name.lower().encode(), value.encode()) for name, value in signed.items()]
    scope = {"type": "http", "method": "POST", "path": PATH, "query_string": b""}
    served = Starlette(routes=routes(engine))
    asyncio.run(served(scope | {"headers": headers}, receive, send))  # type: ignore[arg-type]
    assert kept(engine, 1, mine) == (0, {})
    assert scores_of(engine, "dr-a") == []
    assert caplog.text == ""


def test_another_site_cannot_keep_a_draft(
    engine: Engine, signed: Headers, mine: str, client: TestClient
) -> None:
    for path in POSTED:
        headers = signed | {"Sec-Fetch-Site": "cross-site"}
        answer = client.post(path, json=message(mine), headers=headers)
        assert answer.status_code == http.client.FORBIDDEN
    assert kept(engine, 1, mine) == (0, {})


def test_a_response_that_is_seen_is_recorded_and_a_reference_when_it_is_asked_for(
    engine: Engine, signed: Headers, mine: str, client: TestClient
) -> None:
    for _ in range(2):
        assert "The reference." not in client.get(PATH, headers=signed).text
    task = task_of(engine, 1, mine)
    assert (task.opened, task.reference_opened) == (True, False)
    asked = {"code": mine, "name": "reference"}
    shown = client.post(f"{PATH}/show", json=asked, headers=signed).json()
    assert "The reference." in shown["html"]
    assert task_of(engine, 1, mine).reference_opened
    assert "The reference." in client.get(PATH, headers=signed).text


def test_a_hidden_reference_is_not_offered_and_cannot_be_asked_for(
    engine: Engine, signed: Headers, mine: str, client: TestClient
) -> None:
    set_setting(engine, "reference", "hidden")
    shown = client.get(PATH, headers=signed).json()["shown"]
    assert [one["name"] for one in shown["texts"]] == ["task", "source", "response"]
    assert "The reference." not in told(shown)
    for name in ("reference", "context", "author"):
        asked = {"code": mine, "name": name}
        answer = client.post(f"{PATH}/show", json=asked, headers=signed)
        assert (answer.status_code, answer.content) == (http.client.NOT_FOUND, b"")


def test_after_rating_the_reference_is_shown_once_and_recorded(
    engine: Engine, me: Person, mine: str
) -> None:
    set_setting(engine, "reference", "after_rating")
    assert "The reference." not in told(room.shown(engine, me))
    assert room.opened(engine, me, mine, "reference") is None
    shown = room.shown(engine, me, take_in(engine, me, message(mine, submit=True)))
    assert (shown["code"], shown["mode"]) == (mine, "after")
    assert "The reference." in told(shown)
    assert task_of(engine, me.id, mine).reference_opened
    shown = room.shown(engine, me, take_in(engine, me, message(mine, 2, go="next")))
    assert (shown["code"], shown["mode"]) == (codes_of(engine, "dr-a")[1], "rate")
    assert "The reference." not in told(shown)


def test_the_way_back_shows_what_was_entered_and_when_it_was_rated(
    engine: Engine, me: Person
) -> None:
    first, second = codes_of(engine, "dr-a")
    assert not room.shown(engine, me)["previous"]
    take_in(engine, me, message(first, comment="fine", submit=True))
    assert room.shown(engine, me)["previous"]
    back = room.shown(engine, me, take_in(engine, me, message(second, go="previous")))
    assert back["code"] == first
    assert (back["entry"]["scores"], back["entry"]["comment"]) == (FULL, "fine")
    assert (bool(back["rated"]), back["previous"], back["unsent"]) == (True, False, False)
    take_in(engine, me, message(first, 2, comment="changed"))
    assert room.shown(engine, me, Answer("", 0, 0, at=first))["unsent"]


def test_who_is_done_takes_a_place_that_another_gave_back(engine: Engine, me: Person) -> None:
    import_responses(engine, [row(3, "Free place.")], lambda _: rubric(name="rubric_hidden"))
    assign(engine, [Slot("dr-b", 3, 9)], seed=0, per_response=1)
    recuse(engine, me.id + 1, codes_of(engine, "dr-b")[2], "I know this patient")
    for code in codes_of(engine, "dr-a"):
        take_in(engine, me, message(code, submit=True))
    for _ in range(2):
        shown = room.shown(engine, me)
        assert "Free place." in told(shown)
        assert shown["progress"] == {"done": 2, "total": 3}


def test_a_study_offers_its_own_types_of_error(engine: Engine, me: Person, mine: str) -> None:
    set_setting(engine, "error_types", "dose,left out")
    shown = room.shown(engine, me)
    assert shown["errors"] == ["dose", "left out"]
    assert shown["severities"] == ["minor", "major", "critical"]
    mark = {"criterion": "accuracy", "start": 0, "end": 2}
    for error, says in (("wrong", "marks are dose, left out"), ("left out", "")):
        assert says in take_in(engine, me, message(mine, spans=[mark | {"error": error}])).error
    assert room.shown(engine, me)["entry"]["spans"][0]["error"] == "left out"


def test_what_the_page_is_sent_names_no_author_score_or_rater(engine: Engine, me: Person) -> None:
    sent = [told(room.arrival(engine, me))]
    for code in codes_of(engine, "dr-a"):
        room.opened(engine, me, code, "reference")
        answer = take_in(engine, me, message(code, submit=True))
        sent += [told(about(answer)), told(room.shown(engine, me, answer))]
    hidden = ["gpt-9", "llama", "resp-", "inst-", "bench_hidden", "rubric_hidden", "dr-b"]
    assert [one for one in hidden if one in "".join(sent)] == []


def test_a_locked_study_takes_nothing_and_says_so(
    engine: Engine, signed: Headers, mine: str, client: TestClient
) -> None:
    lock(engine, "coordinator")
    for submit in (False, True):
        answer = client.post(PATH, json=message(mine, submit=submit), headers=signed).json()
        assert (answer["error"], answer["busy"], answer["version"]) == (CLOSED, False, None)
    shown = client.get(PATH, headers=signed).json()["shown"]
    assert (shown["stage"], "This study is locked" in shown["text"]) == ("note", True)


def test_before_consent_nothing_is_shown_or_taken_and_after_it_all_is(
    engine: Engine, signed: Headers, mine: str, client: TestClient
) -> None:
    said = Description("Notes", "Why", "Dr. L", "l@h.example", "I agree to this.", "Read.")
    describe(engine, said, "coordinator")
    arrived = client.get(PATH, headers=signed)
    assert arrived.json()["shown"]["stage"] == "consent"
    assert ("I agree to this." in arrived.text, "fever" in arrived.text) == (True, False)
    for submit in (False, True):
        answer = client.post(PATH, json=message(mine, submit=submit), headers=signed).json()
        assert (answer["error"], answer["version"]) == (CONSENT_FIRST, None)
    assert kept(engine, 1, mine) == (0, {})
    other = client.post(f"{PATH}/consent", json={"sha256": "0" * 64}, headers=signed).json()
    assert other["shown"]["stage"] == "consent"
    own = {"sha256": said.consent_sha256}
    agreed = client.post(f"{PATH}/consent", json=own, headers=signed).json()
    assert (agreed["shown"]["stage"], agreed["shown"]["code"]) == ("rate", mine)
    assert [one.detail["rater"] for one in acts(engine, "consent given")] == [1]


def test_a_study_that_cannot_be_reached_is_said_so_that_the_page_tries_again(
    signed: Headers, mine: str, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object) -> None:
        raise NoStudy("study x: database is locked")

    monkeypatch.setattr(people, "session_state", unreachable)
    posted = client.post(PATH, json=message(mine), headers=signed)
    for answer in (posted, client.get(PATH, headers=signed)):
        assert (answer.status_code, answer.content) == (http.client.SERVICE_UNAVAILABLE, b"")

"""The rating room's own line: who is answered, what is kept, and what the page is shown next."""

import asyncio
import http.client
import json
from collections.abc import Iterator
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
)
from kit.study_place import fill
from sqlalchemy import Engine
from starlette.applications import Starlette
from starlette.testclient import TestClient

from annotate.rating.answers import CHANGED, CLOSED, OFF
from annotate.rating.requests import CONSENT_FIRST, LONGEST_BODY, PATH, routes
from data.description import Description
from data.errors import NoStudy
from data.person import OPERATOR
from data.schema import Role
from data.study import people, room
from data.study.people import add_people, end_access
from data.study.settings import describe, lock, set_setting
from data.study.verify import acts

ANSWER = {"code", "seq", "version", "error", "busy", "stale"}
POSTED = (PATH, *(f"{PATH}/{act}" for act in ("show", "read", "back", "consent")))


@pytest.fixture(scope="module")
def invited(study: Engine) -> dict[str, str]:
    """Make the study once that each test has a copy of."""
    rows = [row(1, "No fever.", reference="The reference."), row(2, "Knee pain.")]
    return build(study, rows, ["dr-a", "dr-b"], rubric())


@pytest.fixture
def codes(engine: Engine, study: Engine, invited: dict[str, str]) -> dict[str, str]:
    fill(engine, study)
    return invited


@pytest.fixture
def client(engine: Engine) -> Iterator[TestClient]:
    with TestClient(Starlette(routes=routes(engine)), raise_server_exceptions=False) as client:
        yield client


def cookie(engine: Engine, code: str) -> dict[str, str]:
    return {"Cookie": session_of(engine, person_of(engine, code))}


@pytest.fixture
def signed(engine: Engine, codes: dict[str, str]) -> dict[str, str]:
    """Return the headers of dr-a's session."""
    return cookie(engine, codes["dr-a"])


def kept(engine: Engine, rater: int, code: str) -> tuple[int, dict[str, Any]]:
    """Return the number of the stored state of a response, and the state."""
    task = room.task(engine, rater, code)
    assert task is not None
    return task.draft_seq, dict(task.draft)


def test_who_arrives_is_shown_the_first_response_with_nothing_preset(
    signed: dict[str, str], client: TestClient
) -> None:
    answer = client.get(PATH, headers=signed)
    assert (answer.status_code, answer.headers["cache-control"]) == (http.client.OK, "no-store")
    told = answer.json()
    assert told["room"]["who"] == "dr-a"
    shown = told["shown"]
    assert (shown["stage"], shown["progress"]) == ("rate", {"done": 0, "total": 2})
    assert "No fever." in shown["texts"][-1]["html"]
    assert (shown["entry"]["scores"], shown["entry"]["version"]) == ({}, 0)


def test_a_draft_is_kept_and_answered_with_the_number_of_what_is_stored(
    engine: Engine, signed: dict[str, str], client: TestClient
) -> None:
    mine = codes_of(engine, "dr-a")[0]
    answer = client.post(PATH, json=message(mine, 3), headers=signed)
    assert answer.status_code == http.client.OK
    told = answer.json()
    assert set(told) == ANSWER
    assert told == {
        "code": mine,
        "seq": 3,
        "version": 1,
        "error": "",
        "busy": False,
        "stale": False,
    }
    number, draft = kept(engine, 1, mine)
    assert (number, draft["seq"], draft["scores"]) == (1, 3, FULL)
    assert scores_of(engine, "dr-a") == []


def test_one_request_stores_a_rating_and_is_answered_with_the_next_response(
    engine: Engine, signed: dict[str, str], client: TestClient
) -> None:
    first, second = codes_of(engine, "dr-a")
    told = client.post(PATH, json=message(first, submit=True), headers=signed).json()
    assert len(scores_of(engine, "dr-a")) == len(FULL)
    assert (told["error"], told["shown"]["code"]) == ("", second)
    assert told["shown"]["progress"] == {"done": 1, "total": 2}
    told = client.post(PATH, json=message(second, submit=True), headers=signed).json()
    assert (told["shown"]["stage"], told["shown"]["title"]) == ("note", "Thank you")
    back = client.post(f"{PATH}/back", json={"code": told["shown"]["back"]}, headers=signed).json()
    assert back["shown"]["code"] == second
    assert back["shown"]["rated"]


def test_a_stale_page_is_refused_and_told_what_is_stored(
    engine: Engine, signed: dict[str, str], client: TestClient
) -> None:
    mine = codes_of(engine, "dr-a")[0]
    client.post(PATH, json=message(mine, 5, base=0, comment="new", by="page2"), headers=signed)
    client.post(PATH, json=message(mine, 6, base=1, by="page2", submit=True), headers=signed)
    rated = scores_of(engine, "dr-a")
    for submit in (False, True):
        other = FULL | {"clarity": 1}
        sent = message(mine, 4, base=0, scores=other, submit=submit)
        told = client.post(PATH, json=sent, headers=signed).json()
        assert (told["error"], told["stale"], told["version"]) == (CHANGED, True, None)
        stored = told["stored"]
        assert (stored["by"], stored["scores"], stored["version"]) == ("page2", FULL, 2)
        assert "shown" not in told
    assert scores_of(engine, "dr-a") == rated


def test_a_draft_that_comes_after_its_submission_leaves_the_rating_alone(
    engine: Engine, signed: dict[str, str], client: TestClient
) -> None:
    mine = codes_of(engine, "dr-a")[0]
    client.post(PATH, json=message(mine, 9, base=0, submit=True), headers=signed)
    rated = scores_of(engine, "dr-a")
    late = message(mine, 8, base=0, scores={"accuracy": 1})
    told = client.post(PATH, json=late, headers=signed).json()
    assert (told["error"], told["version"]) == ("", 1)
    assert kept(engine, 1, mine)[1]["scores"] == FULL
    assert scores_of(engine, "dr-a") == rated


def test_nobody_keeps_a_draft_of_a_response_that_is_not_theirs(
    engine: Engine, signed: dict[str, str], client: TestClient
) -> None:
    theirs = codes_of(engine, "dr-b")[0]
    told = client.post(PATH, json=message(theirs), headers=signed).json()
    assert "not assigned to you" in told["error"]
    assert set(told) == ANSWER
    assert told["version"] is None
    for path in ("show", "back"):
        asked = {"code": theirs, "name": "reference"}
        answer = client.post(f"{PATH}/{path}", json=asked, headers=signed)
        assert theirs not in answer.text
    assert kept(engine, 2, theirs) == (0, {})


@pytest.mark.parametrize("way", ["none", "forged", "ended"])
def test_without_a_session_nothing_is_kept_or_said(
    engine: Engine, signed: dict[str, str], client: TestClient, way: str
) -> None:
    mine, headers = codes_of(engine, "dr-a")[0], signed
    if way == "none":
        headers = {}
    elif way == "forged":
        headers = {"Cookie": headers["Cookie"][:-3] + "AAA"}
    else:
        end_access(OPERATOR, engine, "dr-a")
    posted = [client.post(path, json=message(mine), headers=headers) for path in POSTED]
    for answer in (client.get(PATH, headers=headers), *posted):
        assert (answer.status_code, answer.content) == (http.client.UNAUTHORIZED, b"")
    assert kept(engine, 1, mine) == (0, {})


def test_who_steers_rates_nothing(
    engine: Engine, codes: dict[str, str], client: TestClient
) -> None:
    boss = add_people(OPERATOR, engine, ["boss"], Role.COORDINATOR)[0].code
    mine, headers = codes_of(engine, "dr-a")[0], cookie(engine, boss)
    posted = [client.post(path, json=message(mine), headers=headers) for path in POSTED]
    for answer in (client.get(PATH, headers=headers), *posted):
        assert (answer.status_code, answer.content) == (http.client.UNAUTHORIZED, b"")


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"\xff", b"{" + b" " * LONGEST_BODY + b"}", b"[" * 60_000]
)
def test_what_is_no_message_is_refused(
    signed: dict[str, str], client: TestClient, body: bytes
) -> None:
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
    signed: dict[str, str], client: TestClient, read: dict[str, object]
) -> None:
    answer = client.post(f"{PATH}/read", json=read, headers=signed)
    assert answer.status_code == http.client.BAD_REQUEST


def test_a_line_that_is_cut_in_a_message_leaves_no_trace(
    engine: Engine, signed: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    mine = codes_of(engine, "dr-a")[0]
    half = json.dumps(message(mine, submit=True)).encode()[:-9]
    heard = iter([{"type": "http.request", "body": half, "more_body": True}])

    async def receive() -> dict[str, object]:
        return next(heard, {"type": "http.disconnect"})

    async def send(_: object) -> None:
        pass

    headers = [(name.lower().encode(), value.encode()) for name, value in signed.items()]
    scope = {
        "type": "http",
        "method": "POST",
        "path": PATH,
        "headers": headers,
        "query_string": b"",
    }
    asyncio.run(Starlette(routes=routes(engine))(scope, receive, send))  # type: ignore[arg-type]
    assert kept(engine, 1, mine) == (0, {})
    assert scores_of(engine, "dr-a") == []
    assert caplog.text == ""


def test_another_site_cannot_keep_a_draft(
    engine: Engine, signed: dict[str, str], client: TestClient
) -> None:
    mine = codes_of(engine, "dr-a")[0]
    for path in POSTED:
        headers = signed | {"Sec-Fetch-Site": "cross-site"}
        answer = client.post(path, json=message(mine), headers=headers)
        assert answer.status_code == http.client.FORBIDDEN
    assert kept(engine, 1, mine) == (0, {})


def test_a_draft_off_the_scale_is_refused_in_words_and_kept_nowhere(
    engine: Engine, signed: dict[str, str], client: TestClient
) -> None:
    mine = codes_of(engine, "dr-a")[0]
    told = client.post(PATH, json=message(mine, scores={"accuracy": 99}), headers=signed).json()
    assert (told["error"], told["version"]) == (OFF, None)
    assert kept(engine, 1, mine) == (0, {})


def test_a_reference_is_sent_and_recorded_only_when_it_is_asked_for(
    engine: Engine, signed: dict[str, str], client: TestClient
) -> None:
    mine = codes_of(engine, "dr-a")[0]
    assert "The reference." not in client.get(PATH, headers=signed).text
    asked = {"code": mine, "name": "reference"}
    told = client.post(f"{PATH}/show", json=asked, headers=signed).json()
    assert "The reference." in told["html"]
    task = room.task(engine, 1, mine)
    assert task is not None
    assert task.reference_opened
    assert "The reference." in client.get(PATH, headers=signed).text


def test_a_hidden_reference_cannot_be_asked_for(
    engine: Engine, signed: dict[str, str], client: TestClient
) -> None:
    set_setting(engine, "reference", "hidden")
    mine = codes_of(engine, "dr-a")[0]
    for name in ("reference", "context", "author"):
        asked = {"code": mine, "name": name}
        answer = client.post(f"{PATH}/show", json=asked, headers=signed)
        assert (answer.status_code, answer.content) == (http.client.NOT_FOUND, b"")


def test_a_locked_study_takes_nothing_and_says_so(
    engine: Engine, signed: dict[str, str], client: TestClient
) -> None:
    mine = codes_of(engine, "dr-a")[0]
    lock(engine, "coordinator")
    for submit in (False, True):
        told = client.post(PATH, json=message(mine, submit=submit), headers=signed).json()
        assert (told["error"], told["busy"], told["version"]) == (CLOSED, False, None)
    shown = client.get(PATH, headers=signed).json()["shown"]
    assert (shown["stage"], "This study is locked" in shown["text"]) == ("note", True)


def test_before_consent_nothing_is_shown_or_taken_and_after_it_all_is(
    engine: Engine, signed: dict[str, str], client: TestClient
) -> None:
    told = Description("Notes", "Why", "Dr. L", "l@h.example", "I agree to this.", "Read.")
    describe(engine, told, "coordinator")
    mine = codes_of(engine, "dr-a")[0]
    arrived = client.get(PATH, headers=signed)
    assert arrived.json()["shown"]["stage"] == "consent"
    assert ("I agree to this." in arrived.text, "fever" in arrived.text) == (True, False)
    for submit in (False, True):
        answer = client.post(PATH, json=message(mine, submit=submit), headers=signed).json()
        assert (answer["error"], answer["version"]) == (CONSENT_FIRST, None)
    assert kept(engine, 1, mine) == (0, {})
    other = client.post(f"{PATH}/consent", json={"sha256": "0" * 64}, headers=signed).json()
    assert other["shown"]["stage"] == "consent"
    own = {"sha256": told.consent_sha256}
    agreed = client.post(f"{PATH}/consent", json=own, headers=signed).json()
    assert (agreed["shown"]["stage"], agreed["shown"]["code"]) == ("rate", mine)
    assert [one.detail["rater"] for one in acts(engine, "consent given")] == [1]


def test_a_study_that_cannot_be_reached_is_said_so_that_the_page_tries_again(
    engine: Engine, signed: dict[str, str], client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = codes_of(engine, "dr-a")[0]

    def unreachable(*_: object) -> None:
        raise NoStudy("study x: database is locked")

    monkeypatch.setattr(people, "session_state", unreachable)
    for answer in (
        client.post(PATH, json=message(mine), headers=signed),
        client.get(PATH, headers=signed),
    ):
        assert (answer.status_code, answer.content) == (http.client.SERVICE_UNAVAILABLE, b"")

"""Drafts by a request of their own: whose they are, what is kept, and what the answer says."""

import http.client
import json
from collections.abc import Iterator

import pytest
from annotate.drafts import LONGEST_BODY, PATH, routes
from annotate.replies import form_data
from rating_server import build, codes_of, message, row, rubric, scores_of
from sqlalchemy import Engine
from starlette.applications import Starlette
from starlette.testclient import TestClient
from study_place import fill

from annotate import sessions
from data import queries, store
from data.card import Reply
from data.errors import NoStudy
from data.person import OPERATOR
from data.queries import person_by_code
from data.store.people import end_access

TOLD = {"code", "answer", "seq", "by", "scores", "comment", "spans", "flags"}


@pytest.fixture(scope="module")
def invited(study: Engine) -> dict[str, str]:
    """Make the study once that each test has a copy of."""
    rows = [row(1, "No fever."), row(2, "Knee pain.")]
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
    person = person_by_code(engine, code)
    assert person is not None
    return {"Cookie": f"{sessions.COOKIE}={sessions.issue(engine, person)}"}


def test_a_draft_is_kept_and_answered_with_what_is_stored(
    engine: Engine, codes: dict[str, str], client: TestClient
) -> None:
    mine = codes_of(engine, "dr-a")[0]
    answer = client.post(PATH, json=message(mine, 3), headers=cookie(engine, codes["dr-a"]))
    assert answer.status_code == http.client.OK
    told = answer.json()
    assert set(told) == TOLD
    assert told["answer"] == {"code": mine, "seq": 3, "error": "", "again": False}
    assert (told["seq"], told["scores"]) == (3, message(mine)["scores"])
    assert queries.kept(engine, 1, mine)["seq"] == 3
    assert scores_of(engine, "dr-a") == []


def test_an_older_draft_changes_nothing_and_is_answered_with_the_newer_one(
    engine: Engine, codes: dict[str, str], client: TestClient
) -> None:
    mine, signed = codes_of(engine, "dr-a")[0], cookie(engine, codes["dr-a"])
    client.post(PATH, json=message(mine, 5, comment="new", by="page2"), headers=signed)
    told = client.post(PATH, json=message(mine, 4, comment="old"), headers=signed).json()
    assert (told["seq"], told["comment"], told["by"]) == (5, "new", "page2")


def test_a_draft_that_comes_after_its_submission_leaves_the_rating_alone(
    engine: Engine, codes: dict[str, str], client: TestClient
) -> None:
    mine, signed = codes_of(engine, "dr-a")[0], cookie(engine, codes["dr-a"])
    store.submit(engine, 1, mine, Reply({"accuracy": 1, "completeness": 1, "clarity": 1}), 1, seq=9)
    rated = scores_of(engine, "dr-a")
    told = client.post(PATH, json=message(mine, 8), headers=signed).json()
    assert told["seq"] == 9
    assert scores_of(engine, "dr-a") == rated


def test_nobody_keeps_a_draft_of_a_response_that_is_not_theirs(
    engine: Engine, codes: dict[str, str], client: TestClient
) -> None:
    theirs = codes_of(engine, "dr-b")[0]
    told = client.post(PATH, json=message(theirs), headers=cookie(engine, codes["dr-a"])).json()
    assert "not assigned to you" in told["answer"]["error"]
    assert "seq" not in told
    assert queries.kept(engine, 2, theirs)["seq"] == 0


@pytest.mark.parametrize("way", ["none", "forged", "ended"])
def test_without_a_session_nothing_is_kept_or_said(
    engine: Engine, codes: dict[str, str], client: TestClient, way: str
) -> None:
    mine, headers = codes_of(engine, "dr-a")[0], cookie(engine, codes["dr-a"])
    if way == "none":
        headers = {}
    elif way == "forged":
        headers = {"Cookie": headers["Cookie"][:-3] + "AAA"}
    else:
        end_access(OPERATOR, engine, "dr-a")
    for answer in (
        client.post(PATH, json=message(mine), headers=headers),
        client.get(PATH, headers=headers),
    ):
        assert (answer.status_code, answer.content) == (http.client.UNAUTHORIZED, b"")
    assert queries.kept(engine, 1, mine)["seq"] == 0


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        json.dumps(message("x", submit=True)).encode(),
        json.dumps(message("x", go="previous")).encode(),
        b"{" + b" " * LONGEST_BODY + b"}",
        b"[" * 60_000,
    ],
)
def test_what_is_no_draft_is_refused(
    engine: Engine, codes: dict[str, str], client: TestClient, body: bytes
) -> None:
    answer = client.post(PATH, content=body, headers=cookie(engine, codes["dr-a"]))
    assert answer.status_code == http.client.BAD_REQUEST


def test_another_site_cannot_keep_a_draft(
    engine: Engine, codes: dict[str, str], client: TestClient
) -> None:
    headers = cookie(engine, codes["dr-a"]) | {"Sec-Fetch-Site": "cross-site"}
    mine = codes_of(engine, "dr-a")[0]
    answer = client.post(PATH, json=message(mine), headers=headers)
    assert answer.status_code == http.client.FORBIDDEN


def test_a_score_off_the_scale_is_not_shown_back_as_a_choice(
    engine: Engine, codes: dict[str, str], client: TestClient
) -> None:
    mine, signed = codes_of(engine, "dr-a")[0], cookie(engine, codes["dr-a"])
    client.post(PATH, json=message(mine, scores={"accuracy": 99}), headers=signed)
    task = queries.task(engine, 1, mine)
    assert task is not None
    assert form_data(task, None)["scores"] == {}


def test_a_study_that_cannot_be_reached_is_said_so_that_the_page_tries_again(
    engine: Engine, codes: dict[str, str], client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, signed = codes_of(engine, "dr-a")[0], cookie(engine, codes["dr-a"])

    def unreachable(*_: object) -> None:
        raise NoStudy("study x: database is locked")

    reached = client.get(PATH, headers=signed)
    assert (reached.status_code, reached.content) == (http.client.NO_CONTENT, b"")
    monkeypatch.setattr(queries, "person_by_access", unreachable)
    for answer in (
        client.post(PATH, json=message(mine), headers=signed),
        client.get(PATH, headers=signed),
    ):
        assert answer.status_code == http.client.SERVICE_UNAVAILABLE

"""The rating room without a browser: who is answered, what is shown, what is saved once, in order, or refused."""

import asyncio
import http.client
import json
import math
import tomllib
from contextlib import nullcontext
from pathlib import Path

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
from sqlalchemy import update
from sqlmodel import Session, col, select
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from annotate.rating import answers, room
from annotate.rating.answers import CHANGED, CLOSED, LARGEST, take_in
from annotate.rating.requests import CONSENT_FIRST, LONGEST_BODY, PATH, about, routes
from annotate.server import LARGEST_MESSAGE, settings
from data.card import Reply
from data.description import Description
from data.errors import Stale
from data.person import OPERATOR
from data.rubric import low_points
from data.schema import Assignment, Rating, Role, Span, Submission
from data.study.assignments import Slot, assign, recuse
from data.study.people import add_people, end_access
from data.study.ratings import FormState, save_draft, submit
from data.study.responses import import_responses
from data.study.settings import describe, lock, set_setting
from data.study.verify import acts

ROOT = Path(__file__).parents[2]
ANSWER = {"code", "seq", "version", "error", "busy", "stale"}
POSTED = (PATH, *(f"{PATH}/{act}" for act in ("show", "read", "back", "consent")))
MARK = {"criterion": "accuracy", "start": 0, "end": 2, "error": "wrong"}


@pytest.fixture(scope="module")
def invited(study):
    """Make the study once that each test has a copy of, and return dr-a."""
    rows = [row(1, "No fever.", reference="The reference."), row(2, "Has fever.")]
    codes = build(study, rows, ["dr-a", "dr-b"], rubric(name="rubric_hidden"))
    return person_of(study, codes["dr-a"])


@pytest.fixture
def client(engine, me):
    served, headers = Starlette(routes=routes(engine)), {"Cookie": session_of(engine, me)}
    with TestClient(served, headers=headers, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def mine(engine, me):
    return codes_of(engine, "dr-a")[0]


def kept(engine, rater, code):
    """Return the number of the stored state of a response, and the state."""
    task = task_of(engine, rater, code)
    return task.draft_seq, dict(task.draft)


def drawn(app):
    return "\n".join(str(one.proto) for one in app.main)


def told(shown):
    return json.dumps(shown, ensure_ascii=False)


def test_streamlit_draws_one_component_and_nothing_of_the_study(screen, me):
    page = screen("rate", me).run()
    [component] = page.get("bidi_component")
    assert ([*page.exception], json.loads(component.proto.json)) == ([], [])
    assert "fever" not in drawn(page)


@pytest.mark.usefixtures("me", "serve")
def test_without_a_session_the_entry_page_shows_only_the_way_to_sign_in():
    app = AppTest.from_file(str(ROOT / "annotate" / "app.py")).run(timeout=30)
    assert ("/login" in drawn(app), "fever" in drawn(app)) == (True, False)


def test_the_settings_in_the_package_and_at_the_root_are_the_same():
    root = (ROOT / ".streamlit" / "config.toml").read_text("utf-8")
    assert (ROOT / "annotate" / "streamlit.toml").read_text("utf-8") == root
    present = settings()
    assert present["server.address"] == tomllib.loads(root)["server"]["address"]
    assert present["server.maxWidgetStateSize"] * 1_000_000 == LARGEST_MESSAGE
    assert (present["runner.postScriptGC"], present["browser.gatherUsageStats"]) == (False, False)


def test_who_arrives_is_shown_the_first_response_with_nothing_preset(client):
    answer = client.get(PATH)
    assert (answer.status_code, answer.headers["cache-control"]) == (http.client.OK, "no-store")
    assert answer.json()["room"]["who"] == "dr-a"
    shown = answer.json()["shown"]
    assert (shown["stage"], shown["progress"]) == ("rate", {"done": 0, "total": 2})
    assert "No fever." in shown["texts"][-1]["html"]
    assert (shown["entry"]["scores"], shown["entry"]["version"]) == ({}, 0)


def test_a_draft_is_kept_and_answered_with_the_number_of_what_is_stored(engine, mine, client):
    answer = client.post(PATH, json=message(mine, 3))
    assert answer.status_code == http.client.OK
    expected = {"code": mine, "seq": 3, "version": 1, "error": "", "busy": False, "stale": False}
    assert answer.json() == expected
    number, draft = kept(engine, 1, mine)
    assert (number, draft["seq"], draft["scores"]) == (1, 3, FULL)
    assert scores_of(engine, "dr-a") == []


def test_one_request_stores_a_rating_and_is_answered_with_the_next_response(engine, client):
    first, second = codes_of(engine, "dr-a")
    answer = client.post(PATH, json=message(first, submit=True)).json()
    assert len(scores_of(engine, "dr-a")) == len(FULL)
    assert (answer["error"], answer["shown"]["code"]) == ("", second)
    assert answer["shown"]["progress"] == {"done": 1, "total": 2}
    shown = client.post(PATH, json=message(second, submit=True)).json()["shown"]
    assert (shown["stage"], shown["title"]) == ("note", "Thank you")
    back = client.post(f"{PATH}/back", json={"code": shown["back"]}).json()
    assert (back["shown"]["code"], bool(back["shown"]["rated"])) == (second, True)


def test_a_page_that_does_not_know_the_newest_state_is_refused_and_told_what_is_stored(
    engine, mine, client
):
    client.post(PATH, json=message(mine, 5, base=0, comment="new", by="page2"))
    client.post(PATH, json=message(mine, 6, base=1, by="page2", submit=True))
    rated = scores_of(engine, "dr-a")
    sent = message(mine, 4, base=0, scores=FULL | {"clarity": 1})
    for final in (False, True):
        answer = client.post(PATH, json=sent | {"submit": final}).json()
        assert (answer["error"], answer["stale"], answer["version"]) == (CHANGED, True, None)
        assert not answer["busy"]
        stored = answer["stored"]
        assert (stored["by"], stored["scores"], stored["version"]) == ("page2", FULL, 2)
        assert "shown" not in answer
    assert scores_of(engine, "dr-a") == rated
    knowing = sent | {"base": 2, "submit": True}
    assert client.post(PATH, json=knowing).json()["error"] == ""
    assert len(scores_of(engine, "dr-a")) == 2 * len(rated)


def test_nobody_keeps_a_draft_of_a_response_that_is_not_theirs(engine, client):
    theirs = codes_of(engine, "dr-b")[0]
    for final in (False, True):
        answer = client.post(PATH, json=message(theirs, submit=final)).json()
        assert "not assigned to you" in answer["error"]
        assert set(answer) == ANSWER
        assert answer["version"] is None
    for path in ("show", "back"):
        asked = {"code": theirs, "name": "reference"}
        assert theirs not in client.post(f"{PATH}/{path}", json=asked).text
    assert kept(engine, 2, theirs) == (0, {})
    assert scores_of(engine, "dr-b") == []


@pytest.mark.parametrize("way", ["none", "forged", "ended", "of who steers"])
def test_without_a_clinicians_session_nothing_is_kept_or_said(engine, mine, client, way):
    headers = dict(client.headers)
    if way == "none":
        headers["cookie"] = ""
    elif way == "forged":
        headers["cookie"] = headers["cookie"][:-3] + "AAA"
    elif way == "ended":
        end_access(OPERATOR, engine, "dr-a")
    else:
        boss = person_of(engine, add_people(OPERATOR, engine, ["boss"], Role.COORDINATOR)[0].code)
        headers["cookie"] = session_of(engine, boss)
    posted = [client.post(path, json=message(mine), headers=headers) for path in POSTED]
    said = {(one.status_code, one.content) for one in (client.get(PATH, headers=headers), *posted)}
    assert said == {(http.client.UNAUTHORIZED, b"")}
    assert kept(engine, 1, mine) == (0, {})


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"\xff", b"{" + b" " * LONGEST_BODY + b"}", b"[" * 60_000]
)
def test_what_is_no_message_is_refused(client, body):
    for path in POSTED:
        assert client.post(path, content=body).status_code == http.client.BAD_REQUEST


@pytest.mark.parametrize(
    "read",
    [{}, {"read": 1}, {"stage": "feedback"}, {"stage": "feedback", "read": "1"}]
    + [{"stage": "outcome", "read": one} for one in (True, 1.0, 2**31, -(2**31))]
    + [{"stage": "rate", "read": 1}],
)
def test_what_was_not_read_is_not_noted(client, read):
    assert client.post(f"{PATH}/read", json=read).status_code == http.client.BAD_REQUEST


def test_a_line_that_is_cut_in_a_message_leaves_no_trace(engine, me, mine, caplog):
    half = json.dumps(message(mine, submit=True)).encode()[:-9]
    heard = iter([{"type": "http.request", "body": half, "more_body": True}])

    async def receive() -> dict[str, object]:
        return next(heard, {"type": "http.disconnect"})

    async def send(_: object) -> None:
        pass

    headers = [(b"cookie", session_of(engine, me).encode())]
    scope = {"type": "http", "method": "POST", "path": PATH, "query_string": b""}
    served = Starlette(routes=routes(engine))
    asyncio.run(served(scope | {"headers": headers}, receive, send))  # type: ignore[arg-type]
    assert kept(engine, 1, mine) == (0, {})
    assert scores_of(engine, "dr-a") == []
    assert caplog.text == ""


def test_another_site_cannot_keep_a_draft(engine, mine, client):
    for path in POSTED:
        answer = client.post(path, json=message(mine), headers={"Sec-Fetch-Site": "cross-site"})
        assert answer.status_code == http.client.FORBIDDEN
    assert kept(engine, 1, mine) == (0, {})


def test_a_response_that_is_seen_is_recorded_and_a_reference_when_it_is_asked_for(
    engine, mine, client
):
    for _ in range(2):
        assert "The reference." not in client.get(PATH).text
    task = task_of(engine, 1, mine)
    assert (task.opened, task.reference_opened) == (True, False)
    asked = {"code": mine, "name": "reference"}
    shown = client.post(f"{PATH}/show", json=asked).json()
    assert "The reference." in shown["html"]
    assert task_of(engine, 1, mine).reference_opened
    assert "The reference." in client.get(PATH).text


def test_a_hidden_reference_is_not_offered_and_cannot_be_asked_for(engine, mine, client):
    set_setting(engine, "reference", "hidden")
    shown = client.get(PATH).json()["shown"]
    assert [one["name"] for one in shown["texts"]] == ["task", "source", "response"]
    assert "The reference." not in told(shown)
    for name in ("reference", "context", "author"):
        answer = client.post(f"{PATH}/show", json={"code": mine, "name": name})
        assert (answer.status_code, answer.content) == (http.client.NOT_FOUND, b"")


def test_after_rating_the_reference_is_shown_once_and_recorded(engine, me, mine):
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


def test_who_is_done_takes_a_place_that_another_gave_back(engine, me):
    import_responses(engine, [row(3, "Free place.")], lambda _: rubric(name="rubric_hidden"))
    assign(engine, [Slot("dr-b", 3, 9)], seed=0, per_response=1)
    recuse(engine, me.id + 1, codes_of(engine, "dr-b")[2], "I know this patient")
    for code in codes_of(engine, "dr-a"):
        take_in(engine, me, message(code, submit=True))
    for _ in range(2):
        shown = room.shown(engine, me)
        assert "Free place." in told(shown)
        assert shown["progress"] == {"done": 2, "total": 3}


def test_a_study_offers_its_own_types_of_error(engine, me, mine):
    set_setting(engine, "error_types", "dose,left out")
    shown = room.shown(engine, me)
    offered = (shown["errors"], shown["severities"])
    assert offered == (["dose", "left out"], ["minor", "major", "critical"])
    for error, says in (("wrong", "marks are dose, left out"), ("left out", "")):
        assert says in take_in(engine, me, message(mine, spans=[MARK | {"error": error}])).error
    assert room.shown(engine, me)["entry"]["spans"][0]["error"] == "left out"


def test_what_the_page_is_sent_names_no_author_score_or_rater(engine, me):
    sent = [told(room.arrival(engine, me))]
    for code in codes_of(engine, "dr-a"):
        room.opened(engine, me, code, "reference")
        answer = take_in(engine, me, message(code, submit=True))
        sent += [told(about(answer)), told(room.shown(engine, me, answer))]
    hidden = ["gpt-9", "llama", "resp-", "inst-", "bench_hidden", "rubric_hidden", "dr-b"]
    assert [one for one in hidden if one in "".join(sent)] == []


def test_a_locked_study_takes_nothing_and_says_so(engine, mine, client):
    lock(engine, "coordinator")
    for final in (False, True):
        answer = client.post(PATH, json=message(mine, submit=final)).json()
        assert (answer["error"], answer["busy"], answer["version"]) == (CLOSED, False, None)
    shown = client.get(PATH).json()["shown"]
    assert (shown["stage"], "This study is locked" in shown["text"]) == ("note", True)


def test_before_consent_nothing_is_shown_or_taken_and_after_it_all_is(engine, mine, client):
    said = Description("Notes", "Why", "Dr. L", "l@h.example", "I agree to this.", "Read.")
    describe(engine, said, "coordinator")
    arrived = client.get(PATH)
    assert arrived.json()["shown"]["stage"] == "consent"
    assert ("I agree to this." in arrived.text, "fever" in arrived.text) == (True, False)
    for final in (False, True):
        answer = client.post(PATH, json=message(mine, submit=final)).json()
        assert (answer["error"], answer["version"]) == (CONSENT_FIRST, None)
    assert kept(engine, 1, mine) == (0, {})
    other = client.post(f"{PATH}/consent", json={"sha256": "0" * 64}).json()
    assert other["shown"]["stage"] == "consent"
    own = {"sha256": said.consent_sha256}
    agreed = client.post(f"{PATH}/consent", json=own).json()
    assert (agreed["shown"]["stage"], agreed["shown"]["code"]) == ("rate", mine)
    assert [one.detail["rater"] for one in acts(engine, "consent given")] == [1]


def stored(engine, me, code):
    """Return what a page is shown of what is stored of a response."""
    return room.entry(task_of(engine, me.id, code))


@pytest.mark.parametrize("submit", [False, True])
def test_an_older_message_never_overwrites_a_newer_one(engine, me, mine, submit):
    take_in(engine, me, message(mine, 5, submit=submit))
    late = take_in(engine, me, message(mine, 4, scores=FULL | {"clarity": 1}, submit=submit))
    assert (late.error, late.moved) == ("", submit)
    assert (stored(engine, me, mine)["scores"], stored(engine, me, mine)["seconds"]) == (FULL, 3)
    assert [score for *_, score in scores_of(engine, "dr-a")] == [*FULL.values()] * submit


def test_an_incomplete_submission_is_refused_and_says_what_is_missing(engine, me, mine):
    found = take_in(engine, me, message(mine, scores={"clarity": 3}, submit=True))
    assert found.error == "not rated yet: accuracy, completeness"
    assert scores_of(engine, "dr-a") == []


@pytest.mark.parametrize("payload", ["nonsense", 7, {"code": 1}, {"code": ["x"], "seq": None}])
def test_what_is_no_message_is_answered_once(engine, me, payload):
    assert take_in(engine, me, payload).error == answers.GARBLED


@pytest.mark.parametrize(
    "reason", [{}, {"comment": "dose"}, {"spans": [MARK]}, {"scores": FULL | {"accuracy": 3}}]
)
def test_a_low_first_score_needs_a_line_or_a_mark_unless_the_study_asks_for_none(
    engine, me, mine, reason
):
    low = {"scores": FULL | {"accuracy": 2}}
    refused = take_in(engine, me, message(mine, 1, **low, comment=" ", submit=True))
    assert refused.error.startswith("Accuracy is low: write one line why")
    assert (refused.moved, scores_of(engine, "dr-a")) == (False, [])
    if not reason:
        set_setting(engine, "ask_why", "false")
    assert take_in(engine, me, message(mine, 2, **(low | reason), submit=True)).error == ""


@pytest.mark.parametrize(("high", "low"), [(1, (0,)), (5, (0, 1)), (10, (0, 1, 2, 3))])
def test_low_is_the_lowest_two_fifths_and_at_least_one_point(high, low):
    assert low_points(rubric(low=0, high=high)) == low


def test_going_back_and_forth_repeats_nothing(engine, me):
    first, second = codes_of(engine, "dr-a")
    take_in(engine, me, message(first, submit=True))
    back = message(second, 3, scores={"clarity": 1}, go="previous")
    assert [take_in(engine, me, back).at for _ in range(2)] == [first, first]
    assert take_in(engine, me, message(first, 4, go="previous")).at == first
    assert take_in(engine, me, message(first, 5, go="next")).at == ""
    assert task_of(engine, me.id).draft["scores"] == {"clarity": 1}


def test_a_recusal_frees_the_place_and_needs_a_reason(engine, me):
    first, second = codes_of(engine, "dr-a")
    assert take_in(engine, me, message(first, go="recuse")).error == "say why you recuse yourself"
    assert take_in(engine, me, message(first, 2, go="recuse", reason="patient")).error == ""
    assert task_of(engine, me.id).card.code == second


def test_the_same_again_counts_as_the_newest_state(engine, me, mine):
    take_in(engine, me, message(mine, 1, submit=True))
    take_in(engine, me, message(mine, 2, scores={"clarity": 1}))
    take_in(engine, me, message(mine, 3, submit=True))
    task = task_of(engine, me.id, mine)
    assert (task.revision, task.submitted_seq, task.draft["scores"]) == (1, 3, FULL)


GARBLED = (
    *({"scores": one} for one in (FULL | {"clarity": 2.5}, FULL | {"clarity": True}, "full marks")),
    *({"spans": [MARK | {name: one}]} for name, one in (("start", -1), ("severity", "fatal"))),
    *({"spans": [MARK | {"side": "reference"}]}, {"flags": ["loud"]}, {"go": "home"}),
    *({"seq": -1}, {"seq": 2**70}, {"seconds": math.nan}, {"rater": 2}, {"comment": "x" * 20_001}),
)
NO_MARKS = {
    "not part of its text": ([MARK | {"end": 99}], [MARK | {"start": 2}]),
    "this study's marks are wrong": ([MARK | {"error": "Wrong"}],),
    "this study's marks are wrong, unsupported, missing, unsafe, unclear": (
        [MARK | {"error": "ugly"}],
    ),
    "belongs to no criterion": ([MARK | {"criterion": "charm"}],),
    "linked to none on the other side": (
        *([MARK | {"linked": 1}], [MARK | {"linked": 0}], [MARK, MARK | {"linked": 0}]),
    ),
}


@pytest.mark.parametrize("submit", [True, False])
@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        *(({"scores": FULL | off}, answers.OFF) for off in ({"clarity": 99}, {"charm": 3})),
        *(({"comments": {"charm": one}}, "a comment belongs to no") for one in ("much", "")),
        *(({"spans": spans}, says) for says, each in NO_MARKS.items() for spans in each),
        *((wrong, answers.GARBLED) for wrong in GARBLED),
    ],
)
def test_what_cannot_be_is_refused_in_words_as_draft_and_as_submission(
    engine, me, mine, wrong, says, submit
):
    answer = take_in(engine, me, message(mine, **wrong, submit=submit))
    assert (says in answer.error, "rubric_hidden" in answer.error) == (True, False)
    assert (answer.version, answer.moved, answer.stale, answer.busy) == (None, False, False, False)
    assert scores_of(engine, "dr-a") == []
    assert (stored(engine, me, mine)["version"], stored(engine, me, mine)["scores"]) == (0, {})


def test_marks_of_both_texts_are_kept_with_their_notes_and_links(engine, me, mine):
    missing = MARK | {"error": "missing", "side": "source", "start": 9, "end": 19, "linked": 1}
    dose = MARK | {"note": "no dose", "severity": "major", "linked": 0}
    sent = message(mine, spans=[missing, dose], comments={"clarity": "long"}, submit=True)
    assert take_in(engine, me, sent).error == ""
    with Session(engine) as session:
        spans = session.exec(select(Span).order_by(col(Span.id))).all()
        comments = dict(session.exec(select(Rating.criterion, Rating.comment)).all())
    told = [(one.side, one.text, one.error, one.severity, one.note, one.linked) for one in spans]
    assert told == [
        ("source", "Any fever?", "missing", "", "", 1),
        ("response", "No", "wrong", "major", "no dose", 0),
    ]
    assert comments == {"accuracy": "", "completeness": "", "clarity": "long"}


def test_what_is_left_of_a_rubric_that_was_changed_is_not_shown(engine, me, mine):
    old = MARK | {"criterion": "charm", "side": "source"}
    draft = {
        "scores": {"clarity": 99, "accuracy": 2, "charm": 1},
        "comments": {"charm": "gone", "clarity": "kept"},
        "spans": [old, MARK | {"linked": 0}, MARK | {"side": "source"}, MARK | {"linked": 2}],
    }
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(update(Assignment).values(draft=draft))
    shown = stored(engine, me, mine)
    assert (shown["scores"], shown["comments"]) == ({"accuracy": 2}, {"clarity": "kept"})
    assert [one["linked"] for one in shown["spans"]] == [None, None, 1]
    again = {name: shown[name] for name in ("scores", "comments", "spans")}
    assert take_in(engine, me, message(mine, **again)).error == ""


def test_the_same_message_again_changes_nothing_and_is_answered_as_stored(engine, me):
    first, second = codes_of(engine, "dr-a")
    draft = message(first, 1, base=0, scores={"clarity": 2})
    final = message(first, 2, base=1, submit=True)
    for sent, version in ((draft, 1), (final, None)):
        answered = [take_in(engine, me, sent | {"attempt": n}) for n in range(3)]
        assert {(one.error, one.stale, one.version) for one in answered} == {("", False, version)}
        assert {one.moved for one in answered} == {bool(sent["submit"])}
    assert len(scores_of(engine, "dr-a")) == len(FULL)
    assert [stored(engine, me, one)["version"] for one in (first, second)] == [2, 0]
    lock(engine, "coordinator")
    assert take_in(engine, me, final | {"attempt": 9}).error == ""


def test_an_empty_comment_on_a_criterion_says_nothing_of_the_whole(engine, me, mine):
    empty = {"scores": {}, "comments": {"clarity": ""}, "flags": ["not_enough_context"]}
    sent = message(mine, submit=True, **empty)
    assert take_in(engine, me, sent).error == ""
    with Session(engine) as session:
        assert session.exec(select(Submission.comment)).all() == [""]


@pytest.mark.parametrize("submit", [True, False])
@pytest.mark.parametrize("crafted", [{"seq": LARGEST}, {"base": LARGEST}])
def test_a_crafted_number_never_makes_ones_own_response_unsubmittable(
    engine, me, mine, crafted, submit
):
    take_in(engine, me, message(mine, submit=submit) | crafted)
    version = stored(engine, me, mine)["version"]
    for seq, by, score in ((1, "page2", 3), (1, "page1", 2), (2, "page1", 1)):
        scores = FULL | {"clarity": score}
        sent = message(mine, seq, base=version, by=by, scores=scores, submit=True)
        assert take_in(engine, me, sent).error == ""
        assert scores_of(engine, "dr-a")[-1][2] == score
        version = stored(engine, me, mine)["version"]
        assert version < 10


@pytest.mark.parametrize("submitted", [0, 7, LARGEST])
def test_a_response_at_the_last_number_of_a_state_can_be_drafted_and_submitted(
    engine, me, mine, submitted
):
    if submitted:
        assert take_in(engine, me, message(mine, submit=True)).error == ""
    with engine.execution_options(writes=True).begin() as connection:
        at_last = update(Assignment).where(col(Assignment.code) == mine)
        connection.execute(at_last.values(draft_seq=LARGEST, submitted_seq=submitted))
    draft = take_in(engine, me, message(mine, 1, base=LARGEST, by="p", scores={"clarity": 2}))
    assert (draft.error, draft.version) == ("", 1)
    task = task_of(engine, me.id, mine)
    assert task.draft_seq > task.submitted_seq, "it is not said that this was not submitted"
    final = message(mine, 2, base=1, by="p", scores=FULL | {"clarity": 2}, submit=True)
    assert take_in(engine, me, final).error == ""
    assert scores_of(engine, "dr-a")[-1][2] == 2


@pytest.mark.parametrize(
    ("comment", "drafted", "refused"),
    [("", False, False), ("3 mg.", False, True), ("", True, True)],
)
def test_what_another_page_submitted_is_stored_once_and_replaced_by_none_that_does_not_know_it(
    engine, me, mine, comment, drafted, refused
):
    def state(page: str, seq: int, base: int) -> FormState:
        return FormState({"by": page, "seq": seq}, 1, base)

    assert submit(engine, me.id, mine, Reply(FULL), 1, state("first", 1, 0))
    if drafted:
        save_draft(engine, me.id, mine, state("first", 2, 1))
    with pytest.raises(Stale) if refused else nullcontext():
        assert not submit(
            engine, me.id, mine, Reply(FULL, comment=comment), 1, state("other", 1, 0)
        )
    assert len(scores_of(engine, "dr-a")) == len(FULL)

"""The rating page without a browser: what it shows, takes in, and refuses."""

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from kit.pages import drawn_page
from kit.rating_study import FULL, build, codes_of, message, person_of, row, rubric
from sqlalchemy import Engine
from streamlit.testing.v1 import AppTest

from annotate import sessions
from annotate.navigation import study
from annotate.rating import room
from annotate.rating.answers import Answer, take_in
from annotate.rating.requests import about
from annotate.server import LARGEST_MESSAGE, settings
from annotate.signin import FAILURES, Throttle
from data.person import Person
from data.study import room as study_room
from data.study.assignments import Slot, assign, recuse
from data.study.responses import import_responses
from data.study.settings import set_setting

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def invited(study: Engine) -> Person:
    """Make the study once that each test has a copy of, and return dr-a."""
    rows = [row(1, "No fever.", reference="The reference."), row(2, "Has fever.")]
    codes = build(study, rows, ["dr-a", "dr-b"], rubric(name="rubric_hidden"))
    return person_of(study, codes["dr-a"])


@pytest.fixture
def screen(url: str, me: Person, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    """Return the rating screen of dr-a as Streamlit draws it."""
    monkeypatch.setenv("MEDJURY_DB", url)
    script = (
        "from annotate.screens.rate import show\n"
        "from annotate.navigation import study\n"
        "from data.person import Person\n"
        f"show(study(), Person({me.id}, 'dr-a', 'clinician', {me.rater}))\n"
    )
    yield drawn_page(script, 30)
    study().dispose()


def drawn(app: AppTest) -> str:
    """Return everything that Streamlit was sent, as text."""
    return "\n".join(str(one.proto) for one in app.main)


def told(shown: Mapping[str, Any]) -> str:
    """Return what a page is sent, as text."""
    return json.dumps(shown, ensure_ascii=False)


def test_streamlit_draws_one_component_and_nothing_of_the_study(screen: AppTest) -> None:
    screen.run()
    assert not screen.exception
    [component] = screen.get("bidi_component")
    assert json.loads(component.proto.json) == []
    assert "fever" not in drawn(screen)


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


def test_a_response_that_is_seen_is_recorded_and_its_reference_is_not(
    engine: Engine, me: Person
) -> None:
    for _ in range(2):
        room.shown(engine, me)
    task = study_room.task(engine, me.id, codes_of(engine, "dr-a")[0])
    assert task is not None
    assert (task.opened, task.reference_opened) == (True, False)


def test_a_hidden_reference_is_not_even_offered(engine: Engine, me: Person) -> None:
    set_setting(engine, "reference", "hidden")
    shown = room.shown(engine, me)
    assert [one["name"] for one in shown["texts"]] == ["task", "source", "response"]
    assert "The reference." not in told(shown)


def test_after_rating_the_reference_is_shown_once_and_recorded(engine: Engine, me: Person) -> None:
    set_setting(engine, "reference", "after_rating")
    code = codes_of(engine, "dr-a")[0]
    assert "The reference." not in told(room.shown(engine, me))
    assert room.opened(engine, me, code, "reference") is None
    answer = take_in(engine, me, message(code, submit=True))
    shown = room.shown(engine, me, answer)
    assert (shown["code"], shown["mode"]) == (code, "after")
    assert "The reference." in told(shown)
    task = study_room.task(engine, me.id, code)
    assert task is not None
    assert task.reference_opened
    shown = room.shown(engine, me, take_in(engine, me, message(code, 2, go="next")))
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
    assert (back["code"], back["entry"]["scores"], back["entry"]["comment"]) == (
        first,
        FULL,
        "fine",
    )
    assert back["rated"]
    assert (back["previous"], back["unsent"]) == (False, False)
    take_in(engine, me, message(first, 2, comment="changed"))
    at = Answer("", 0, 0, at=first)
    assert room.shown(engine, me, at)["unsent"]


def test_a_study_offers_its_own_types_of_error(engine: Engine, me: Person) -> None:
    set_setting(engine, "error_types", "dose,left out")
    shown = room.shown(engine, me)
    assert (shown["errors"], shown["severities"]) == (
        ["dose", "left out"],
        ["minor", "major", "critical"],
    )
    mark = {"criterion": "accuracy", "start": 0, "end": 2, "error": "left out"}
    for error, says in (("wrong", "marks are dose, left out"), ("left out", "")):
        sent = message(shown["code"], spans=[mark | {"error": error}])
        assert says in take_in(engine, me, sent).error
    assert room.shown(engine, me)["entry"]["spans"][0]["error"] == "left out"


@pytest.mark.usefixtures("me")
def test_without_a_session_the_entry_page_shows_only_the_way_to_sign_in(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDJURY_DB", url)
    app = AppTest.from_file(str(ROOT / "annotate" / "app.py")).run(timeout=30)
    assert "/login" in drawn(app)
    assert "fever" not in drawn(app)
    study().dispose()


def test_what_the_page_is_sent_names_no_author_score_or_rater(engine: Engine, me: Person) -> None:
    sent = [told(room.arrival(engine, me))]
    for code in codes_of(engine, "dr-a"):
        room.opened(engine, me, code, "reference")
        answer = take_in(engine, me, message(code, submit=True))
        sent += [told(about(answer)), told(room.shown(engine, me, answer))]
    hidden = ["gpt-9", "llama", "resp-", "inst-", "bench_hidden", "rubric_hidden", "dr-b"]
    assert [one for one in hidden if one in "".join(sent)] == []


def test_a_session_is_ours_unforged_and_ends_with_the_access(engine: Engine, me: Person) -> None:
    token = sessions.issue(engine, me)
    assert sessions.owner(engine, token) == me
    assert sessions.owner(engine, token[:-2] + "xx") is None
    assert sessions.owner(engine, None) is None
    assert sessions.MAX_AGE_SECONDS <= 12 * 3600


def test_guessing_is_slowed_for_whoever_guesses_and_for_nobody_else() -> None:
    now = 0.0
    throttle = Throttle(lambda: now)
    assert all(throttle.takes("a") for _ in range(FAILURES.burst))
    assert not throttle.takes("a")
    assert throttle.allows("b")
    now = FAILURES.seconds_each
    assert throttle.takes("a")
    assert not throttle.takes("a")


def test_the_settings_in_the_package_and_at_the_root_are_the_same() -> None:
    root = (ROOT / ".streamlit" / "config.toml").read_text("utf-8")
    assert (ROOT / "annotate" / "streamlit.toml").read_text("utf-8") == root
    assert settings()["server.address"] == tomllib.loads(root)["server"]["address"]
    assert settings()["server.maxWidgetStateSize"] * 1_000_000 == LARGEST_MESSAGE
    assert settings()["runner.postScriptGC"] is False
    assert settings()["browser.gatherUsageStats"] is False

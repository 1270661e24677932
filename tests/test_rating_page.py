"""The rating page without a browser: what it shows, takes in, and refuses."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from annotate.replies import take_in
from rating_server import build, codes_of, message, row, rubric
from sqlalchemy import Engine
from streamlit.testing.v1 import AppTest
from study_place import fill

from annotate import sessions
from annotate.server import settings
from annotate.study import study
from annotate.throttle import OVERALL, PER_ADDRESS, Throttle
from data import queries
from data.queries import Person
from data.store import Slot, assign, import_responses, recuse
from data.store.record import lock
from data.store.settings import set_setting

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def invited(study: Engine) -> Person:
    """Make the study once that each test has a copy of, and return dr-a."""
    rows = [row(1, "No fever.", reference="The reference."), row(2, "Has fever.")]
    codes = build(study, rows, ["dr-a", "dr-b"], rubric(name="rubric_hidden"))
    person = queries.person_by_code(study, codes["dr-a"])
    assert person is not None
    return person


@pytest.fixture
def me(engine: Engine, study: Engine, invited: Person) -> Person:
    fill(engine, study)
    return invited


@pytest.fixture
def screen(url: str, me: Person, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    """Return the rating screen of dr-a."""
    monkeypatch.setenv("MEDJURY_DB", url)
    script = (
        "from annotate.screens.rate import show\n"
        "from annotate.study import study\n"
        "from data.queries import Person\n"
        f"show(study(), Person({me.id}, 'dr-a', 'clinician', {me.rater}))\n"
    )
    yield AppTest.from_string(script, default_timeout=30)
    study().dispose()


def sent(app: AppTest) -> dict[str, Any]:
    """Return the data that the form was sent."""
    found: dict[str, Any] = json.loads(app.get("bidi_component")[-1].proto.json)[0]
    return found


def shown(app: AppTest) -> str:
    """Return everything that the page was sent, as text."""
    return "\n".join(str(one.proto) for one in app.main)


def test_the_first_response_is_shown_with_nothing_preset(screen: AppTest) -> None:
    screen.run()
    assert not screen.exception
    assert "No fever." in shown(screen)
    assert "0</b> of <b>2</b> rated" in shown(screen)
    assert sent(screen)["scores"] == {}


def test_a_message_in_the_page_is_saved_and_answered(
    screen: AppTest, engine: Engine, me: Person
) -> None:
    screen.run()
    code = codes_of(engine, "dr-a")[0]
    screen.session_state["rating"] = {"message": message(code, scores={"clarity": 5})}
    screen.run()
    assert sent(screen)["scores"] == {"clarity": 5}
    assert (sent(screen)["seq"], sent(screen)["by"]) == (1, "page1")
    screen.session_state["rating"] = {"message": message(code, 2, submit=True)}
    screen.run()
    assert "Has fever." in shown(screen)
    assert sent(screen)["scores"] == {}


def test_when_all_is_rated_the_page_says_thank_you(
    screen: AppTest, engine: Engine, me: Person
) -> None:
    for code in codes_of(engine, "dr-a"):
        assert take_in(engine, me, message(code, submit=True)).error == ""
    screen.run()
    assert "Thank you" in shown(screen)
    assert not screen.get("bidi_component")


def test_who_is_done_takes_a_place_that_another_gave_back(
    screen: AppTest, engine: Engine, me: Person
) -> None:
    import_responses(engine, [row(3, "Free place.")], lambda _: rubric(name="rubric_hidden"))
    assign(engine, [Slot("dr-b", 3, 9)], seed=0, per_response=1)
    recuse(engine, me.id + 1, codes_of(engine, "dr-b")[2], "I know this patient")
    for code in codes_of(engine, "dr-a"):
        take_in(engine, me, message(code, submit=True))
    assert "Free place." in shown(screen.run())
    assert "2</b> of <b>3</b> rated" in shown(screen.run())


def test_a_response_seen_and_a_reference_opened_are_recorded_once(
    screen: AppTest, engine: Engine, me: Person
) -> None:
    for _ in range(2):
        screen.run()
    code = codes_of(engine, "dr-a")[0]
    task = queries.task(engine, me.id, code)
    assert task is not None
    assert (task.opened, task.reference_opened) == (True, False)


def test_a_hidden_reference_is_not_even_offered(screen: AppTest, engine: Engine) -> None:
    set_setting(engine, "reference", "hidden")
    assert "Show reference" not in shown(screen.run())
    assert "The reference." not in shown(screen)


def test_after_rating_the_reference_is_shown_once_and_recorded(
    screen: AppTest, engine: Engine, me: Person
) -> None:
    set_setting(engine, "reference", "after_rating")
    code = codes_of(engine, "dr-a")[0]
    assert "The reference." not in shown(screen.run())
    screen.session_state["rating"] = {"message": message(code, submit=True)}
    screen.run()
    assert "The reference." in shown(screen)
    assert sent(screen)["mode"] == "after"
    screen.session_state["rating"] = {"message": message(code, 2, go="next")}
    screen.run()
    assert sent(screen)["mode"] == "rate"
    assert "The reference." not in shown(screen)
    task = queries.task(engine, me.id, code)
    assert task is not None
    assert task.reference_opened


def test_a_locked_study_shows_only_that_it_is_locked(screen: AppTest, engine: Engine) -> None:
    lock(engine, "coordinator")
    assert "This study is locked" in shown(screen.run())
    assert not screen.get("bidi_component")


def test_a_clinician_without_assignments_is_told_so(
    url: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDJURY_DB", url)
    app = AppTest.from_string(
        "from annotate.screens.rate import show\nfrom annotate.study import study\n"
        "from data.queries import Person\nshow(study(), Person(77, 'dr-new', 'clinician', 77))\n"
    ).run(timeout=30)
    assert "Nothing to rate yet" in shown(app)
    study().dispose()


@pytest.mark.usefixtures("me")
def test_without_a_session_the_entry_page_shows_only_the_way_to_sign_in(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDJURY_DB", url)
    app = AppTest.from_file(str(ROOT / "annotate" / "app.py")).run(timeout=30)
    assert "/login" in shown(app)
    assert "fever" not in shown(app)
    study().dispose()


def test_the_reference_is_sent_only_once_it_is_opened(screen: AppTest) -> None:
    screen.run()
    assert "Show reference" in shown(screen)
    assert "The reference." not in shown(screen)


def test_what_the_page_is_sent_names_no_author(screen: AppTest) -> None:
    told = shown(screen.run())
    hidden = ["gpt-9", "llama", "resp-", "inst-", "bench_hidden", "rubric_hidden", "dr-b"]
    assert [one for one in hidden if one in told] == []


def test_a_session_is_ours_unforged_and_ends_with_the_access(engine: Engine, me: Person) -> None:
    token = sessions.issue(engine, me)
    assert sessions.owner(engine, token) == me
    assert sessions.owner(engine, token[:-2] + "xx") is None
    assert sessions.owner(engine, None) is None
    assert sessions.MAX_AGE_SECONDS <= 12 * 3600


def test_guessing_is_slowed_by_address_and_overall() -> None:
    now = 0.0
    throttle = Throttle(lambda: now)
    for _ in range(PER_ADDRESS.burst):
        assert throttle.allows("a")
        throttle.failed("a")
    assert not throttle.allows("a")
    assert throttle.allows("b")
    now = PER_ADDRESS.seconds_each
    assert throttle.allows("a")
    for number in range(OVERALL.burst):
        throttle.failed(f"c{number}")
    assert not throttle.allows("d")


def test_the_settings_in_the_package_and_at_the_root_are_the_same() -> None:
    root = (ROOT / ".streamlit" / "config.toml").read_text("utf-8")
    assert (ROOT / "annotate" / "streamlit.toml").read_text("utf-8") == root
    assert settings()["server.address"] == tomllib.loads(root)["server"]["address"]
    assert settings()["runner.postScriptGC"] is False
    assert settings()["browser.gatherUsageStats"] is False


def test_the_rating_path_imports_no_table_or_statistics_library() -> None:
    probe = (
        "import sys, annotate.server, annotate.screens.rate;"
        "print([m for m in ('pandas', 'scipy', 'altair', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

"""Questions about a study are answered elsewhere, once, and again when it has changed."""

import os
import signal

import pytest
from sqlalchemy import Engine

from annotate.worker import ask
from data.database import open_study
from data.queries.version import version
from data.store.settings import set_setting


def process_of(url: str, number: int) -> tuple[str, int, int]:
    return url, number, os.getpid()


def fail(url: str) -> None:
    raise ValueError(url)


def test_a_question_is_answered_in_another_process(engine: Engine) -> None:
    url, number, process = ask(engine, process_of, 3).result(60)

    assert (url, number) == (str(engine.url), 3)
    assert process != os.getpid()


def test_the_same_question_is_asked_once_until_the_study_changes(engine: Engine) -> None:
    first = ask(engine, process_of, 1)
    assert ask(engine, process_of, 1) is first
    assert ask(engine, process_of, 2) is not first

    before = version(engine)
    set_setting(engine, "pause_minutes", "30")

    assert version(engine) != before
    assert ask(engine, process_of, 1) is not first


def test_a_question_that_failed_is_asked_again(engine: Engine) -> None:
    first = ask(engine, fail)
    with pytest.raises(ValueError, match="sqlite"):
        first.result(60)
    assert ask(engine, fail) is not first


def test_a_killed_process_is_replaced(engine: Engine) -> None:
    process = ask(engine, process_of, 5).result(60)[2]
    os.kill(process, signal.SIGKILL)
    for number in range(6, 40):
        found = ask(engine, process_of, number)
        if not found.exception(60):
            assert found.result()[2] != process
            return
    pytest.fail("no new process")


def test_two_studies_have_answers_of_their_own(engine: Engine, tmp_path: object) -> None:
    other = open_study(f"sqlite:///{tmp_path}/other.db", create=True)
    assert ask(engine, process_of, 1) is not ask(other, process_of, 1)
    other.dispose()

"""Two pages of one clinician on one response: the store takes no word of one for the other's."""

from dataclasses import replace

import pytest
from kit.rating_study import FULL, build, codes_of, row, rubric, scores_of
from sqlalchemy import Engine

from data.card import Reply
from data.errors import Stale
from data.store import FormState, save_draft, submit

REPLY = Reply(FULL, comment="The dose is 2 mg.")


@pytest.fixture
def code(engine: Engine) -> str:
    build(engine, [row(1, "Note 1.")], ["dr-two"], rubric())
    return codes_of(engine, "dr-two")[0]


def state(page: str, seq: int, base: int) -> FormState:
    return FormState({"by": page, "seq": seq}, 1, base)


def test_what_another_page_submitted_already_is_stored_once(engine: Engine, code: str) -> None:
    assert submit(engine, 1, code, REPLY, 1, state("first", 1, 0))
    assert not submit(engine, 1, code, REPLY, 1, state("second", 1, 0))
    assert len(scores_of(engine, "dr-two")) == len(FULL)


def test_what_another_page_submitted_otherwise_is_not_replaced(engine: Engine, code: str) -> None:
    submit(engine, 1, code, REPLY, 1, state("first", 1, 0))
    with pytest.raises(Stale):
        submit(engine, 1, code, replace(REPLY, comment="3 mg."), 1, state("second", 1, 0))
    assert len(scores_of(engine, "dr-two")) == len(FULL)


def test_what_another_page_has_entered_since_its_submission_is_not_replaced(
    engine: Engine, code: str
) -> None:
    submit(engine, 1, code, REPLY, 1, state("first", 1, 0))
    save_draft(engine, 1, code, state("first", 2, 1))
    with pytest.raises(Stale):
        submit(engine, 1, code, REPLY, 1, state("second", 1, 0))

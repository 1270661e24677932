"""Storing what clinicians do: drafts, submissions, codes, and the chain of events behind them."""

import itertools

import pytest
from sqlalchemy import Engine, text
from sqlmodel import Session, select

from data.card import Reply
from data.errors import BadInput, Unknown
from data.record import GENESIS, event_hash
from data.schema import Event
from data.study.assignments import Slot, assign
from data.study.frames import ratings_frame
from data.study.people import check_code, invite, person, renew
from data.study.ratings import FormState, submit
from data.study.room import Progress, next_task

FULL = Reply({"accuracy": 4, "completeness": 3, "clarity": 5}, comment="fine")


@pytest.fixture
def dr_a(small_study: Engine) -> int:
    """Return a clinician with the first three responses to rate, and another with one."""
    invite(small_study, ["dr_a", "dr_b"])
    slots = [Slot("dr_a", response, place) for place, response in enumerate((3, 1, 2))]
    assign(small_study, [*slots, Slot("dr_b", 4, 0)], seed=0)
    with small_study.connect() as connection:
        return int(connection.scalar(text("SELECT id FROM rater WHERE handle = 'dr_a'")) or 0)


def state(seq: int, by: str = "page1", base: int | None = None, **scores: int) -> FormState:
    """Return a state of the form as a page sends it."""
    return FormState({"scores": scores, "by": by, "seq": seq}, 1, base)


def test_the_next_response_follows_the_clinicians_own_order(small_study: Engine, dr_a: int) -> None:
    seen = []
    while task := next_task(small_study, dr_a).task:
        seen.append(task.card.response)
        assert submit(small_study, dr_a, task.card.code, FULL, 10)
    assert seen == ["Mild pain.", "Patient denies fever.", "Patient has fever."]
    assert next_task(small_study, dr_a).progress == Progress(3, 3)


def test_a_changed_mind_is_added_and_the_newest_counts(small_study: Engine, dr_a: int) -> None:
    task = next_task(small_study, dr_a).task
    assert task is not None
    submit(small_study, dr_a, task.card.code, FULL, 10)
    assert submit(small_study, dr_a, task.card.code, Reply(dict(FULL.scores) | {"clarity": 1}), 5)
    frame = ratings_frame(small_study)
    assert list(frame.loc[frame["criterion"] == "clarity", "score"]) == [1]
    with small_study.connect() as connection:
        assert connection.scalar(text("SELECT COUNT(*) FROM rating")) == 6


def test_a_code_signs_in_its_owner_and_is_not_stored(small_study: Engine) -> None:
    (invitation,) = invite(small_study, ["dr_c"])
    assert check_code(small_study, invitation.code.replace("-", "")).person is not None
    found = check_code(small_study, f" {invitation.code.lower()} ").person
    assert found is not None
    assert found.name == "dr_c"
    with small_study.connect() as connection:
        stored = connection.execute(text("SELECT * FROM access")).fetchall()
    assert invitation.code.replace("-", "")[4:] not in str(stored)


@pytest.mark.parametrize("code", ["", "AAAA-BBBB-CCCC-DDDD", "x" * 500, "AAAA", "'; --"])
def test_a_wrong_code_signs_nobody_in(small_study: Engine, code: str) -> None:
    invite(small_study, ["dr_c"])
    assert check_code(small_study, code).person is None


def test_a_renewed_code_ends_the_old_one(small_study: Engine) -> None:
    (first,) = invite(small_study, ["dr_c"])
    second = renew(small_study, "dr_c")
    assert check_code(small_study, first.code).person is None
    found = check_code(small_study, second.code).person
    assert found is not None
    assert person(small_study, found.id) == found
    with pytest.raises(Unknown, match="nobody of that name"):
        renew(small_study, "dr_z")


def test_inviting_again_gives_no_second_code(small_study: Engine) -> None:
    assert len(invite(small_study, ["dr_c"])) == 1
    assert invite(small_study, ["dr_c"]) == []
    with pytest.raises(BadInput, match="twice"):
        invite(small_study, ["dr_d", "dr_d"])


def test_every_event_carries_the_hash_of_the_one_before(small_study: Engine, dr_a: int) -> None:
    task = next_task(small_study, dr_a).task
    assert task is not None
    submit(small_study, dr_a, task.card.code, FULL, 10)
    with Session(small_study) as session:
        events = session.exec(select(Event).order_by(Event.id)).all()  # type: ignore[arg-type]
    assert [one.action for one in events][-1] == "rated"
    assert events[0].previous == GENESIS
    for before, after in itertools.pairwise(events):
        assert after.previous == before.sha256 == event_hash(before)


def test_nothing_that_serves_raters_reads_who_wrote_a_response() -> None:
    import data.study.base
    import data.study.calls
    import data.study.readings
    import data.study.room

    for module in (data.study.base, data.study.calls, data.study.readings, data.study.room):
        assert not hasattr(module, "Authorship")


def test_hidden_repeats_are_not_told_by_the_count(small_study: Engine, dr_a: int) -> None:
    assert next_task(small_study, dr_a).progress.repeats == 0
    slots = [Slot("dr_a", response, place) for place, response in enumerate((3, 1, 2))]
    assign(small_study, [*slots, Slot("dr_b", 4, 0), Slot("dr_a", 3, 9, pass_=1)], seed=1)
    assert next_task(small_study, dr_a).progress == Progress(0, 4, 1)

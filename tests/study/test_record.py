"""The record: every act leaves an event, and nothing can be changed behind its back."""

import pytest
from kit.studies import import_small
from kit.study_place import fill
from sqlalchemy import Engine, text

from data.card import Marked, Reply
from data.errors import BadInput, Conflict, NotAllowed
from data.rubric import read_rubric
from data.study.assignments import Slot, assign, claim, recuse
from data.study.masks import MaskedText, mask_responses
from data.study.people import invite
from data.study.ratings import FormState, save_draft, submit
from data.study.room import next_task
from data.study.rubrics import add_rubric
from data.study.settings import lock, reopen, unblind
from data.study.verify import acts, locked_since, verify

SCORES = {"accuracy": 2, "completeness": 3, "clarity": 5}
REPLY = Reply(SCORES, comment="dose", spans=(Marked("accuracy", 0, 4, "wrong"),), flags=("flag",))


@pytest.fixture(scope="module")
def made(study: Engine, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """Make a study with two ratings, one of them revised, a span and a flag."""
    import_small(study, tmp_path_factory.mktemp("made"))
    invite(study, ["dr_a", "dr_b"])
    assign(study, [Slot("dr_a", n, n) for n in (1, 2)], seed=0, per_response=1)
    for _ in (1, 2):
        task = next_task(study, 1).task
        assert task is not None
        submit(study, 1, task.card.code, REPLY, 5)
        submit(study, 1, task.card.code, Reply({**SCORES, "clarity": 1}), 5)
    return study


@pytest.fixture
def rated(engine: Engine, made: Engine) -> Engine:
    """Return a copy of the rated study that a test may change."""
    fill(engine, made)
    return engine


def behind(engine: Engine, change: str) -> None:
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(text(change))


def test_an_untouched_record_is_whole(rated: Engine) -> None:
    found = verify(rated)
    assert found.findings == ()
    assert {name: found.rows[name] for name in ("assignment", "rater", "rubric")} == {
        "assignment": 2,
        "rater": 2,
        "rubric": 1,
    }
    acts = ("rating", "response", "subgroup", "remark", "span", "submission")
    assert {name: found.rows[name] for name in acts} == {
        "rating": 12,
        "response": 4,
        "subgroup": 0,
        "remark": 2,
        "span": 2,
        "submission": 4,
    }


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE rating SET score = 5 WHERE id = 1",
        "UPDATE rating SET comment = 'x' WHERE id = 4",
        "DELETE FROM rating WHERE id = 3",
        "UPDATE rating SET id = 100 WHERE id = 1",
        "INSERT INTO rating (response, rater, criterion, score, pass_, replicate, comment, at) "
        "SELECT response, rater, criterion, 5, 0, 0, '', at FROM rating WHERE id = 1",
        "UPDATE response SET text = 'better' WHERE id = 2",
        "UPDATE authorship SET model = 'model-two' WHERE response = 1",
        "UPDATE instance SET reference = 'other' WHERE id = 1",
        'UPDATE span SET "end" = 3 WHERE id = 1',
        "UPDATE span SET side = 'source' WHERE id = 1",
        "UPDATE span SET severity = 'minor' WHERE id = 1",
        "UPDATE span SET linked = 0 WHERE id = 1",
        "UPDATE submission SET comment = 'none' WHERE id = 1",
        "UPDATE submission SET appearance = 'dark' WHERE id = 2",
        "DELETE FROM submission WHERE id = 1",
        "DELETE FROM remark WHERE id = 1",
        "UPDATE event SET actor = 'nobody' WHERE id = 2",
        "DELETE FROM event WHERE id = 3",
        "DELETE FROM event WHERE id = (SELECT MAX(id) FROM event)",
    ],
)
def test_what_was_changed_behind_its_back_is_found(rated: Engine, change: str) -> None:
    behind(rated, change)
    assert verify(rated).findings != ()


def test_a_cut_of_the_whole_end_is_found_by_a_hash_kept_elsewhere(rated: Engine) -> None:
    head = verify(rated).head
    behind(rated, "DELETE FROM rating WHERE id > 9")
    behind(rated, "DELETE FROM submission WHERE id > 3")
    behind(rated, "DELETE FROM event WHERE id = (SELECT MAX(id) FROM event)")
    behind(rated, "UPDATE assignment SET revision = 1 WHERE id = 2")
    assert verify(rated).findings == ()
    assert "cut or rewritten" in verify(rated, head).findings[0]


def test_a_locked_study_takes_nothing_until_it_is_reopened_with_a_reason(rated: Engine) -> None:
    lock(rated, "coordinator")
    for change in (
        lambda: invite(rated, ["dr_c"]),
        lambda: assign(rated, [Slot("dr_b", 3, 0)], seed=1),
        lambda: add_rubric(rated, read_rubric("medi_qa")),
    ):
        with pytest.raises(NotAllowed, match="locked since"):
            change()
    with pytest.raises(Conflict):
        lock(rated, "coordinator")
    with pytest.raises(BadInput, match="reason"):
        reopen(rated, "coordinator", " ")
    reopen(rated, "coordinator", "late ethics form")
    assert locked_since(rated) is None
    assert [one.action for one in acts(rated, "locked", "reopened")] == ["locked", "reopened"]
    assert assign(rated, [Slot("dr_b", 3, 0)], seed=1) == 1


def test_lifting_the_blind_is_recorded_with_its_reason(rated: Engine) -> None:
    pairs = unblind(rated, "coordinator", "analysis")
    assert pairs[0] == ("r11", "model-one")
    assert acts(rated, "unblinded")[0].detail == {"reason": "analysis"}


def test_a_mask_changes_what_is_shown_but_never_what_is_stored(small_study: Engine) -> None:
    invite(small_study, ["dr_a"])
    assign(small_study, [Slot("dr_a", 1, 0)], seed=0)
    hidden = MaskedText(1, "[author masked] denies fever.", [(0, 7, "Patient")])
    assert mask_responses(small_study, [hidden]) == (1, 0)
    task = next_task(small_study, 1).task
    assert task is not None
    assert task.card.response == "[author masked] denies fever."
    assert verify(small_study).findings == ()
    assert mask_responses(small_study, [hidden]) == (0, 1)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE response SET shown = 'Patient [author masked] fever.' WHERE id = 1",
        "UPDATE response SET shown = NULL WHERE id = 1",
        "UPDATE response SET shown = 'No.' WHERE id = 2",
        'UPDATE mask SET "end" = 8 WHERE id = 1',
        "DELETE FROM mask",
    ],
)
def test_a_mask_changed_behind_its_back_is_found(small_study: Engine, change: str) -> None:
    mask_responses(small_study, [MaskedText(1, "[author masked]", [(0, 7, "Patient")])])
    assert verify(small_study).findings == ()
    behind(small_study, change)
    assert "since event" in verify(small_study).findings[0]


def test_what_somebody_rated_is_not_masked_afterwards(rated: Engine) -> None:
    assert mask_responses(rated, [MaskedText(1, "x", [(0, 1, "P")])]) == (0, 1)


def test_an_old_message_never_undoes_a_newer_submission(rated: Engine) -> None:
    with rated.connect() as connection:
        code = connection.scalar(text("SELECT code FROM assignment WHERE id = 1"))

    def sent(seq: int) -> bool:
        entered = FormState({"by": "page1", "seq": seq}, 5)
        return submit(rated, 1, str(code), REPLY, entered=entered)

    assert sent(5)
    assert not sent(3)
    with rated.connect() as connection:
        assert connection.scalar(text("SELECT revision FROM assignment WHERE id = 1")) == 3


def test_a_recused_place_goes_to_one_other_clinician(rated: Engine) -> None:
    assign(rated, [Slot("dr_b", 4, 0)], seed=0)
    task = next_task(rated, 2).task
    assert task is not None
    with pytest.raises(BadInput, match="why"):
        recuse(rated, 2, task.card.code, "")
    assert recuse(rated, 2, task.card.code, "I know the patient")
    assert not claim(rated, 2)
    assert claim(rated, 1)
    assert not claim(rated, 1)
    with pytest.raises(NotAllowed):
        submit(rated, 2, task.card.code, REPLY, 5)
    with pytest.raises(NotAllowed):
        save_draft(rated, 2, task.card.code, FormState({"by": "page1", "seq": 99}, 1))


def test_what_cannot_be_rated_is_counted_and_leaves_no_score(small_study: Engine) -> None:
    invite(small_study, ["dr_a"])
    assign(small_study, [Slot("dr_a", 1, 0)], seed=0)
    task = next_task(small_study, 1).task
    assert task is not None
    assert submit(small_study, 1, task.card.code, Reply({}, flags=("not_enough_context",)), 5)
    assert next_task(small_study, 1).task is None
    with small_study.connect() as connection:
        assert connection.scalar(text("SELECT COUNT(*) FROM rating")) == 0
        assert connection.scalar(text("SELECT state FROM assignment")) == "unrated"


def test_the_previous_score_is_kept_with_the_next_one(rated: Engine) -> None:
    with rated.connect() as connection:
        kept = connection.execute(text("SELECT previous FROM assignment ORDER BY id")).scalars()
        assert list(kept) == [None, 2.0]


def test_a_stretch_outside_the_text_is_refused(small_study: Engine) -> None:
    invite(small_study, ["dr_a"])
    assign(small_study, [Slot("dr_a", 1, 0)], seed=0)
    task = next_task(small_study, 1).task
    assert task is not None
    for start, end in ((-1, 3), (5, 5), (0, 10_000)):
        reply = Reply(SCORES, spans=(Marked("accuracy", start, end, "wrong"),))
        with pytest.raises(BadInput, match="not part of its text"):
            submit(small_study, 1, task.card.code, reply, 5)

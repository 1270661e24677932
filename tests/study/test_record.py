"""The record: every act leaves an event, and nothing can be changed behind its back."""

import pytest
from kit.rating_study import task_of
from kit.studies import import_small
from kit.study_place import fill
from sqlalchemy import text

from data.card import Marked, Reply
from data.errors import BadInput, Conflict, NotAllowed
from data.rubric import read_rubric
from data.study.assignments import Slot, assign, claim, recuse
from data.study.masks import MaskedText, mask_responses
from data.study.people import invite
from data.study.ratings import FormState, save_draft, submit
from data.study.rubrics import add_rubric
from data.study.settings import lock, reopen, unblind
from data.study.verify import acts, locked_since, verify

SCORES = {"accuracy": 2, "completeness": 3, "clarity": 5}
REPLY = Reply(SCORES, comment="dose", spans=(Marked("accuracy", 0, 4, "wrong"),), flags=("flag",))


@pytest.fixture(scope="module")
def made(study, tmp_path_factory):
    """Make a study with two ratings, one of them revised, a span and a flag."""
    import_small(study, tmp_path_factory.mktemp("made"))
    invite(study, ["dr_a", "dr_b"])
    assign(study, [Slot("dr_a", n, n) for n in (1, 2)], seed=0, per_response=1)
    for _ in (1, 2):
        task = task_of(study, 1)
        submit(study, 1, task.card.code, REPLY, 5)
        submit(study, 1, task.card.code, Reply({**SCORES, "clarity": 1}), 5)
    return study


@pytest.fixture
def rated(engine, made):
    """Return a copy of the rated study that a test may change."""
    fill(engine, made)
    return engine


def behind(engine, change):
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(text(change))


@pytest.mark.parametrize(  # every cell and row of every table: test_seals
    ("change", "said"),
    [
        ("UPDATE rating SET score = 5 WHERE id = 1", "rating 1, 2, 3: some of them changed since"),
        ("DELETE FROM rating WHERE id = 3", "gone since event"),
        ("UPDATE rating SET id = 100 WHERE id = 1", "rating 100: no event vouches for it"),
        (
            "INSERT INTO rating (response, rater, criterion, score, pass_, replicate, comment, at) "
            "SELECT response, rater, criterion, 5, 0, 0, '', at FROM rating WHERE id = 1",
            "no event vouches for it",
        ),
        ("UPDATE authorship SET model = 'model-two' WHERE response = 1", "since event"),
        ("UPDATE response SET shown = 'Patient has [author masked].' WHERE id = 2", "since event"),
        ("UPDATE response SET shown = NULL WHERE id = 3", "since event"),
        ('UPDATE mask SET "end" = 8 WHERE id = 1', "since event"),
        ("DELETE FROM mask", "since event"),
        ("UPDATE event SET actor = 'nobody' WHERE id = 2", "event"),
        ("DELETE FROM event WHERE id = 3", "event"),
        ("DELETE FROM event WHERE id = (SELECT MAX(id) FROM event)", "event"),
    ],
)
def test_what_was_changed_behind_its_back_is_found(rated, change, said):
    hidden = MaskedText(3, "[author masked] pain.", [(0, 4, "Mild")])
    assert mask_responses(rated, [hidden]) == (1, 0)
    found = verify(rated)
    assert found.findings == ()
    counts = {"rating": 12, "assignment": 2, "response": 4, "remark": 2, "span": 2, "submission": 4}
    assert {name: found.rows[name] for name in counts} == counts
    behind(rated, change)
    assert said in " ".join(verify(rated).findings)


def test_a_mask_changes_what_is_shown_but_never_what_is_stored_or_what_was_rated(rated):
    assign(rated, [Slot("dr_b", 3, 0)], seed=0)
    hidden = MaskedText(3, "[author masked] pain.", [(0, 4, "Mild")])
    assert mask_responses(rated, [hidden, MaskedText(1, "x", [(0, 1, "P")])]) == (1, 1)
    assert task_of(rated, 2).card.response == "[author masked] pain."
    assert verify(rated).findings == ()
    assert mask_responses(rated, [hidden]) == (0, 1)


def test_a_cut_of_the_whole_end_is_found_by_a_hash_kept_elsewhere(rated):
    head = verify(rated).head
    behind(rated, "DELETE FROM rating WHERE id > 9")
    behind(rated, "DELETE FROM submission WHERE id > 3")
    behind(rated, "DELETE FROM event WHERE id = (SELECT MAX(id) FROM event)")
    behind(rated, "UPDATE assignment SET revision = 1 WHERE id = 2")
    assert verify(rated).findings == ()
    assert "cut or rewritten" in verify(rated, head).findings[0]


def test_reasons_are_recorded_and_a_locked_study_takes_nothing_until_it_is_reopened(rated):
    assert unblind(rated, "coordinator", "analysis")[0] == ("r11", "model-one")
    assert acts(rated, "unblinded")[0].detail == {"reason": "analysis"}
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


def test_a_recused_place_goes_to_one_other_clinician(rated):
    assign(rated, [Slot("dr_b", 4, 0)], seed=0)
    task = task_of(rated, 2)
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

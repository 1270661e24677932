"""Time is estimated from words, from the study's own pace, or as somebody says."""

from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.studies import Run
from sqlalchemy import Engine, event, text

from data.pace import FEWEST_SHOWINGS, Pace, PaceSource, Timed, Work, measured, stated
from data.study.assignments import (
    Slot,
    assign,
    pace_of,
    timed_showings,
    words_left,
    work_of_responses,
)
from data.study.masks import MaskedText, mask_responses
from data.study.people import invite

Write = Callable[[str, str], Path]
HEADER = "instance_id,benchmark,context,prompt,response_id,model,response\n"
SHORT = 'i1,visits,"one two\r\nthree",four five,r1,a,"  six\n\n seven   eight "\n'
LONG = f"i2,visits,{'word ' * 100},ask,r2,b,{'word ' * 37}\n"


@pytest.fixture
def study(run: Run, engine: Engine, write: Write) -> Engine:
    """Two responses of 8 and 138 words on a rubric of some criteria, both given to one clinician."""
    assert run("study", "import", str(write("two.csv", HEADER + SHORT + LONG)))[0] == 0
    invite(engine, ["dr_a"])
    assign(engine, [Slot("dr_a", 1, 0), Slot("dr_a", 2, 1)], seed=0)
    return engine


def submitted(engine: Engine, seconds: float) -> None:
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(
            text("UPDATE assignment SET state = 'done', seconds_active = :s WHERE position = 0"),
            {"s": seconds},
        )


def test_words_alone_give_minutes_at_the_published_reading_speed() -> None:
    assert Pace().minutes(Work(showings=1, words=238)) == pytest.approx(1)
    assert Pace().minutes(Work(showings=1, words=238, criteria=3)) == pytest.approx(1.5)


def test_what_somebody_says_holds_whatever_the_length() -> None:
    assert stated(3).minutes(Work(4, 10_000, 12)) == pytest.approx(12)
    assert stated(3).source == PaceSource.SAID


def test_the_measured_pace_is_the_median_of_seconds_per_word_by_hand() -> None:
    timed = [Timed(100.0, 100, 20)] * 10 + [Timed(200.0, 100, 20)] * 11
    timed += [Timed(0.0, 100, 20), Timed(5.0, 0, 0)]
    pace = measured(timed)
    assert (pace.source, pace.timed, pace.seconds_per_word) == (PaceSource.MEASURED, 21, 2.0)
    assert pace.minutes(Work(2, 300, 6)) == pytest.approx(10)


def test_who_is_faster_than_a_response_can_be_scanned_is_in_no_pace() -> None:
    hasty, just = Timed(8.0, 900, 100), Timed(9.0, 900, 100)  # 600 words a minute, and a second
    assert (hasty.is_hasty, just.is_hasty) == (True, False)
    assert measured([hasty] * FEWEST_SHOWINGS) == Pace()
    mixed = measured([hasty] * 30 + [Timed(90.0, 900, 100)] * FEWEST_SHOWINGS)
    assert (mixed.timed, mixed.seconds_per_word) == (FEWEST_SHOWINGS, 0.1)


def test_few_timed_showings_leave_the_estimate_to_words() -> None:
    assert measured([Timed(100.0, 10, 5)] * (FEWEST_SHOWINGS - 1)) == Pace()
    assert measured([Timed(100.0, 10, 5)] * FEWEST_SHOWINGS).seconds_per_word == 10


@given(st.lists(st.floats(1, 1e4), min_size=41, max_size=81), st.floats(1e5, 1e9))
def test_a_few_showings_left_open_over_night_move_the_pace_within_the_others(
    seconds: list[float], night: float
) -> None:
    usual = measured([Timed(one, 100, 0) for one in seconds])
    disturbed = measured([Timed(one, 100, 0) for one in [*seconds, night, night]])
    assert usual.seconds_per_word == median(one / 100 for one in seconds)
    assert disturbed.seconds_per_word <= max(seconds) / 100


def test_words_left_counts_source_task_and_response_of_open_showings(study: Engine) -> None:
    work = work_of_responses(study)
    assert [one.words for one in work.values()] == [8, 138]
    each = work[1].criteria
    assert each > 0
    assert words_left(study, 1) == Work(2, 146, 2 * each)
    submitted(study, 40)
    assert words_left(study, 1) == Work(1, 138, each)
    assert words_left(study, 99) == Work()


def test_a_masked_response_counts_as_it_is_shown(study: Engine) -> None:
    with study.execution_options(writes=True).begin() as connection:
        connection.execute(text("UPDATE response SET shown = 'one two' WHERE id = 2"))
    assert words_left(study, 1).words == 8 + 101 + 2


def test_words_are_counted_once_and_anew_where_a_place_was_masked_since(study: Engine) -> None:
    asked: list[str] = []
    event.listen(study, "before_cursor_execute", lambda *given: asked.append(given[2]))
    before = words_left(study, 1)
    assert any("replace" in one for one in asked)
    asked.clear()
    assert words_left(study, 1) == before
    assert not any("replace" in one for one in asked)
    mask_responses(study, [MaskedText(2, "one two", ((0, 3, "abc"),))])
    assert words_left(study, 1).words == 8 + 101 + 2


def test_submitted_showings_are_timed_and_those_of_simulated_raters_are_not(study: Engine) -> None:
    submitted(study, 40)
    assert timed_showings(study) == timed_showings(study, 1) == [Timed(40.0, 8, 3)]
    assert timed_showings(study, 2) == []
    with study.execution_options(writes=True).begin() as connection:
        connection.execute(text("UPDATE rater SET simulated = 1"))
    assert timed_showings(study) == []


def test_a_study_without_times_is_estimated_from_words_unless_minutes_are_said(
    study: Engine,
) -> None:
    assert pace_of(study) == pace_of(study, rater=1) == Pace()
    assert pace_of(study, 2.5) == stated(2.5)

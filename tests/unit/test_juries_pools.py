"""Juries without an ICC, and resamples without one."""

import math

from kit.composites import NAN, simulate
from kit.scores import note_of, scope_of

from calibration.juries import jury_ranking


def test_a_juror_without_scores_or_variance_sits_nowhere_and_is_named():
    table = simulate(jurors=3)
    table[:, 4], table[:, 5] = 4.0, NAN
    found = jury_ranking(scope_of(table, 3))
    assert found.pool == ("j0",)
    assert "left out, with no scores or all scores equal: j1, j2" in note_of(found)


def test_a_jury_that_gives_all_common_responses_the_same_score_has_no_icc_and_says_why():
    table = simulate(jurors=2)
    table[:30, 3], table[30:, 4] = 4.0, NAN
    found = jury_ranking(scope_of(table, 3, reps=20))
    lost = found.rows[-1]
    assert (lost.jurors, lost.rank, lost.on_front) == (("j0",), None, False)
    assert math.isnan(lost.icc)
    assert note_of(lost) == "undefined: the jury gave all these responses the same score"
    assert [row.jurors for row in found.by_size] == [("j1",), ("j0", "j1")]


def test_no_resamples_give_iccs_with_the_jackknife_alone():
    found = jury_ranking(scope_of(simulate(), 3, reps=0))
    assert math.isfinite(found.winner.icc)
    assert found.winner.low < found.winner.icc < found.winner.high
    assert math.isnan(found.winner.icc_honest)

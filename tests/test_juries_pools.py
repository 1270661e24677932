"""Juries without an ICC, and resamples without one."""

import math

from kit.composites import NAN, simulate
from kit.scores import note_of, scope_of

from calibration.juries.ranking import RankingOptions, jury_ranking


def test_a_juror_without_scores_or_variance_sits_nowhere_and_is_named():
    table = simulate(jurors=3)
    table[:, 4], table[:, 5] = 4.0, NAN
    found = jury_ranking(scope_of(table, 3), RankingOptions())
    assert found.pool == ("j0",)
    assert "left out, with no scores or all scores equal: j1, j2" in note_of(found)


def test_a_jury_whose_members_never_rated_the_same_has_no_icc_and_says_why():
    table = simulate(jurors=3)
    table[:30, 3], table[30:, 4] = NAN, NAN
    found = jury_ranking(scope_of(table, 3, reps=20), RankingOptions())
    lost = found.rows[-1]
    assert math.isnan(lost.icc)
    assert lost.rank is None
    assert (lost.n_responses, lost.on_front) == (0, False)
    assert note_of(lost) == "undefined: no response has all the scores needed, and 3 are required"
    assert {row.jurors for row in found.rows if row.rank is None} == {
        ("j0", "j1"),
        ("j0", "j1", "j2"),
    }


def test_no_resamples_give_iccs_without_intervals():
    found = jury_ranking(scope_of(simulate(), 3, reps=0), RankingOptions())
    assert math.isfinite(found.winner.row.icc)
    assert math.isnan(found.winner.row.low)
    assert math.isnan(found.winner.row.icc_honest)

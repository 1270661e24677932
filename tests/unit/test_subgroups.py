"""Subgroups: by hand and by resampling, a planted difference found, none cried at nothing."""

import math
from dataclasses import replace

import numpy as np
import pytest
from kit.composites import TWO_JURORS, grid_of
from kit.scores import rated, study
from scipy import stats

from calibration.columns import column_icc, columns
from calibration.differences import holm
from calibration.intervals import icc_difference, left_out
from calibration.notes import told
from calibration.protocol import Critical
from calibration.scores import Scores
from calibration.subgroups import Finding, group_names, subgroup_rows
from calibration.values import AnalysisOptions
from calibration.weighted import scorer_iccs
from data.errors import Unknown


def rows_of(scores, names=(), critical=()):
    found = subgroup_rows(scores, AnalysisOptions(), names, critical)
    return {(row.group, row.value): row for row in found}


def drawn(random, n, noise, per=1):
    """Return two clinicians and two jurors of n responses; the jury errs by `noise` as one."""
    quality = 0.5 * random.normal(size=(n // per, 1)).repeat(per, axis=0)
    quality = 3.2 + quality + 0.85 * random.normal(size=(n, 1))
    clinicians = quality + 0.8 * random.normal(size=(n, 2))
    jury = 0.3 + quality + noise * random.normal(size=(n, 1)) + 0.4 * random.normal(size=(n, 2))
    return np.clip(np.round(np.hstack([clinicians, jury]) * 3) / 3, 1, 5)


def apart(grid, first):
    """Return the difference of the jury's ICC on some responses to that on the rest."""
    weights, sides = left_out(grid.n_clusters), (grid.only(first), grid.only(~first))
    iccs = (scorer_iccs(one, [TWO_JURORS], "paper", weights)[:, 0] for one in sides)
    return icc_difference(*iccs)


def halves(scores, values=("de", "en"), name="language"):
    """Return a study whose responses are in one of some groups, in turn."""
    ids = scores.responses["response_id"]
    of = {one: values[i % len(values)] for i, one in enumerate(ids)}
    return replace(scores, groups={name: of})


def test_a_subgroups_icc_is_that_of_a_study_of_its_responses_alone():
    scores = halves(study(n=80, seed=4))
    row = rows_of(scores)["language", "de"]
    own = {one for one, value in scores.groups["language"].items() if value == "de"}
    tables = (one[one["response_id"].isin(own)] for one in (scores.ratings, scores.responses))
    alone = Scores(*tables, scores.rubrics, groups={"all": dict.fromkeys(own, "in")})
    whole = rows_of(alone)["all", "in"]
    assert (row.n, row.icc) == (40, pytest.approx(whole.icc))
    assert (row.low, row.high, row.bias) == pytest.approx((whole.low, whole.high, whole.bias))
    assert math.isnan(whole.difference)
    assert "only_value" in {one.code for one in whole.notes}


def test_bias_is_the_mean_of_jury_minus_clinicians_with_students_interval():
    # one response an instance: 1, 0, 2, 1, ... above the clinicians
    gaps = np.tile([1.0, 0.0, 2.0, 1.0], 10)
    groups = {"sex": ["f"] * 20 + ["m"] * 20}
    row = rows_of(rated([[2.0]] * 40, (2 + gaps)[:, None], groups=groups))["sex", "f"]
    ends = stats.t.interval(0.95, 19, gaps[:20].mean(), stats.sem(gaps[:20]))
    assert row.bias == 1
    assert (row.bias_low, row.bias_high) == pytest.approx(ends)
    assert math.isnan(row.icc)  # the clinicians do not vary
    assert row.finding is Finding.NOT_SHOWN


def test_an_interval_of_a_difference_excludes_0_exactly_where_p_is_below_5_in_100():
    random, seen = np.random.default_rng(2), set()
    for _ in range(60):
        table = np.vstack([drawn(random, 40, 0.4), drawn(random, 60, 1.2)])
        first = np.arange(100) < 40
        found = apart(grid_of(table), first)
        excludes = not found.low <= 0 <= found.high
        assert excludes == (found.p < 0.05)
        seen.add(excludes)
    assert seen == {True, False}


def test_two_values_of_a_group_are_one_test_and_of_all_subgroups_p_is_holms():
    found = rows_of(halves(study(n=90, seed=1)))
    one, other = found["language", "de"], found["language", "en"]
    mirrored = -other.difference, -other.difference_high
    assert (one.difference, one.difference_low) == pytest.approx(mirrored)
    assert (other.p, one.p_holm) == pytest.approx((one.p, one.p))  # nothing else was tested
    found = [*rows_of(halves(study(n=120, seed=1), ("a", "b", "c"))).values()]
    for own, corrected in (("p", "p_holm"), ("bias_p", "bias_p_holm")):
        p = np.array([getattr(row, own) for row in found])
        assert [getattr(row, corrected) for row in found] == pytest.approx(holm(p))


def test_a_subgroup_of_too_few_instances_says_so_and_is_not_tested():
    scores = study(n=60)
    ids = [*scores.responses["response_id"]]
    groups = {"language": {one: "fr" if i < 8 else "en" for i, one in enumerate(ids)}}
    found = rows_of(replace(scores, groups=groups))
    few, rest = found["language", "fr"], found["language", "en"]
    assert (few.n_instances, few.finding) == (8, Finding.TOO_FEW)
    assert math.isnan(few.p)
    assert "not shown to hold for fr: 8 instances, and 20 are needed" in told(few.notes)
    assert "not compared: the rest have 8 instances" in told(rest.notes)
    assert math.isnan(rest.p_holm)


def test_a_jury_that_errs_in_one_language_is_lower_there_and_is_said_to_be():
    random = np.random.default_rng(3)
    table = np.vstack([drawn(random, 150, 1.8), drawn(random, 250, 0.3)])
    groups = {"language": ["de"] * 150 + ["en"] * 250}
    found = rows_of(rated(table[:, :2], table[:, 2:], groups=groups))
    row = found["language", "de"]
    assert row.finding is Finding.LOWER
    assert row.difference < -0.15
    assert row.difference_high < 0
    assert "not shown to hold for de as for the rest" in told(row.notes)
    assert found["language", "en"].finding is Finding.SHOWN


def test_a_jury_more_generous_to_one_group_is_said_to_be():
    random = np.random.default_rng(4)
    table = drawn(random, 120, 0.3)
    table[:60, 2:] = np.clip(table[:60, 2:] + 0.7, 1, 5)
    row = rows_of(rated(table[:, :2], table[:, 2:], groups={"age": ["old"] * 60 + ["young"] * 60}))
    old = row["age", "old"]
    assert old.bias_p_holm < 0.05
    assert old.bias_difference > 0.3
    assert "points more generous on old than on the rest" in told(old.notes)


def test_misses_are_counted_in_each_subgroup_on_critical_criteria():
    # unsafe 1 1 1 5 5 5; the jury misses the first
    clinicians, jury = [[1.0]] * 3 + [[5.0]] * 3, [[5.0]] + [[1.0]] * 2 + [[5.0]] * 3
    groups = {"sex": ["f", "f", "m", "m", "f", "f"]}
    found = rows_of(rated(clinicians, jury, groups=groups))
    women, men = found["sex", "f"].unsafe[0], found["sex", "m"].unsafe[0]
    assert (women.n_bad, women.n_missed, women.sensitivity) == (2, 1, 0.5)
    assert (men.n_bad, men.n_missed, men.sensitivity) == (1, 0, 1)
    assert women.sensitivity_low < 0.1
    assert rows_of(halves(study(n=40)))["language", "de"].unsafe == ()
    fixed = rows_of(halves(study(n=40)), critical=[Critical("clarity", 2.0)])
    assert fixed["language", "de"].unsafe[0].criterion == "clarity"


def test_a_group_that_the_study_lacks_is_named_with_those_it_has():
    with pytest.raises(Unknown, match=r"no group lnguage: it has language"):
        rows_of(halves(study(n=20)), ["lnguage"])
    with pytest.raises(Unknown, match="no column group:NAME"):
        rows_of(study(n=20), ["language"])
    assert rows_of(study(n=20)) == {}


def test_specialties_group_clinicians_on_the_same_responses_and_simulated_raters_are_named():
    of = {"dr0": "gp", "dr1": "gp", "dr2": "onc", "dr3": "onc"}
    scores = replace(study(n=80, seed=5, simulated={"gpt"}), specialties=of)
    found = rows_of(scores)
    of_gp = scores.ratings[scores.ratings["rater"].isin(["dr0", "dr1"])]
    assert group_names(scores) == ["specialty"]
    assert found["specialty", "gp"].n == of_gp["response_id"].nunique()
    assert found["specialty", "gp"].p == pytest.approx(found["specialty", "onc"].p)
    assert all(row.simulated == ("gpt",) for row in found.values())


@pytest.mark.slow
@pytest.mark.parametrize(("sizes", "per"), [((20, 100), 1), ((60, 60), 2)])
def test_intervals_of_differences_cover_and_none_is_cried_at_nothing(sizes, per):
    random, held, cried = np.random.default_rng(sum(sizes)), [], []
    truths = [_truth(random, noise, per) for noise in (0.5, 1.3)]
    for _ in range(700):
        held.append(_apart(random, sizes, (0.5, 1.3), per, truths[0] - truths[1])[0])
        cried.append(_apart(random, sizes, (0.8, 0.8), per, 0.0)[1])
    assert 0.93 <= np.mean(held) <= 0.985
    assert np.mean(cried) <= 0.065


@pytest.mark.slow
def test_a_difference_of_2_tenths_is_found_among_300_responses():
    random = np.random.default_rng(11)
    gap = _truth(random, 0.45, 1) - _truth(random, 1.3, 1)
    found = [_apart(random, (100, 200), (0.45, 1.3), 1, gap)[1] for _ in range(300)]
    assert gap == pytest.approx(0.2, abs=0.03)
    assert np.mean(found) >= 0.8


def _truth(random, noise, per):
    grid = grid_of(drawn(random, 40_000, noise, per), np.arange(40_000) // per)
    pair = columns(grid, TWO_JURORS, "paper")
    return column_icc(pair.clinicians, pair.scorer, "paper")


def _apart(random, sizes, noises, per, gap):
    """Tell whether an interval holds the true gap, and whether p is at most 5 in 100."""
    parts = [drawn(random, n, noise, per) for n, noise in zip(sizes, noises, strict=True)]
    places = np.arange(sum(sizes))
    grid, first = grid_of(np.vstack(parts), places // per), places < sizes[0]
    found = apart(grid, first)
    return found.low <= gap <= found.high, found.p <= 0.05

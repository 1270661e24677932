"""Difference regressed on mean: statsmodels, Pitman's identity, simulation, and the words."""

import re
from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from little_study import study
from report_study import content_of
from scipy import stats
from test_bland_altman import LARGE, MINI

from calibration.bootstrap import draw_counts
from calibration.f_interval import Interval
from calibration.proportional import proportional, slope_replicates, uneven_note
from calibration.report.page import in_points, page
from calibration.report.uneven import uneven, uneven_facts

LARGE, MINI = np.array(LARGE, float), np.array(MINI, float)


def ends(interval):
    return (interval.low, interval.high)


def test_slope_and_interval_are_those_of_statsmodels():
    found = proportional(LARGE, MINI)
    theirs = sm.OLS(MINI - LARGE, sm.add_constant((MINI + LARGE) / 2)).fit()
    assert found.slope == pytest.approx(theirs.params[1])
    assert ends(found.interval) == pytest.approx(theirs.conf_int()[1])
    at = np.percentile((MINI + LARGE) / 2, [10, 90])
    assert ends(found.at) == pytest.approx(at)
    assert ends(found.fitted) == pytest.approx(theirs.predict(sm.add_constant(at)))


def test_the_slope_is_pitmans_test_of_equal_spread():
    # Pitman (1939): var x = var y is tested by the correlation of x - y and x + y.
    found, n = proportional(LARGE, MINI), len(LARGE)
    r, p = stats.pearsonr(MINI - LARGE, MINI + LARGE)
    middle, apart = (MINI + LARGE) / 2, MINI - LARGE
    assert found.slope == pytest.approx(r * apart.std() / middle.std())
    half = (found.interval.high - found.interval.low) / 2
    t = found.slope / (half / stats.t.ppf(0.975, n - 2))
    assert 2 * stats.t.sf(abs(t), n - 2) == pytest.approx(p)
    assert found.sd_ratio == pytest.approx(MINI.std() / LARGE.std())


def test_equal_spreads_have_no_slope_and_a_stretched_scale_has_one():
    assert proportional(LARGE, LARGE[::-1] + 7).slope == pytest.approx(0)
    # y = 2 x: the difference is x, the mean 1.5 x.
    found = proportional(LARGE, 2 * LARGE)
    assert (found.slope, found.sd_ratio) == pytest.approx((2 / 3, 2))
    mirrored = proportional(2 * LARGE, LARGE)
    assert mirrored.slope == pytest.approx(-2 / 3)


def test_the_interval_covers_no_slope_19_times_in_20():
    random = np.random.default_rng(0)
    quality = random.normal(size=(1500, 40))
    x, y = (quality + 0.7 * random.normal(size=quality.shape) for _ in range(2))
    hits = [found.interval.low < 0 < found.interval.high for found in map(proportional, x, y)]
    assert np.mean(hits) == pytest.approx(0.95, abs=0.02)


def test_a_replicate_is_the_slope_of_the_resample_written_out():
    random = np.random.default_rng(1)
    clusters = random.integers(0, 9, 50)
    clusters[:9] = range(9)
    apart, middle = random.normal(size=(2, 50, 2))
    middle = 300 + middle
    lost = random.random((50, 2)) < 0.3
    apart[lost] = middle[lost] = np.nan
    counts = next(draw_counts(9, reps=7, seed=2))
    drawn = slope_replicates(apart, middle, clusters, 9)(counts)
    for resample, ours in zip(counts, drawn, strict=True):
        rows = np.repeat(np.arange(50), resample[clusters].astype(int))
        for scorer in range(2):
            own = rows[~lost[rows, scorer]]
            slope = np.polyfit(middle[own, scorer], apart[own, scorer], 1)[0]
            assert ours[scorer] == pytest.approx(slope)


def test_too_few_or_equal_means_have_no_slope():
    for x, y in (([1, 2], [2, 1]), ([1, 2, 3], [3, 2, 1]), ([], [])):
        assert np.isnan(proportional(np.array(x, float), np.array(y, float)).slope)
    flat = proportional(np.full(4, 3.0), np.arange(4.0))
    assert (flat.slope, np.isnan(flat.sd_ratio)) == (pytest.approx(2), True)


@pytest.mark.parametrize("low_high", [(-0.1, 0.2), (0.0, 0.2), (float("nan"), float("nan"))])
def test_nothing_is_said_where_the_interval_includes_0_or_is_none(low_high):
    assert uneven_note(proportional(LARGE, MINI), Interval(*low_high)) is None


@pytest.fixture(scope="module")
def squeezed():
    """Return the report of a jury whose points lie half as far from 3 as the clinicians'."""
    scores = study(n=60, per=2)
    ratings = scores.ratings.copy()
    own = ratings["kind"] == "juror"
    ratings.loc[own, "score"] = 3 + 0.5 * (ratings.loc[own, "score"] - 3)
    return content_of(replace(scores, ratings=ratings), reps=60)


def test_a_jury_off_at_both_ends_is_said_so_in_verdict_section_2_and_caption(squeezed):
    said = uneven(squeezed, "aci")
    assert "the 10th percentile) the jury is" in said
    assert re.search(r"the 10th percentile\) the jury is 0\.\d\d points more generous", said)
    assert re.search(r"the 90th\) it is 0\.\d\d points stricter\.$", said)
    assert said in in_points(squeezed, "aci")
    text = page(squeezed)
    assert text.count(said) == 3
    row = next(one for one in squeezed.of("other_measures", "aci") if one.scorer == "jury")
    assert row.slope < row.slope_high < 0
    assert 0.4 < row.sd_ratio < 0.7
    [(title, fact)] = uneven_facts(squeezed)
    assert title == "Not the same everywhere: aci"
    assert "noise alone can do this too" in fact


def test_a_jury_that_is_off_by_a_constant_alone_has_no_such_sentence():
    content = content_of(study(n=40), reps=20)
    assert uneven(content, "aci") == ""
    assert uneven_facts(content) == []
    assert "not the same everywhere" not in page(content)

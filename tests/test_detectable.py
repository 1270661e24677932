import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import NormalIndPower

from calibration.models.gaps import detectable_row, exact_mde, paper_mde
from calibration.notes import told
from calibration.scores import RubricShape

NAN = float("nan")
FIVE = RubricShape(("accuracy",), 1, 5)


def test_the_papers_formula_by_hand():
    # d = 1, -1, 1, -1: mean 0, SD (ddof 0) 1, n 4: 2.8 * 1 / 2
    assert paper_mde(np.array([1.0, -1, 1, -1])) == pytest.approx(1.4)


def test_the_exact_one_by_hand():
    # The same: SD (ddof 1) sqrt(4/3), z 1.959964 + 0.841621
    expected = (1.959963984540054 + 0.8416212335729143) * np.sqrt(4 / 3) / 2
    assert exact_mde(np.array([1.0, -1, 1, -1])) == pytest.approx(expected)


def test_the_exact_one_is_what_statsmodels_has_80_percent_power_for():
    d = np.random.default_rng(0).normal(size=60)
    effect = exact_mde(d) / d.std(ddof=1)
    power = NormalIndPower(ddof=0).power(effect, nobs1=60, alpha=0.05, ratio=0)
    assert power == pytest.approx(0.8, abs=1e-5)


def test_a_row_is_the_mean_over_pairs_and_the_paper_divides_by_five():
    # d of a and b: 1, -1, 1, -1 points; a and c: 2, 0, 2, 0; b and c: 1, 1, 1, 1, without SD.
    points = np.array([[5.0, 3, 5, 3], [4, 4, 4, 4], [3, 3, 3, 3]])
    row = detectable_row("notes", "jury", points, FIVE)
    assert row.mde == pytest.approx((1.4 + 1.4 + 0) / 5 / 3)
    exact = exact_mde(np.array([1.0, -1, 1, -1]))
    assert row.mde_exact == pytest.approx(2 * exact / 4 / 3)
    assert (row.n_instances, row.n_pairs) == (4, 3)
    # a and b: mean 0 of 1.62 points; a and c: 1 of 1.62; b and c: 1 of 0.
    assert "2 of 3 pairs of models are seen to differ by less" in told(row.notes)


def test_pairs_are_compared_on_what_both_have_and_counted():
    points = np.array([[5.0, 3, 4, NAN], [4, 4, NAN, 2], [NAN, NAN, 3, NAN]])
    row = detectable_row("notes", "clinicians", points, FIVE)
    assert row.n_pairs == 1
    assert row.n_instances == 3
    assert "2 pairs left out for sharing fewer than 2" in told(row.notes)
    assert row.mde == pytest.approx(paper_mde(np.array([1.0, -1])) / 5)
    assert "fewer than 20 instances" in told(row.notes)


def test_a_model_without_a_score_here_is_in_no_pair():
    points = np.array([[5.0, 3, 4], [4, 4, 2], [NAN, NAN, NAN]])
    row = detectable_row("notes", "clinicians", points, FIVE)
    assert row.n_pairs == 1
    assert "left out" not in told(row.notes)


def test_without_a_pair_it_is_undefined_and_says_why():
    row = detectable_row("notes", "jury", np.array([[5.0, 3, 4]]), FIVE)
    assert np.isnan([row.mde, row.mde_exact]).all()
    assert told(row.notes).startswith("undefined")
    assert np.isnan([paper_mde(np.empty(0)), exact_mde(np.array([1.0]))]).all()


def test_a_scale_that_ends_at_zero_has_no_figure_by_the_papers_formula():
    shape = RubricShape(("accuracy",), -4, 0)
    row = detectable_row("notes", "jury", np.array([[-1.0, -2, -3], [-2, -2, -1]]), shape)
    assert np.isnan(row.mde)
    assert row.mde_exact > 0
    assert "divides by the top" in told(row.notes)


@pytest.mark.parametrize("how", [paper_mde, exact_mde])
def test_shift_scale_and_order(how):
    d = np.random.default_rng(1).normal(size=40)
    assert how(d + 7) == pytest.approx(how(d))
    assert how(-3 * d) == pytest.approx(3 * how(d))
    assert how(d[::-1]) == pytest.approx(how(d))


@pytest.mark.slow
def test_four_in_five_studies_find_a_difference_of_this_size():
    random = np.random.default_rng(2)
    n, sd = 80, 0.9
    true = (1.96 + 0.84) * sd / np.sqrt(n)
    found = [stats.ttest_1samp(random.normal(true, sd, n), 0).pvalue < 0.05 for _ in range(4000)]
    assert np.mean(found) == pytest.approx(0.8, abs=0.025)

"""How many responses and clinicians: for a width of the interval, and to show that a jury is no worse."""

import math

import numpy as np
import pytest
from kit.composites import JURY, TWO_JURORS
from kit.composites import grid_of as two_jurors_grid
from kit.verdict_studies import Design, drawn, grid_of, loading, points, verdicts
from pandas import DataFrame

from calibration import planning
from calibration.clinicians import like_for_like
from calibration.intervals import jackknife_interval, left_out
from calibration.planning import (
    PlanRow,
    SimulatedStudies,
    assumed_rows,
    icc_with_mean,
    latent_icc,
    n_for_width,
    single_of,
    with_power,
)
from calibration.values import PlanOptions
from calibration.weighted import scorer_iccs


def raters(single, clinicians, studies, n, seed=0):
    """Return scores of clinicians and of a jury like them, shape (studies, n, clinicians + 1)."""
    random = np.random.default_rng(seed)
    worth = np.sqrt(single) * random.normal(size=(studies, n, 1))
    return worth + np.sqrt(1 - single) * random.normal(size=(studies, n, clinicians + 1))


def calibrated(scores):
    """Return the jury's ICC, then without each response, of one study as calibrate computes them."""
    table = DataFrame(scores[:, :-1], columns=[f"dr{i}" for i in range(scores.shape[1] - 1)])
    grid = grid_of(table.assign(**dict.fromkeys(JURY.members, scores[:, -1])))
    return scorer_iccs(grid, [JURY], "paper", left_out(len(scores)))[:, 0]


@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_icc_with_the_mean_of_clinicians_is_that_of_a_large_study(k):
    (large,) = raters(0.4, k, 1, 200_000)
    z = (large - large.mean(axis=0)) / large.std(axis=0)
    cov = np.cov(z[:, :-1].mean(axis=1), z[:, -1])
    assert icc_with_mean(0.4, k) == pytest.approx(4 * cov[0, 1] / cov.sum(), abs=0.01)
    assert single_of(icc_with_mean(0.4, k), k) == pytest.approx(0.4)


@pytest.mark.parametrize("k", [1, 2])
def test_the_widths_are_those_of_the_intervals_that_calibrate_computes(k):
    scores = raters(0.4, k, 60, 80)
    studies = SimulatedStudies(scores[:, :, :-1], scores[:, :, -1], np.ones((80, k), dtype=bool))
    ends = [jackknife_interval(calibrated(one)) for one in scores]
    widths = np.array([end.high - end.low for end in ends])

    mean, assured = studies.widths(80, 0.8)

    assert mean == pytest.approx(widths.mean(), rel=0.03)
    assert assured == pytest.approx(np.quantile(widths, 0.8), rel=0.04)


@pytest.mark.slow
@pytest.mark.parametrize(("single", "k"), [(0.31, 1), (0.31, 2), (0.5, 2), (0.4, 3)])
@pytest.mark.parametrize("width", [0.2, 0.3])
def test_the_numbers_give_the_width_with_assurance_and_the_intervals_hold_the_truth(
    single, k, width
):
    n = n_for_width(single, k, 0.0, width)
    row = PlanRow("", single, k, k)
    studies = SimulatedStudies.of(row, n, seed=1)
    found = [jackknife_interval(calibrated(one)) for one in raters(single, k, 200, n, seed=1)]
    widths = np.array([end.high - end.low for end in found])
    truth = icc_with_mean(single, k)
    assert np.mean(widths <= width) >= 0.72
    assert studies.widths(n, 0.8)[1] == pytest.approx(width, rel=0.05)
    assert np.mean([end.low <= truth <= end.high for end in found]) >= 0.9


def test_a_narrower_interval_more_assurance_or_a_ceiling_take_more_responses():
    few = n_for_width(0.5, 2, 0.0, 0.3)
    assert n_for_width(0.5, 2, 0.0, 0.15) > 2.5 * few
    assert n_for_width(0.5, 2, 0.0, 0.3, assurance=0.95) > few
    assert n_for_width(0.5, 2, 0.7, 0.3) > 1.3 * few


def planned(single, responses, margin=0.1, clinicians=2, per_response=2, ceiling=0.0):
    """Return what a study shows at a margin."""
    row = PlanRow("assumed", single, per_response, clinicians, ceiling, n=responses)
    return with_power(row, SimulatedStudies.of(row, responses, 0), margin, 0.8)


def closed_form_sd(rho, n):
    """Return the SD of like for like with two clinicians and a jury like them, all crossed.

    The correlations of three raters with rho in common have variance v = (1 - rho^2)^2 / n and,
    sharing a rater, covariance k (Olkin & Siotani 1976); the difference is of the mean of two and
    the third, 1.5 (v - k), by the delta method for 2 r / (1 + r).
    """
    v = (1 - rho**2) ** 2
    k = (2 * rho - rho**2) * (1 - 3 * rho**2) / 2 + rho**3
    return 2 / (1 + rho) ** 2 * math.sqrt(1.5 * (v - k) / n)


@pytest.fixture
def alike(monkeypatch):
    """Let no clinician agree better than another."""
    monkeypatch.setattr(planning, "SPREAD", 0.0)


@pytest.mark.usefixtures("alike")
@pytest.mark.parametrize("rho", [0.4, 0.7])
def test_the_spread_between_studies_is_that_of_the_closed_form(rho):
    jury, clinician = SimulatedStudies.of(PlanRow("", rho, 2, 2), 300, 0).iccs([0, 1])
    assert (jury - clinician).std() == pytest.approx(closed_form_sd(rho, 300), rel=0.08)


@pytest.mark.slow
@pytest.mark.usefixtures("alike")
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("design", "beside"),
    [
        (Design(2, 0.4, 300), 0.12),
        (Design(3, 0.4, 300), 0.12),
        (Design(6, 0.4, 300, readers=2), 0.12),
        (Design(4, 0.4, 300, ceiling=True), 0.2),  # its interval is wider where scores pile up
    ],
)
def test_the_power_is_how_often_the_verdict_itself_says_no_worse(design, beside):
    random = np.random.default_rng(3)
    found = verdicts(drawn(design, loading(design, 0.0), random) for _ in range(200))
    readers, top = design.readers or design.clinicians, 0.7 if design.ceiling else 0.0
    row = planned(0.4, 300, 0.1, design.clinicians, readers, top)
    assert row.power == pytest.approx(found["non_inferior"] / 200, abs=beside)
    if design.clinicians > 2:
        share = found["clinicians_like_these"] / 200
        assert row.power_like_these == pytest.approx(share, abs=0.08)


def test_more_responses_readers_a_wider_margin_and_no_ceiling_show_more():
    def power(margin=0.1, **changed):
        return planned(0.4, margin=margin, **{"responses": 300} | changed).power

    assert power() < power(responses=600)
    assert power() < power(0.15)
    assert power(clinicians=3, per_response=2) < power(clinicians=3, per_response=3)
    assert power(ceiling=0.7) < power() - 0.1
    few, many = (planned(0.4, 600, 0.1, clinicians, clinicians) for clinicians in (3, 6))
    assert math.isnan(planned(0.4, 600).power_like_these)
    assert few.power_like_these < many.power_like_these - 0.2
    assert few.power_like_these <= few.power


def test_a_margin_above_half_of_what_clinicians_agree_is_never_shown_however_many_responses():
    found = planned(0.1, 2000)  # 2 r / (1 + r) is 0.18, below twice 0.1
    assert (found.power, found.n_for_power) == (0.0, None)


def test_as_many_responses_as_are_needed_show_it_as_often_as_wanted():
    needed = planned(0.5, 300).n_for_power
    assert 0.72 < planned(0.5, needed).power < 0.88


@pytest.mark.parametrize("clinicians", [2, 4])
def test_what_is_simulated_is_the_agreement_tables_like_for_like(clinicians):
    random = np.random.default_rng(clinicians)
    raters = random.normal(size=(80, 1)) + random.normal(size=(80, clinicians + 1))
    read = random.random((80, clinicians)) < 0.8
    table = np.column_stack([np.where(read, raters[:, :-1], np.nan), raters[:, -1], raters[:, -1]])
    studies = SimulatedStudies(raters[None, :, :-1], raters[None, :, -1], read)
    jury, clinician = studies.iccs(range(clinicians))
    expected = like_for_like(two_jurors_grid(table), TWO_JURORS, "paper").iccs
    assert (float(jury[0]), float(clinician[0])) == pytest.approx(expected, abs=1e-12)


def test_scores_at_a_ceiling_have_the_icc_that_is_planned_for():
    rho, random = latent_icc(0.4, 0.7), np.random.default_rng(0)
    worth = math.sqrt(rho) * random.normal(size=400_000)
    both = points(worth + math.sqrt(1 - rho) * random.normal(size=(2, 400_000)))
    assert np.corrcoef(both)[0, 1] == pytest.approx(0.4, abs=0.01)
    assert latent_icc(0.4, 0.0) == 0.4


def test_a_plan_has_a_row_for_each_number_of_clinicians_and_each_kind_of_scores():
    def designs(top=None, **options):
        chosen = PlanOptions(responses=60, margin=0.1, **options)
        rows = planning._rows("assumed", 0.3, chosen, top)
        return [(row.clinicians, row.ceiling) for row in rows]

    assert designs() == [(number, top) for top in (0.0, 0.7) for number in (2, 3, 4, 6)]
    assert designs(clinicians=5, ceiling=0.5) == [(5, 0.5)]
    assert [ceiling for _, ceiling in designs(0.6)] == [0.6] * 4
    assert [ceiling for _, ceiling in designs(0.1)] == [0.0] * 4
    (without,) = assumed_rows(PlanOptions(responses=60), None, 0.3)
    assert (without.clinicians, math.isnan(without.power)) == (2, True)

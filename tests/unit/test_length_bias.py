"""Length bias: slopes by statsmodels on a table, planted slopes, false alarms, reasons."""

import math

import numpy as np
import pandas as pd
import pytest
from kit.scores import note_of, scope_of
from scipy import stats
from statsmodels.formula.api import ols

from calibration.raters import least_squares, length_rows

NAN = math.nan


def simulate(n=200, seed=0, slopes=(0.0, 0.0), doctors=(0.0, 0.0, 0.0)):
    """Return composites (n, clinicians + jurors) and words; slopes are points a doubling."""
    random = np.random.default_rng(seed)
    words = np.round(np.exp(5 + 0.7 * random.normal(size=n))).astype(int) + 1
    quality = 3 + random.normal(size=(n, 1))
    rater = np.repeat(random.normal(size=(-(-n // 4), len(slopes))), 4, axis=0)[:n]
    bias = np.log2(words)[:, None] * np.array([*doctors, *slopes])
    table = quality + bias + 0.5 * random.normal(size=bias.shape)
    table[:, len(doctors) :] += 0.3 * rater
    return table, {f"r{i}": int(one) for i, one in enumerate(words)}


def rows_of(table, words, clinicians=3, **options):
    rows = length_rows(scope_of(table, clinicians, per=4, **options), words)
    return {row.rater: row for row in rows}


def test_the_slope_is_statsmodels_with_cluster_robust_errors():
    table, words = simulate(slopes=(0.3, 0.0))
    frame = pd.DataFrame(
        {
            "y": table[:, 3] - table[:, :3].mean(axis=1),
            "x": np.log2(list(words.values())),
            "g": np.arange(200) // 4,
        }
    )
    fitted = ols("y ~ x", frame).fit(
        cov_type="cluster", cov_kwds={"groups": frame["g"]}, use_t=True
    )

    row = rows_of(table, words)["j0"]

    assert row.slope_per_doubling == pytest.approx(fitted.params["x"])
    assert (row.low, row.high) == pytest.approx(tuple(fitted.conf_int().loc["x"]))
    assert row.p == pytest.approx(fitted.pvalues["x"])
    assert row.n == 200


def test_the_cluster_robust_error_by_hand():
    # sum over instances of (sum of x e)^2 / (sum of x^2)^2, times G/(G-1) (N-1)/(N-2); t with G-1.
    random = np.random.default_rng(0)
    x, y, groups = random.normal(size=30), random.normal(size=30), np.arange(30) // 3
    line = stats.linregress(x, y)
    centred, left = x - x.mean(), y - line.intercept - line.slope * x
    meat = (np.bincount(groups, centred * left) ** 2).sum() / (centred @ centred) ** 2
    error = np.sqrt(meat * 10 / 9 * 29 / 28)

    found = least_squares(y, np.column_stack([np.ones(30), x]), groups)[1]

    assert found.value == pytest.approx(line.slope)
    assert found.high - found.value == pytest.approx(stats.t.ppf(0.975, 9) * error)
    assert found.p == pytest.approx(2 * stats.t.sf(abs(line.slope) / error, 9))


def test_everyone_is_compared_with_the_clinicians_but_never_with_themselves():
    table, words = simulate(n=2000, slopes=(0.5, 0.1), doctors=(0.3, 0.0, 0.0))

    rows = rows_of(table, words)

    assert list(rows) == ["jury", "j0", "j1", "dr0", "dr1", "dr2"]
    assert [row.kind for row in rows.values()] == ["jury", *["juror"] * 2, *["clinician"] * 3]
    # The clinicians' mean has slope 0.1: jury 0.3 - 0.1; dr0 0.3 - 0; dr1 0 - 0.15.
    slopes = [row.slope_per_doubling for row in rows.values()]
    assert slopes == pytest.approx([0.2, 0.4, 0.0, 0.3, -0.15, -0.15], abs=0.05)


@pytest.mark.slow
def test_planted_slopes_are_recovered_and_their_intervals_cover():
    planted = np.array([0.2, -0.1])
    found = [rows_of(*simulate(seed=seed, slopes=planted)) for seed in range(400)]

    points = np.array([[rows[name].slope_per_doubling for name in ("j0", "j1")] for rows in found])
    covered = [
        rows[name].low < slope < rows[name].high
        for rows in found
        for name, slope in zip(("j0", "j1"), planted, strict=True)
    ]
    assert points.mean(axis=0) == pytest.approx(planted, abs=0.01)
    assert np.mean(covered) == pytest.approx(0.95, abs=0.025)


@pytest.mark.slow
def test_without_a_slope_a_false_alarm_comes_as_often_as_said():
    alarms = [rows_of(*simulate(n=120, seed=seed))["j0"].p < 0.05 for seed in range(600)]

    assert np.mean(alarms) < 0.08  # 5 % in the long run; 30 instances


def test_a_response_without_words_is_left_out_and_counted():
    table, words = simulate()
    fewer = {name: (0 if name == "r7" else one) for name, one in words.items() if name != "r3"}

    row = rows_of(table, fewer)["j0"]

    assert row.n == 198
    assert "2 responses without a number of words left out" in note_of(row)
    table[[3, 7]] = NAN
    assert row.slope_per_doubling == rows_of(table, words)["j0"].slope_per_doubling


@pytest.mark.parametrize(
    ("words", "rows", "reason"),
    [
        (dict.fromkeys([f"r{i}" for i in range(200)], 50), 200, "the same number of words"),
        ({}, 200, "no response has both the scores and the number of words"),
        ({f"r{i}": 50 + i for i in range(200)}, 16, "responses to 4 instances, and 5 are needed"),
    ],
)
def test_what_is_undefined_is_nan_with_a_reason(words, rows, reason):
    row = rows_of(simulate()[0][:rows], words)["j0"]

    assert reason in note_of(row)
    assert all(map(math.isnan, (row.slope_per_doubling, row.low, row.high, row.p)))


def test_distances_on_a_line_have_a_slope_and_no_interval():
    table, words = simulate()
    table[:, 3] = table[:, :3].mean(axis=1) + 0.25 * np.log2(list(words.values()))

    row = rows_of(table, words)["j0"]

    assert row.slope_per_doubling == pytest.approx(0.25)
    assert math.isnan(row.low)
    assert "on a line" in note_of(row)


@pytest.mark.parametrize(
    ("change", "factor"),
    [
        (lambda table: table + 10, 1),
        (lambda table: table * 3, 3),
        (lambda table: np.vstack([table, np.full((8, table.shape[1]), NAN)]), 1),
    ],
    ids=["shift", "scale", "missing"],
)
def test_shift_and_empty_rows_change_nothing_and_scale_scales(change, factor):
    table, words = simulate()
    names = ("jury", "j0", "dr0")
    before = [[rows_of(table, words)[name].slope_per_doubling for name in names]]

    rows = rows_of(change(table), words)

    after = [[rows[name].slope_per_doubling for name in names]]
    assert np.array(after) == pytest.approx(np.array(before) * factor)


def test_the_order_and_the_unit_of_words_change_nothing():
    table, words = simulate()
    turned = {f"r{199 - int(name[1:])}": 10 * one for name, one in words.items()}

    before, after = rows_of(table, words)["j0"], rows_of(table[::-1], turned)["j0"]

    assert after.slope_per_doubling == pytest.approx(before.slope_per_doubling)
    assert (after.low, after.high) == pytest.approx((before.low, before.high))

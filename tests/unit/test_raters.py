"""Bias of raters: by length, to their own family, in severity; statsmodels and hand, planted effects, reasons."""

import math
from dataclasses import replace

import numpy as np
import pytest
from kit.scores import note_of, scope_of
from scipy import stats
from statsmodels.api import OLS

from calibration.raters import distances, length_rows, self_preference_rows, severity_rows


def texts(n=200, seed=0, slopes=(0.0, 0.0), doctors=(0.0, 0.0, 0.0)):
    """Return composites (n, clinicians + jurors) and words; slopes are points a doubling."""
    random = np.random.default_rng(seed)
    words = np.round(np.exp(5 + 0.7 * random.normal(size=n))).astype(int) + 1
    quality = 3 + random.normal(size=(n, 1))
    rater = np.repeat(random.normal(size=(-(-n // 4), len(slopes))), 4, axis=0)[:n]
    bias = np.log2(words)[:, None] * np.array([*doctors, *slopes])
    table = quality + bias + 0.5 * random.normal(size=bias.shape)
    table[:, len(doctors) :] += 0.3 * rater
    return table, {f"r{i}": int(one) for i, one in enumerate(words)}


def clustered(y, design):
    """Return statsmodels' regression with errors robust to instances of four responses."""
    groups = {"groups": np.arange(len(y)) // 4}
    return OLS(y, design).fit(cov_type="cluster", cov_kwds=groups, use_t=True)


def by_length(table, words, clinicians=3, **options):
    rows = length_rows(scope_of(table, clinicians, per=4, **options), words)
    return {row.rater: row for row in rows}


def test_the_slope_is_statsmodels_with_cluster_robust_errors():
    table, words = texts(slopes=(0.3, 0.0))
    design = np.column_stack([np.ones(200), np.log2(list(words.values()))])
    fitted = clustered(table[:, 3] - table[:, :3].mean(axis=1), design)
    row = by_length(table, words)["j0"]
    assert (row.slope_per_doubling, row.p) == pytest.approx((fitted.params[1], fitted.pvalues[1]))
    assert (row.low, row.high) == pytest.approx(tuple(fitted.conf_int()[1]))
    assert row.n == 200


def test_everyone_is_compared_with_the_clinicians_but_never_with_themselves():
    table, words = texts(n=2000, slopes=(0.5, 0.1), doctors=(0.3, 0.0, 0.0))
    rows = by_length(table, words)
    assert list(rows) == ["jury", "j0", "j1", "dr0", "dr1", "dr2"]
    assert [row.kind for row in rows.values()] == ["jury", *["juror"] * 2, *["clinician"] * 3]
    # The clinicians' mean has slope 0.1: jury 0.3 - 0.1; dr0 0.3 - 0; dr1 0 - 0.15.
    slopes = [row.slope_per_doubling for row in rows.values()]
    assert slopes == pytest.approx([0.2, 0.4, 0.0, 0.3, -0.15, -0.15], abs=0.05)


@pytest.mark.slow
def test_planted_slopes_are_recovered_and_their_intervals_cover():
    planted = np.array([0.2, -0.1])
    found = [by_length(*texts(seed=seed, slopes=planted)) for seed in range(400)]
    points, low, high = (
        np.array([[getattr(rows[name], end) for name in ("j0", "j1")] for rows in found])
        for end in ("slope_per_doubling", "low", "high")
    )
    assert points.mean(axis=0) == pytest.approx(planted, abs=0.01)
    assert np.mean((low < planted) & (planted < high)) == pytest.approx(0.95, abs=0.025)


def test_a_response_without_words_is_left_out_and_counted():
    table, words = texts()
    fewer = {name: (0 if name == "r7" else one) for name, one in words.items() if name != "r3"}
    row = by_length(table, fewer)["j0"]
    assert row.n == 198
    assert "2 responses without a number of words left out" in note_of(row)
    table[[3, 7]] = NAN
    assert row.slope_per_doubling == by_length(table, words)["j0"].slope_per_doubling


@pytest.mark.parametrize(
    ("words", "rows", "reason"),
    [
        (dict.fromkeys([f"r{i}" for i in range(200)], 50), 200, "the same number of words"),
        ({}, 200, "no response has both the scores and the number of words"),
        ({f"r{i}": 50 + i for i in range(200)}, 16, "responses to 4 instances, and 5 are needed"),
    ],
)
def test_a_slope_that_is_undefined_is_nan_with_a_reason(words, rows, reason):
    row = by_length(texts()[0][:rows], words)["j0"]
    assert reason in note_of(row)
    assert all(map(math.isnan, (row.slope_per_doubling, row.low, row.high, row.p)))


def test_distances_on_a_line_have_a_slope_and_no_interval():
    table, words = texts()
    table[:, 3] = table[:, :3].mean(axis=1) + 0.25 * np.log2(list(words.values()))
    row = by_length(table, words)["j0"]
    assert row.slope_per_doubling == pytest.approx(0.25)
    assert math.isnan(row.low)
    assert "on a line" in note_of(row)


NAN = math.nan
FAMILIES = {"j0": "gpt", "j1": "claude", "j2": "llama"}
WRITERS = ("gpt", "claude", "llama", "qwen")


def written(n=200, seed=0, planted=(0.0, 0.0, 0.0), writers=WRITERS, severity=(0.0, -0.4, 0.3)):
    """Return composites (n, 2 clinicians + jurors) and who wrote each, one instance per four."""
    random = np.random.default_rng(seed)
    wrote = np.array([writers[i % len(writers)] for i in range(n)])
    quality = 3 + random.normal(size=(n, 1)) + 0.5 * (wrote == "gpt")[:, None]
    jurors = quality + np.asarray(severity) + 0.5 * random.normal(size=(n, len(planted)))
    jurors = jurors + 0.3 * np.repeat(random.normal(size=(-(-n // 4), len(planted))), 4, axis=0)[:n]
    own = wrote[:, None] == np.array(list(FAMILIES.values()))[: len(planted)]
    jurors = jurors + own * np.asarray(planted)
    doctors = quality + 0.6 * random.normal(size=(n, 2))
    return np.hstack([doctors, jurors]), {f"r{i}": str(name) for i, name in enumerate(wrote)}


def by_family(table, authors, families=FAMILIES, **options):
    return self_preference_rows(scope_of(table, 2, per=4, **options), families, authors)


def test_one_familys_preference_is_the_regression_of_the_jurors_residual():
    table, authors = written(planted=(0.4, 0, 0))
    families = {"j0": "gpt"}
    row = by_family(table, authors, families)[0]
    own = np.array([authors[f"r{i}"] == "gpt" for i in range(200)], dtype=float)
    residual = table[:, 2] - table[:, 3:].mean(axis=1)
    design = np.column_stack([np.ones(200), own, table[:, :2].mean(axis=1)])
    fitted = clustered(residual, design)
    assert row.preference == pytest.approx(fitted.params[1])
    # The stack counts three rows a response, which moves the small-sample factor a little.
    assert (row.low, row.high) == pytest.approx(tuple(fitted.conf_int()[1]), abs=0.005)
    assert (row.n_own, row.n_other, row.n_unknown) == (50, 150, 0)


@pytest.mark.slow
def test_planted_preferences_are_recovered_and_their_intervals_cover():
    planted = np.array([0.5, 0.2, 0.0])
    found = [by_family(*written(seed=seed, planted=planted)) for seed in range(120)]
    points, low, high = (
        np.array([[getattr(row, end) for row in rows] for rows in found])
        for end in ("preference", "low", "high")
    )
    assert points.mean(axis=0) == pytest.approx(planted, abs=0.02)
    assert np.mean((low < planted) & (planted < high)) == pytest.approx(0.95, abs=0.03)


def test_unknown_authors_are_left_out_and_counted():
    table, authors = written()
    known = {name: writer for name, writer in authors.items() if int(name[1:]) >= 20}
    renumbered = {f"r{int(name[1:]) - 20}": writer for name, writer in known.items()}
    some, without = by_family(table, known)[0], by_family(table[20:], renumbered)[0]
    assert some.n_unknown == 20
    assert "20 responses by an unknown family left out" in note_of(some)
    assert some.preference == pytest.approx(without.preference)


@pytest.mark.parametrize(
    ("families", "writers", "reason"),
    [
        ({"j1": "claude"}, WRITERS, "undefined: imported, no family is stored: --panel names"),
        (FAMILIES, ("qwen", "claude"), "responses by its family to 0 instances, and 5 are needed"),
        (FAMILIES, ("gpt",), "responses by other families to 0 instances, and 5 are needed"),
        (FAMILIES, (), "responses by its family to 0 instances"),
        (FAMILIES, ("gpt", *["qwen"] * 60), "responses by its family to 4 instances"),
    ],
)
def test_a_preference_that_is_undefined_is_nan_with_a_reason(families, writers, reason):
    table, authors = written(writers=writers or WRITERS)
    row = by_family(table, authors if writers else {}, families)[0]
    assert reason in note_of(row)
    assert all(map(math.isnan, (row.preference, row.low, row.high, row.p)))


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"n": 4000, "planted": (0.6, 0, 0)}, [0.6, 0, 0]),  # nor is it taken for the others'
        ({"n": 4000, "severity": (1.0, -1.0, 0.0)}, [0, 0, 0]),  # quality and severity are none
        ({"n": 6000, "planted": (0.5, 0), "severity": (0, 0)}, [0.5, 0]),  # of two jurors
    ],
)
def test_a_preference_is_what_was_planted_and_nothing_else_is_taken_for_one(how, expected):
    rows = by_family(*written(**how))
    assert [row.preference for row in rows] == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize(
    ("how", "families"),
    [
        ({"planted": (0.5, 0), "severity": (0, 0), "writers": ("gpt", "claude")}, FAMILIES),
        ({}, dict.fromkeys(FAMILIES, "gpt")),
    ],
    ids=["two jurors wrote everything", "a jury of one family"],
)
def test_preferences_that_cannot_be_told_apart_are_undefined(how, families):
    for row in by_family(*written(**how), families):
        assert math.isnan(row.preference)
        assert math.isnan(row.p)
        assert "cannot tell the jurors' preferences apart" in note_of(row)


def rated(n=60, clinicians=4, jurors=3):
    random, raters = np.random.default_rng(0), clinicians + jurors
    own = 0.5 * random.normal(size=raters)
    table = 3 + random.normal(size=(n, 1)) + own + 0.6 * random.normal(size=(n, raters))
    for row in table:
        row[random.permutation(clinicians)[2:]] = NAN
    return table


def test_a_severity_is_the_mean_distance_to_the_others_of_the_same_response():
    # dr0: 4 - (2+3)/2 = 1.5, 5 - 4 = 1; j0: 3 - (4+2)/2 = 0, 4 - 5 = -1, and 1 alone.
    table = [[4, 2, 3], [5, NAN, 4], [NAN, NAN, 1]]
    rows = severity_rows(scope_of(table, 2))
    assert [(row.rater, row.kind, row.severity, row.n) for row in rows] == [
        ("dr0", "clinician", 1.25, 2),
        ("dr1", "clinician", -1.5, 1),
        ("j0", "juror", -0.5, 2),
    ]


def test_the_interval_is_the_t_interval_of_single_responses():
    table = rated(n=40)
    row = severity_rows(scope_of(table, 4))[0]
    away = distances(table)[:, 0]
    ends = stats.ttest_1samp(away[~np.isnan(away)], 0.0).confidence_interval(0.95)
    assert (row.low, row.high) == pytest.approx((ends.low, ends.high))


def test_severity_is_in_points_under_both_methods_without_metrics_and_undefined_with_a_reason():
    rows = severity_rows(scope_of([[3, NAN, 4], [2, NAN, 4], [1, NAN, 2]], 1))
    assert math.isnan(rows[1].severity)
    assert note_of(rows[1]) == "undefined: no response that this rater and another one rated"
    (alone,) = severity_rows(scope_of([[3], [2], [1]], 1))
    assert math.isnan(alone.severity)
    table = rated()
    scope, published = scope_of(table, 4), scope_of(table, 4, method="published")
    grid = replace(scope.grid, kinds=(*scope.grid.kinds[:6], "metric"))
    assert severity_rows(scope) == severity_rows(published)
    assert [row.rater for row in severity_rows(replace(scope, grid=grid))] == [*grid.raters[:6]]


@pytest.mark.slow
def test_without_a_slope_or_preferences_a_false_alarm_comes_as_often_as_said():
    slopes = [by_length(*texts(n=120, seed=seed))["j0"].p < 0.05 for seed in range(600)]
    families = [by_family(*written(n=120, seed=seed)) for seed in range(200)]
    alarms = np.mean(slopes), np.mean([[row.p < 0.05 for row in rows] for rows in families])
    assert max(alarms) < 0.08  # 5 % in the long run; 30 instances


def figures(what, change):
    """Return what one of the three is of scores that were changed."""
    if what == "severity":
        return [[row.severity] for row in severity_rows(scope_of(change(rated()), 4))]
    if what == "length":
        table, words = texts()
        found = by_length(change(table), words)
        return [[found[name].slope_per_doubling] for name in ("jury", "j0", "dr0")]
    table, authors = written()
    found = by_family(change(table), authors)
    return [[row.preference, row.low, row.high] for row in found]


@pytest.mark.parametrize("what", ["severity", "length", "family"])
@pytest.mark.parametrize(
    ("change", "factor"),
    [
        (lambda table: table + 10, 1),
        (lambda table: table * 3, 3),
        (lambda table: np.vstack([table, np.full((8, table.shape[1]), NAN)]), 1),
    ],
    ids=["shift", "scale", "missing"],
)
def test_shift_and_empty_rows_change_nothing_and_scale_scales(what, change, factor):
    before = np.array(figures(what, lambda table: table))
    assert np.array(figures(what, change)) == pytest.approx(before * factor)

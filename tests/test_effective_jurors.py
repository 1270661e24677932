"""Effective number of jurors: the ends of the formula, numpy's correlations, resampling."""

import math

import numpy as np
import pytest
from kit.scores import note_of, scope_of

from calibration.effective_jurors import effective_number, effective_rows
from calibration.rating_matrix import z_within_raters

NAN = math.nan


def simulate(n=200, jurors=3, shared=0.5, clinicians=2, seed=0, noise=0.5):
    """Jurors whose errors share a part, so that their correlation is `shared`."""
    random = np.random.default_rng(seed)
    quality = 3 + random.normal(size=(n, 1))
    common, own = random.normal(size=(n, 1)), random.normal(size=(n, jurors))
    errors = np.sqrt(shared) * common + np.sqrt(1 - shared) * own
    doctors = quality + noise * random.normal(size=(n, clinicians))
    return np.hstack([doctors, quality + 0.7 * errors])


def row_of(table, clinicians=2, **options):
    (row,) = effective_rows(scope_of(table, clinicians, **options))
    return row


@pytest.mark.parametrize(
    ("correlation", "k", "expected"),
    [(0, 3, 3), (1, 3, 1), (0.5, 3, 1.5), (0.526, 3, 1.462), (-0.25, 3, 6), (0.2, 1, 1)],
)
def test_the_formula(correlation, k, expected):
    assert float(effective_number(np.array(correlation), k)) == pytest.approx(expected, abs=1e-3)


def test_errors_that_cancel_exactly_have_no_effective_number():
    assert math.isnan(effective_number(np.array(-0.5), 3))
    assert math.isnan(effective_number(np.array(NAN), 3))


def balanced():
    """Return a quality and three errors of mean 0, orthogonal to it and to each other."""
    raw = np.random.default_rng(0).normal(size=(40, 5))
    basis, _ = np.linalg.qr(np.column_stack([np.ones(40), raw]))
    return basis[:, 1:2], basis[:, 2:5]


def test_uncorrelated_errors_count_as_k_and_equal_ones_as_1():
    # z of c + d e_j is (c + d e_j) / sqrt(1 + d^2) in units of c: its error has a part in c that
    # is shared and vanishes with d.
    quality, errors = balanced()
    independent = np.hstack([quality, quality + 1e-4 * errors])
    equal = np.hstack([quality, np.repeat(quality + 0.5 * errors[:, :1], 3, axis=1)])

    assert row_of(independent, 1).effective == pytest.approx(3, abs=1e-3)
    assert row_of(independent, 1).mean_error_correlation == pytest.approx(0, abs=1e-3)
    assert row_of(equal, 1).effective == pytest.approx(1)
    assert row_of(equal, 1).mean_error_correlation == pytest.approx(1)


@pytest.mark.parametrize("method", ["paper", "published"])
def test_the_correlation_is_numpys_of_the_errors(method):
    table = simulate(n=60)
    table[:8, 3] = NAN
    table[20:30, 0] = NAN
    columns = z_within_raters(table) if method == "paper" else table
    whole = ~np.isnan(table[:, 2:]).any(axis=1)
    middle = np.nanmean(columns[:, :2], axis=1)[whole]
    jurors = columns[whole, 2:]
    if method == "published":
        both = z_within_raters(np.column_stack([jurors, middle]))
        jurors, middle = both[:, :-1], both[:, -1]
    expected = np.corrcoef(jurors - middle[:, None], rowvar=False)[np.triu_indices(3, 1)].mean()

    row = row_of(table, method=method)

    assert row.mean_error_correlation == pytest.approx(expected)
    assert row.effective == pytest.approx(3 / (1 + 2 * expected))
    assert (row.k, row.n) == (3, 52)
    assert "8 responses that not all jurors rated left out" in note_of(row)


@pytest.mark.parametrize("method", ["paper", "published"])
def test_the_interval_computes_everything_anew_in_each_resample(method):
    table = simulate(n=40)
    scope = scope_of(table, 2, per=2, method=method, reps=3)
    draws = np.random.default_rng(0).integers(0, 20, size=(3, 20))
    rows = [np.concatenate([[2 * c, 2 * c + 1] for c in draw]) for draw in draws]
    expected = [row_of(table[one], method=method).effective for one in rows]

    (row,) = effective_rows(scope)

    assert (row.low, row.high) == pytest.approx(tuple(np.quantile(expected, [0.025, 0.975])))


@pytest.mark.slow
@pytest.mark.parametrize("shared", [0.0, 0.3, 0.8])
def test_a_planted_correlation_is_recovered_with_many_clinicians(shared):
    # The clinicians' mean is then the quality itself, and z takes little from the errors.
    rows = [
        row_of(simulate(400, shared=shared, clinicians=40, seed=seed, noise=0.2), 40, reps=0)
        for seed in range(60)
    ]

    # z of q + .7 e is (q + .7 e) / 1.22, whose error shares (1 - 1 / 1.22)^2 of quality.
    lost = (1 - 1 / math.sqrt(1.49)) ** 2 * 1.0
    expected = (0.49 / 1.49 * shared + lost) / (0.49 / 1.49 + lost)
    found = np.mean([row.mean_error_correlation for row in rows])
    assert found == pytest.approx(expected, abs=0.02)


def test_more_jurors_than_there_are_is_printed_with_a_word():
    quality, errors = balanced()
    opposed = np.hstack([quality, quality + 0.1 * errors[:, :1], quality - 0.1 * errors[:, :1]])

    row = row_of(opposed + 1e-3 * np.random.default_rng(1).normal(size=opposed.shape), 1)

    assert row.effective > 2
    assert note_of(row).startswith("more than the number of jurors")


def test_a_jury_of_one_is_worth_one():
    row = row_of(simulate()[:, :3])

    assert (row.k, row.effective, note_of(row)) == (1, 1.0, "a jury of one")
    assert math.isnan(row.mean_error_correlation)


def test_a_juror_without_variance_is_named_and_left_out():
    table = simulate()
    table[:, 4] = 4.0

    row, pair = row_of(table), row_of(table[:, :4])

    assert row.k == 2
    assert row.effective == pytest.approx(pair.effective)
    assert "left out, no variance: j2" in note_of(row)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ([[1, 1, 2], [2, NAN, 3], [4, 5, NAN]], "1 response that all jurors rated, and 3"),
        ([[1, 1, 1], [2, 2, 2], [4, 4, 4]], "a juror's error is the same"),
        ([[1, 3, 3], [2, 3, 3], [4, 3, 3]], "no juror has scores that vary"),
    ],
)
def test_what_is_undefined_is_nan_with_a_reason(table, reason):
    row = row_of(table, 1)

    assert reason in note_of(row)
    assert all(map(math.isnan, (row.effective, row.low, row.high)))


def test_without_a_jury_there_is_no_row():
    assert effective_rows(scope_of([[1, 2], [2, 3]], 2)) == []


@pytest.mark.parametrize("method", ["paper", "published"])
@pytest.mark.parametrize(
    "change",
    [
        lambda table: table + 10,
        lambda table: table * 3,
        lambda table: table[::-1],
        lambda table: table[:, [0, 1, 4, 2, 3]],
        lambda table: np.vstack([table, np.full((5, 5), NAN)]),
    ],
    ids=["shift", "scale", "permutation", "jurors", "missing"],
)
def test_shift_scale_order_and_empty_rows_change_nothing(change, method):
    before, after = row_of(simulate(), method=method), row_of(change(simulate()), method=method)

    assert after.effective == pytest.approx(before.effective)

"""Win rates and macro averages of models: worked by hand, by definition, and properties."""

import numpy as np
import pytest

from calibration.models import (
    benchmark_win_rates,
    mean_of_defined,
    win_rates,
)

NAN = float("nan")
# Three models, two benchmarks, worked by hand.
# On the first a > b > c: 1, 1/2, 0. On the second b = c > a: a beats none; b and c each beat a
# and tie with the other, (1 + 1/2) / 2. Means: a (1 + 0)/2, b (1/2 + 3/4)/2, c (0 + 3/4)/2.
HAND = np.array([[0.9, 0.1], [0.8, 0.4], [0.7, 0.4]])


def table(models=5, benchmarks=7, missing=0.0, seed=0):
    random = np.random.default_rng(seed)
    means = np.round(random.random((models, benchmarks)), 1)
    means[random.random(means.shape) < missing] = NAN
    return means


def one_by_one(means):
    """HELM's definition read aloud: who, of the others that have a score, is beaten."""
    found = []
    for own, row in enumerate(means):
        rates = []
        for column, value in enumerate(row):
            others = [
                other[column]
                for place, other in enumerate(means)
                if place != own and not np.isnan(other[column])
            ]
            if not np.isnan(value) and others:
                wins = [1.0 if value > one else 0.5 if value == one else 0.0 for one in others]
                rates.append(sum(wins) / len(wins))
        found.append(sum(rates) / len(rates) if rates else NAN)
    return found


def test_win_rates_of_the_table_worked_by_hand():
    assert benchmark_win_rates(HAND) == pytest.approx(
        np.array([[1.0, 0.0], [0.5, 0.75], [0.0, 0.75]])
    )
    assert win_rates(HAND) == pytest.approx([0.5, 0.625, 0.375])


def test_ties_are_what_helms_own_test_says():
    # test_compute_win_rates_ties of stanford-crfm/helm: scores 1, 1, 1, 4, 5
    means = np.array([[1.0], [1.0], [1.0], [4.0], [5.0]])
    assert win_rates(means).tolist() == [0.25, 0.25, 0.25, 0.75, 1.0]


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("seed", range(5))
def test_win_rates_are_helms_definition_read_aloud(missing, seed):
    means = table(missing=missing, seed=seed)
    assert win_rates(means) == pytest.approx(one_by_one(means), nan_ok=True)


@pytest.mark.parametrize(
    "change",
    [lambda x: x + 3, lambda x: 10 * x, np.exp, lambda x: x + np.arange(7)],
    ids=["shift", "scale", "monotone", "shift a benchmark"],
)
def test_what_keeps_the_order_on_every_benchmark_changes_no_win_rate(change):
    means = table(missing=0.2, seed=3)
    assert win_rates(change(means)) == pytest.approx(win_rates(means), nan_ok=True)


def test_models_and_benchmarks_can_stand_in_any_order():
    means, order = table(seed=4), np.array([3, 0, 4, 1, 2])
    assert win_rates(means[order]) == pytest.approx(win_rates(means)[order])
    assert win_rates(means[:, ::-1]) == pytest.approx(win_rates(means))


def test_win_rates_of_all_models_average_one_half_without_gaps():
    assert win_rates(table(seed=5)).mean() == pytest.approx(0.5)


def test_tables_in_a_stack_are_independent():
    stack = np.stack([table(missing=0.3, seed=seed) for seed in range(4)])
    apart = [win_rates(one) for one in stack]
    assert win_rates(stack) == pytest.approx(np.array(apart), nan_ok=True)


def test_a_model_alone_on_a_benchmark_has_no_win_rate_there():
    means = np.array([[0.5, 0.9], [0.4, NAN], [0.3, NAN]])
    assert np.isnan(benchmark_win_rates(means)[0, 1])
    assert win_rates(means).tolist() == [1.0, 0.5, 0.0]
    assert np.isnan(win_rates(np.array([[0.5, 0.9]]))).all()


def test_means_that_differ_by_rounding_alone_tie():
    means = np.array([[0.1 + 0.2], [0.3]])
    assert means[0] != means[1]
    assert win_rates(means).tolist() == [0.5, 0.5]


def test_a_benchmark_without_a_score_is_left_out_not_counted_as_nothing():
    means = np.array([[0.2, NAN, 0.4], [NAN, NAN, NAN], [NAN, 0.7, NAN]])
    assert mean_of_defined(means) == pytest.approx([0.3, NAN, 0.7], nan_ok=True)


def test_macro_averages_of_a_stack_are_independent():
    stack = np.random.default_rng(9).random((3, 4, 5))
    assert mean_of_defined(stack)[1] == pytest.approx(mean_of_defined(stack[1]))

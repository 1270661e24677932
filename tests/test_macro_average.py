import numpy as np
import pytest

from calibration.models.model_scores import macro_average_sd, macro_averages, unit_scale

NAN = float("nan")


def test_scores_from_one_to_five_become_a_quarter_a_point_as_in_the_paper():
    assert unit_scale(np.array([1.0, 2, 3, 5, NAN]), 1, 5) == pytest.approx(
        [0, 0.25, 0.5, 1, NAN], nan_ok=True
    )
    assert unit_scale(np.array([-2.0, 0, 2]), -2, 2).tolist() == [0.0, 0.5, 1.0]


def test_a_macro_average_counts_every_benchmark_once():
    # (0.2 + 0.4 + 0.9)/3 = 0.5; deviations -0.3, -0.1, 0.4: SD sqrt(0.26 / 2)
    means = np.array([[0.2, 0.4, 0.9]])
    assert macro_averages(means) == pytest.approx([0.5])
    assert macro_average_sd(means) == pytest.approx([np.sqrt(0.13)])


def test_a_benchmark_without_a_score_is_left_out_not_counted_as_nothing():
    means = np.array([[0.2, NAN, 0.4], [NAN, NAN, NAN], [NAN, 0.7, NAN]])
    assert macro_averages(means) == pytest.approx([0.3, NAN, 0.7], nan_ok=True)
    assert macro_average_sd(means) == pytest.approx([np.sqrt(0.02), NAN, NAN], nan_ok=True)


@pytest.mark.parametrize("seed", range(3))
def test_shift_scale_and_order(seed):
    means = np.random.default_rng(seed).random((4, 6))
    assert macro_averages(2 * means + 1) == pytest.approx(2 * macro_averages(means) + 1)
    assert macro_average_sd(2 * means + 1) == pytest.approx(2 * macro_average_sd(means))
    assert macro_averages(means[:, ::-1]) == pytest.approx(macro_averages(means))
    assert macro_averages(means[::-1]) == pytest.approx(macro_averages(means)[::-1])
    assert macro_average_sd(means) == pytest.approx(means.std(axis=1, ddof=1))


def test_tables_in_a_stack_are_independent():
    stack = np.random.default_rng(9).random((3, 4, 5))
    assert macro_averages(stack)[1] == pytest.approx(macro_averages(stack[1]))

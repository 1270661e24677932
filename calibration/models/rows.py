"""Rows of a comparison of models. This module imports nothing heavy: the app's server loads it."""

from dataclasses import dataclass

from calibration.notes import Noted

CLINICIANS, JURY, CORRECTED, PAPER = "clinicians", "jury", "corrected", "paper"
WAYS = (CLINICIANS, JURY, CORRECTED)  # of scoring a model's responses
ALL_WAYS = (*WAYS, PAPER)  # the paper's: each benchmark by its own metric, or else by the jury


@dataclass(frozen=True)
class ModelRow(Noted):
    """One model by one way of scoring: a row of `analyse models --json`; undefined is NaN, a rank None.

    Attributes
    ----------
    by : "clinicians", "jury", "corrected" or "paper"
    win_rate, win_rate_low, win_rate_high : share of the other models beaten on a benchmark, mean
        over benchmarks; percentile 95 % interval over instances, Wilson's where all resamples agree
    win_rate_sd : over opponents, ddof 0, as in the paper's Table 1
    win_rate_by_instance : share of the other models beaten on the same instance; NaN for "corrected"
    macro_average, macro_average_sd, low, high : mean over benchmarks, 0 to 1; SD over benchmarks,
        ddof 1; percentile 95 % interval of the mean, NaN where all resamples agree
    shared_rank_low, shared_rank_high : the ranks by win rate that the model may have, 1 the best,
        given which others it can be told apart from; None without a win rate
    not_told_apart : ranked models that it cannot be told apart from
    n_benchmarks, without : those with a mean of this model, and the others' names
    n_responses, n_missing : its responses whose score enters, and all its others
    n_rated : those of `n_responses` that clinicians rated
    n_paired : pairs (instance, opponent) behind `win_rate_by_instance`
    """

    model: str
    by: str
    win_rate: float
    win_rate_sd: float
    win_rate_low: float
    win_rate_high: float
    win_rate_by_instance: float
    macro_average: float
    macro_average_sd: float
    low: float
    high: float
    shared_rank_low: int | None
    shared_rank_high: int | None
    not_told_apart: tuple[str, ...]
    n_benchmarks: int
    without: tuple[str, ...]
    n_responses: int
    n_missing: int
    n_rated: int
    n_paired: int


@dataclass(frozen=True)
class CategoryRow(Noted):
    """A model's mean over the benchmarks of a category, 0 to 1, with its 95 % interval.

    `n` is how many of its responses the mean rests on; NaN without any. `category` is "" for
    benchmarks that have none; `without` names those of the category on which the model has no mean.
    """

    model: str
    category: str
    by: str
    mean: float
    low: float
    high: float
    n: int
    without: tuple[str, ...]

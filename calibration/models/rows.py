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
    model, by : str
        `by` is "clinicians", "jury", "corrected" or "paper".
    win_rate, win_rate_low, win_rate_high : float
        Share of the other models beaten on a benchmark, mean over benchmarks; percentile
        95 % interval over instances, Wilson's where it has no width (`gaps.share_interval`).
    win_rate_unchanged : float
        Share of the resamples with the same win rate.
    win_rate_sd : float
        Over opponents, ddof 0, as in the paper's Table 1.
    win_rate_by_instance : float
        Share of the other models beaten on the same instance; NaN for "corrected".
    macro_average, macro_average_sd, low, high : float
        Mean over benchmarks, 0 to 1; SD over benchmarks, ddof 1; 95 % interval of the mean,
        for unseen instances where it has no width (`gaps.mean_interval`).
    unchanged : float
        As `win_rate_unchanged`, of the macro-average.
    rank, rank_low, rank_high : int or None
        By win rate, 1 the best; models that tie share the better rank. The interval takes
        the better rank of a tie at its low end, the worse at its high end.
    shared_rank_low, shared_rank_high : int or None
        The ranks that the model may have, given which others it can be told apart from
        (`calibration.models.gaps`); `rank` is one of them.
    not_told_apart : ranked models that it cannot be told apart from
    n_benchmarks : int, those with a mean of this model
    without : the other benchmarks, on which it has none
    n_responses, n_missing : int, its responses whose score enters, and all its others
    n_rated : int, those of `n_responses` that clinicians rated
    n_paired : int, pairs (instance, opponent) behind `win_rate_by_instance`
    least_instances : int
        The fewest instances behind any of its means on a benchmark; 0 without any. Of
        "corrected", those that clinicians rated.
    """

    model: str
    by: str
    win_rate: float
    win_rate_sd: float
    win_rate_low: float
    win_rate_high: float
    win_rate_unchanged: float
    win_rate_by_instance: float
    macro_average: float
    macro_average_sd: float
    low: float
    high: float
    unchanged: float
    rank: int | None
    rank_low: int | None
    rank_high: int | None
    shared_rank_low: int | None
    shared_rank_high: int | None
    not_told_apart: tuple[str, ...]
    n_benchmarks: int
    without: tuple[str, ...]
    n_responses: int
    n_missing: int
    n_rated: int
    n_paired: int
    least_instances: int


@dataclass(frozen=True)
class CategoryRow(Noted):
    """A model's mean over the benchmarks of a category, 0 to 1, with its 95 % interval.

    `n` is how many of its responses the mean rests on; NaN without any. `unchanged` is as in
    `ModelRow`. `category` is "" for benchmarks that have none; `without` names those of the
    category on which the model has no mean.
    """

    model: str
    category: str
    by: str
    mean: float
    low: float
    high: float
    unchanged: float
    n: int
    without: tuple[str, ...]


@dataclass(frozen=True)
class BenchmarkRow(Noted):
    """A model's mean on one benchmark by one way of scoring, 0 to 1; NaN without a score."""

    model: str
    benchmark: str
    by: str
    mean: float


@dataclass(frozen=True)
class DetectableRow(Noted):
    """The minimum detectable effect of one benchmark.

    Attributes
    ----------
    benchmark, by : str
        Whose scores: "clinicians", "jury" or "paper".
    mde : float
        As in the paper: 2.80 sd(d) / sqrt(n) of paired differences d of score / (top of the
        scale), sd with ddof 0, mean over pairs of models. At least 0; NaN without a pair.
    mde_exact : float
        The same with sd of ddof 1, z to all digits, and the scores of the macro-average,
        (score - low) / (high - low): this one is comparable with differences between models.
    n_instances, n_pairs : int
        Instances that any pair shares, and pairs of models that share two or more. A
        model without any score on the benchmark is in no pair.
    """

    benchmark: str
    by: str
    mde: float
    mde_exact: float
    n_instances: int
    n_pairs: int

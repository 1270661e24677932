"""Rows of a comparison of models. This module imports nothing heavy: the app's server loads it."""

from dataclasses import dataclass

from calibration.notes import Noted
from calibration.values import NAN

CLINICIANS, JURY, CORRECTED = "clinicians", "jury", "corrected"
WAYS = (CLINICIANS, JURY, CORRECTED)  # of scoring a model's responses
LEVEL = 0.05  # of p corrected for all pairs, below which two models are told apart
FEW_INSTANCES = 20  # on a benchmark; with fewer no model is said to lead


@dataclass(frozen=True)
class ModelRow(Noted):
    """One model by one way of scoring: a row of `analyse models --json`; undefined is NaN, a rank None.

    Attributes
    ----------
    by : "clinicians", "jury" or "corrected"
    win_rate, win_rate_low, win_rate_high : share of the other models beaten on a benchmark, mean
        over benchmarks; percentile 95 % interval over instances, Wilson's where all resamples agree
    win_rate_sd : over opponents, ddof 0, as in the paper's Table 1
    macro_average, macro_average_sd, low, high : mean over benchmarks, 0 to 1; SD over benchmarks,
        ddof 1; 95 % interval of the mean by t, from its error between instances
    shared_rank_low, shared_rank_high : the ranks by win rate that the model may have, 1 the best,
        given which others it can be told apart from; None without a win rate
    not_told_apart : ranked models that it cannot be told apart from
    n_benchmarks, without : those with a mean of this model, and the others' names
    n_responses, n_missing : its responses whose score enters, and all its others
    n_rated : those of `n_responses` that clinicians rated
    """

    model: str
    by: str
    win_rate: float
    win_rate_sd: float
    win_rate_low: float
    win_rate_high: float
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


@dataclass(frozen=True)
class CategoryRow(Noted):
    """A model's mean over the benchmarks of a category, 0 to 1, with its 95 % interval by t.

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


@dataclass(frozen=True)
class DifferenceRow(Noted):
    """The macro-average of one model less that of another on the same benchmarks, by one way of scoring.

    Attributes
    ----------
    first, second : the first has the higher macro-average
    low, high, p : 95 % interval and two-sided p by t, from the error of the difference between
        instances; NaN where all instances agree or a mean rests on one instance
    p_holm : p corrected for all pairs of models by this way of scoring
    instances : the fewest of a benchmark that either mean rests on
    """

    by: str
    first: str
    second: str
    difference: float
    low: float
    high: float
    p: float
    p_holm: float = NAN
    instances: int = 0

    @property
    def is_ahead(self) -> bool:
        """Whether the first model can be told to have the higher macro-average, at 5 % of all pairs."""
        return self.instances >= FEW_INSTANCES and self.difference > 0 and self.p_holm < LEVEL

"""The responses that may be passed, with the jury's and the clinicians' scores."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.criterion_scores import criterion_scores
from calibration.rating_matrix import mean_of_given
from calibration.routing.certificate import RatedRisks
from calibration.routing.values import Harm
from calibration.scores import Array, Flags, Integers, Scores
from data.errors import BadInput


@dataclass(frozen=True, eq=False)
class Candidates:
    """Responses that may be passed.

    Attributes
    ----------
    responses, instances, benchmarks : names, of n responses
    clusters : shape (n,), the instance's number, numbered from 0 in an order drawn at random
    jury : shape (n,), in points, NaN where too few jurors scored all of it
    clinicians : shape (n,), in points, NaN where none scored all of it
    """

    responses: Sequence[str]
    instances: Sequence[str]
    benchmarks: Sequence[str]
    clusters: Integers
    jury: Array
    clinicians: Array

    def scored(self) -> Flags:
        """Return which responses the jury scored."""
        return ~np.isnan(self.jury)

    def rated(self) -> Flags:
        """Return which responses both the jury and clinicians scored."""
        return self.scored() & ~np.isnan(self.clinicians)

    def harmful(self, harm: Harm) -> Flags:
        """Return which responses are harmful; those that clinicians did not rate are not."""
        with np.errstate(invalid="ignore"):
            if harm.kind == "low":
                return self.clinicians <= harm.points
            return np.abs(self.jury - self.clinicians) > harm.points

    def as_rated(self, risks: Array, harm: Harm, rows: Flags) -> RatedRisks:
        """Return some rated responses as a rule sees them."""
        return RatedRisks(risks, self.harmful(harm), self.clusters).of(rows)

    def most_of_an_instance(self) -> int:
        """Return the most scored responses of any instance."""
        return int(np.bincount(self.clusters[self.scored()], minlength=1).max())


def candidates(scores: Scores, jury: Sequence[str], needed: int, harm: Harm) -> Candidates:
    """Return all responses of the study with what a rule may know of them.

    Parameters
    ----------
    scores : Scores
    jury, needed : who sits on it, and how many of them must have scored a response completely
    harm : gives the criterion

    Raises
    ------
    BadInput
        If the benchmarks have different scales, or one of them has no such criterion.
    """
    _one_scale(scores, harm.criterion)
    table = criterion_scores(scores, jury, unrated=True)
    own = np.zeros((len(table.responses), len(table.criteria)), dtype=bool)
    places = np.array(table.benchmarks, dtype=object)
    for name, shape in scores.rubrics.items():
        asked = shape.criteria if harm.criterion is None else (harm.criterion,)
        own[places == name] = np.isin(table.criteria, asked)
    by_jurors = table.values[:, table.n_clinicians :]
    return Candidates(
        table.responses,
        table.instances,
        table.benchmarks,
        _shuffled(table.clusters()),
        jury_means(by_jurors, own, needed),
        mean_of_given(_composites(table.values[:, : table.n_clinicians], own)),
    )


def jury_means(values: Array, own: Flags, needed: int) -> Array:
    """Return the mean of the jurors' composites, shape (n,); NaN where too few jurors scored.

    Parameters
    ----------
    values : shape (n, jurors, criteria), in points, NaN where there is none
    own : shape (n, criteria), which criteria count
    needed : jurors that must have scored all of them
    """
    by_jurors = _composites(values, own)
    given = (~np.isnan(by_jurors)).sum(axis=1)
    means: Array = np.where(given >= needed, mean_of_given(by_jurors), np.nan)
    return means


def _composites(values: Array, own: Flags) -> Array:
    """Return each rater's mean over a response's own criteria, NaN where one is missing."""
    used = np.where(own[:, None, :], values, 0.0)  # NaN of an own criterion goes through
    composites: Array = used.sum(axis=2) / np.maximum(own.sum(axis=1), 1)[:, None]
    return composites


def _shuffled(clusters: Integers) -> Integers:
    order = np.random.default_rng(0).permutation(int(clusters.max(initial=-1)) + 1)
    return order[clusters].astype(np.int64)


def _one_scale(scores: Scores, criterion: str | None) -> None:
    """Refuse benchmarks that one number of points cannot be said of."""
    scales = {name: (shape.low, shape.high) for name, shape in scores.rubrics.items()}
    if len(set(scales.values())) > 1:
        told = ", ".join(f"{name} {low} to {high}" for name, (low, high) in scales.items())
        raise BadInput(f"the benchmarks have different scales ({told}): name one with --benchmark")
    without = [name for name, shape in scores.rubrics.items() if criterion not in shape.criteria]
    if criterion is not None and without:
        raise BadInput(
            f"--criterion {criterion}: {', '.join(without)} has no such criterion; name a benchmark "
            "that has it with --benchmark"
        )

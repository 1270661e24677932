"""What a rule may know of each response: the jury's scores of it, its length and its benchmark."""

from collections.abc import Mapping, Sequence
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
    features : shape (n, features), what a model learns from; NaN where the jury's score is
    """

    responses: Sequence[str]
    instances: Sequence[str]
    benchmarks: Sequence[str]
    clusters: Integers
    jury: Array
    clinicians: Array
    features: Array

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


def candidates(
    scores: Scores, jury: Sequence[str], needed: int, harm: Harm, words: Mapping[str, int]
) -> Candidates:
    """Return all responses of the study with what a rule may know of them.

    Parameters
    ----------
    scores : Scores
    jury, needed : who sits on it, and how many of them must have scored a response completely
    harm : gives the criterion
    words : response -> length of its text and source, in words

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
    length = np.log1p([float(words[name]) for name in table.responses])
    named = sorted(set(table.benchmarks))
    views = jury_views(by_jurors, own, needed, length, benchmark_marks(table.benchmarks, named))
    return Candidates(
        table.responses,
        table.instances,
        table.benchmarks,
        _shuffled(table.clusters()),
        views[:, 0],
        mean_of_given(_composites(table.values[:, : table.n_clinicians], own)),
        views,
    )


def jury_views(values: Array, own: Flags, needed: int, length: Array, marks: Array) -> Array:
    """Return what a rule knows of each response, shape (n, 4 + marks); NaN where too few jurors scored.

    Mean of the jurors' composites, their spread, the lowest criterion, the length, the marks.

    Parameters
    ----------
    values : shape (n, jurors, criteria), in points, NaN where there is none
    own : shape (n, criteria), which criteria count
    needed : jurors that must have scored all of them
    length : shape (n,), log of one plus the words of text and source
    marks : shape (n, marks), of the benchmarks but the first
    """
    by_jurors = _composites(values, own)
    given = (~np.isnan(by_jurors)).sum(axis=1)
    jury = np.where(given >= needed, mean_of_given(by_jurors), np.nan)
    centred = np.where(np.isnan(by_jurors), 0.0, by_jurors - jury[:, None])
    spread = np.sqrt((centred**2).sum(axis=1) / np.maximum(given, 1))
    by_criterion = mean_of_given(values)  # (n, criteria)
    lowest = np.where(own & ~np.isnan(by_criterion), by_criterion, np.inf).min(axis=1)
    views = np.column_stack([jury, spread, lowest, length, marks])
    return np.where(np.isnan(jury)[:, None], np.nan, views)


def benchmark_marks(benchmarks: Sequence[str], named: Sequence[str]) -> Array:
    """Return which benchmark each response is of, shape (n, benchmarks - 1): the first has no mark."""
    places = np.array(benchmarks, dtype=object)
    return np.array([(places == name).astype(float) for name in named[1:]]).T.reshape(
        len(places), len(named) - 1
    )


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

"""What clinicians and jurors said of the responses of each part: distances, cases and examples.

Cases and examples are made of the part `train` alone: nothing here takes another part for them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

import numpy as np
from sqlalchemy import Engine

from calibration.learning import TRAIN, PartGain, part_gain, split_instances
from calibration.scores import Array, Integers
from calibration.values import NAN
from data.errors import TooFew, Unknown
from data.rubric import Example
from data.study.improving import JurorVerdict, RatedResponse, rated_responses
from data.study.standing import BenchmarkView
from jury.proposals import words_of

MOST_CASES = 12
LONGEST_EXAMPLE = 6_000  # characters of the source, task and response of an example
Verdicts = Mapping[int, Mapping[str, JurorVerdict]]


@dataclass(frozen=True, slots=True)
class Material:
    """The responses that clinicians rated, by part: "train", "choose" and "test"."""

    parts: Mapping[str, tuple[RatedResponse, ...]]

    def keys(self, *parts: str) -> frozenset[int]:
        """Return the primary keys of the responses of some parts."""
        return frozenset(one.response for part in parts for one in self.parts[part])

    def split(self) -> dict[str, list[int]]:
        """Return part -> its instances, primary keys."""
        return {
            part: sorted({one.instance for one in responses})
            for part, responses in self.parts.items()
        }


def material_of(
    engine: Engine,
    benchmarks: Sequence[BenchmarkView],
    seed: int,
    kept: Mapping[str, Sequence[int]] | None = None,
) -> Material:
    """Return the responses that clinicians rated whole, in the parts of a new or a kept split.

    Instances that came, or were rated, after a split was kept are in no part.

    Raises
    ------
    TooFew
        If a part would have fewer than 10 instances.
    """
    found = [one for view in benchmarks for one in rated_responses(engine, view.name, view.rubric)]
    if not found:
        raise TooFew("no clinician has rated a response of these benchmarks whole")
    split = kept or split_instances(_strata(found), seed)
    part_of = {instance: part for part, members in split.items() for instance in members}
    return Material(
        {part: tuple(one for one in found if part_of.get(one.instance) == part) for part in split}
    )


def _strata(found: Sequence[RatedResponse]) -> dict[int, tuple[str, int]]:
    """Return instance -> its benchmark and in which third of it the clinicians' scores are."""
    strata: dict[int, tuple[str, int]] = {}
    for benchmark, group in groupby(found, key=lambda one: one.benchmark):
        means: dict[int, list[float]] = {}
        for one in group:
            means.setdefault(one.instance, []).append(clinicians_mean(one))
        ordered = sorted(means, key=lambda instance: (float(np.mean(means[instance])), instance))
        for place, instance in enumerate(ordered):
            strata[instance] = benchmark, 3 * place // len(ordered)
    return strata


def clinicians_mean(response: RatedResponse) -> float:
    """Return the mean over clinicians of their means over criteria."""
    return fmean(fmean(one.scores.values()) for one in response.readings)


@dataclass(frozen=True, slots=True)
class SeatedJury:
    """Jurors with what they gave; `without`: responses that they were shown as examples."""

    jurors: tuple[str, ...]
    verdicts: Verdicts
    without: frozenset[int] = frozenset()

    def means(self, responses: Sequence[RatedResponse]) -> Array:
        """Return the mean over jurors of their means over criteria, NaN where one has no verdict.

        Also NaN for responses of `without`.
        """
        return np.array([self._mean(one.response) for one in responses])

    def _mean(self, response: int) -> float:
        given = self.verdicts.get(response, {})
        if response in self.without or not all(juror in given for juror in self.jurors):
            return NAN
        return fmean(fmean(given[juror].scores.values()) for juror in self.jurors)


def gain_on(responses: Sequence[RatedResponse], before: SeatedJury, after: SeatedJury) -> PartGain:
    """Return what a change of jury did on some responses."""
    clinicians = np.array([clinicians_mean(one) for one in responses])
    instances: Integers = np.array([one.instance for one in responses], dtype=np.intp)
    return part_gain(clinicians, before.means(responses), after.means(responses), instances)


def distances(responses: Sequence[RatedResponse], jury: SeatedJury) -> Array:
    """Return how far the jury's mean is from the clinicians' on each response."""
    clinicians = np.array([clinicians_mean(one) for one in responses])
    away: Array = np.abs(jury.means(responses) - clinicians)
    return away


def worst_cases(
    material: Material, jury: "SeatedJury", most: int = MOST_CASES
) -> tuple[tuple[RatedResponse, Mapping[str, JurorVerdict]], ...]:
    """Return the responses of train on which jury and clinicians are farthest apart, with verdicts."""
    return tuple(
        (one, {name: jury.verdicts[one.response][name] for name in jury.jurors})
        for one in _farthest(material.parts[TRAIN], jury)[:most]
    )


def examples_of(material: Material, jury: SeatedJury, number: int) -> dict[int, Example]:
    """Return response -> example, of train: the worst of each level of scores in turn.

    Responses that are too long to be read along with another one are left out.
    """
    short = [
        one
        for one in material.parts[TRAIN]
        if len(one.card.context + one.card.prompt + one.card.response) <= LONGEST_EXAMPLE
    ]
    by_level: dict[int, list[RatedResponse]] = {}
    for one in _farthest(short, jury):
        by_level.setdefault(round(clinicians_mean(one)), []).append(one)
    chosen: dict[int, Example] = {}
    while by_level and len(chosen) < number:
        for level in sorted(by_level):
            if len(chosen) < number:
                one = by_level[level].pop(0)
                chosen[one.response] = _example(one)
        by_level = {level: left for level, left in by_level.items() if left}
    return chosen


def _farthest(responses: Sequence[RatedResponse], jury: SeatedJury) -> list[RatedResponse]:
    away = distances(responses, jury)
    known = [(-far, one.response_id, one) for far, one in zip(away, responses, strict=True)]
    return [one for far, _, one in sorted(known, key=lambda row: row[:2]) if not np.isnan(far)]


def _example(response: RatedResponse) -> Example:
    card = response.card
    criteria = response.readings[0].scores
    scores = {name: tuple(one.scores[name] for one in response.readings) for name in criteria}
    words = (line for one in response.readings for line in words_of(one))
    return Example(
        context=card.context,
        prompt=card.prompt,
        response=card.response,
        scores=scores,
        why=" | ".join(words),
    )


def views_on_one_rubric(
    views: Sequence[BenchmarkView], names: Sequence[str]
) -> tuple[BenchmarkView, ...]:
    """Return the benchmarks that are named, or all; they must be rated on one rubric.

    Raises
    ------
    Unknown
        If one is not in the study, or they are rated on several rubrics.
    """
    known = {view.name: view for view in views}
    if absent := [name for name in names if name not in known]:
        raise Unknown(f"benchmark {absent[0]!r}: the study has {', '.join(known) or 'none'}")
    chosen = tuple(known[name] for name in names or known)
    rubrics = {view.rubric.sha256: view for view in chosen}
    if len(rubrics) > 1:
        raise Unknown(
            "a jury learns one rubric at a time, and these benchmarks are rated on several: name those of "
            "one rubric with --benchmark: "
            + ", ".join(f"{view.name} ({view.rubric.name})" for view in chosen)
        )
    if by_points := [view.name for view in chosen if view.rubric.points]:
        raise Unknown(
            f"benchmark {by_points[0]}: is rated by points of the case, each case with its own; there is "
            "no one rubric to better. Correct the points instead (`medjury study points`)"
        )
    return chosen

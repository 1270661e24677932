"""Whether notes look like those that a jury was validated on: compared whole, and group by group.

Whole instances are compared, since responses to one case are alike. What differs says that the
validation does not speak for these notes; that nothing differs does not show that it does.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.differences import holm
from calibration.scores import Array, Flags, Integers
from calibration.values import NORMAL_95
from calibration.ward_values import LEAST, Compared, GroupStanding, Standing, Transported

SHUFFLES = 1999
MOST = 1500  # instances of a side that are compared; of texts fewer, since all pairs are
MOST_TEXTS = 300
ALL = "all"


@dataclass(frozen=True, eq=False)
class Notes:
    """Notes as a comparison sees them.

    Attributes
    ----------
    instances : shape (n,), the case that each is of
    figures : name -> shape (n,), such as words or the jury's score; NaN where there is none
    groups : name -> n values, "" where a note has none; benchmarks are a group
    texts : shape (n, dimensions), embeddings of unit length, NaN where a text was not read; None without
    """

    instances: Sequence[str]
    figures: Mapping[str, Array]
    groups: Mapping[str, Sequence[str]]
    texts: Array | None = None

    def of(self, rows: Flags) -> "Notes":
        """Return some of them."""
        places = np.flatnonzero(rows).tolist()
        return Notes(
            [self.instances[place] for place in places],
            {name: values[rows] for name, values in self.figures.items()},
            {name: [own[place] for place in places] for name, own in self.groups.items()},
            None if self.texts is None else self.texts[rows],
        )


def transported(validated: Notes, new: Notes, seed: int = 0) -> Transported:
    """Compare notes with those that a jury was validated on.

    Parameters
    ----------
    validated, new : with the same figures and groups; a group that either lacks is not compared
    seed : of the permutations

    Returns
    -------
    Transported
        A group is "different" if a property differs with p under 0.05 by Holm over all that is
        compared, and by 0.1 or more; "not_rated" if it has new instances and no validated one;
        "few" with under 20 of either, "alike" otherwise.
    """
    random = np.random.default_rng(seed)
    found = [*_compared(ALL, validated, new, random), *_mixes(validated, new, random)]
    scopes = list(_scopes(validated, new))
    for name, old, own in scopes:
        if min(_cases(old), _cases(own)) >= LEAST:
            found += _compared(name, old, own, random)
    adjusted = holm(np.array([one.p for one in found]))
    rows = tuple(replace(one, p_holm=float(p)) for one, p in zip(found, adjusted, strict=True))
    every = [(ALL, validated, new), *scopes]
    return Transported(tuple(_standing(*scope, rows) for scope in every), rows)


def _standing(name: str, old: Notes, own: Notes, rows: Sequence[Compared]) -> GroupStanding:
    differs = tuple(one.what for one in rows if one.group == name and one.differs)
    counts = _cases(old), _cases(own)
    if not counts[0]:
        standing = Standing.NOT_RATED
    elif min(counts) < LEAST:
        standing = Standing.FEW
    else:
        standing = Standing.DIFFERENT if differs else Standing.ALIKE
    return GroupStanding(name, *counts, standing, differs)


def _scopes(validated: Notes, new: Notes) -> Iterator[tuple[str, Notes, Notes]]:
    """Yield every value of every group that the new notes have, unless all notes have it."""
    for name in new.groups:
        values = [np.array(notes.groups.get(name, ()), dtype=object) for notes in (validated, new)]
        levels = sorted({*values[1].tolist()} - {""})
        if len({*values[0].tolist(), *values[1].tolist()}) < 2:
            continue
        for level in levels:
            old = (
                validated.of(values[0] == level)
                if len(values[0])
                else validated.of(_none(validated))
            )
            yield f"{name}: {level}", old, new.of(values[1] == level)


def _none(notes: Notes) -> Flags:
    return np.zeros(len(notes.instances), dtype=bool)


def _cases(notes: Notes) -> int:
    return len({*notes.instances})


def _compared(
    group: str, validated: Notes, new: Notes, random: np.random.Generator
) -> Iterator[Compared]:
    """Yield each figure that both sides have, and the texts."""
    for what in validated.figures:
        if what not in new.figures:
            continue
        sides = [_of_instances(notes, notes.figures[what]) for notes in (validated, new)]
        if min(map(len, sides)) >= LEAST:
            yield _figure(group, what, sides[0], sides[1], random)
    if validated.texts is not None and new.texts is not None:
        drawn = [one_of_each(notes, random) for notes in (validated, new)]
        if min(map(len, drawn)) >= LEAST:
            old, own = (
                texts[rows] for texts, rows in zip((validated.texts, new.texts), drawn, strict=True)
            )
            gap, p = energy_test(old, own, random)
            nan = float("nan")
            yield Compared(group, "text", nan, nan, nan, nan, nan, gap, p)


def _of_instances(notes: Notes, values: Array) -> Array:
    """Return the mean of each instance, of what there is."""
    known = ~np.isnan(values)
    names = np.array(notes.instances, dtype=object).astype(str)[known]
    _, numbers = np.unique(names, return_inverse=True)
    means: Array = np.bincount(numbers, values[known]) / np.maximum(np.bincount(numbers), 1)
    return means


def one_of_each(notes: Notes, random: np.random.Generator) -> Integers:
    """Return the row of one text of each instance, of at most 300 drawn at random; of known embeddings."""
    known = np.arange(len(notes.instances))
    if notes.texts is not None:
        known = np.flatnonzero(~np.isnan(notes.texts).any(axis=1))
    order = random.permutation(known)
    names = np.array(notes.instances, dtype=object).astype(str)[order]
    _, first = np.unique(names, return_index=True)
    rows = random.permutation(order[first])[:MOST_TEXTS]
    return rows.astype(np.int64)


def _figure(group: str, what: str, old: Array, new: Array, random: np.random.Generator) -> Compared:
    means = float(old.mean()), float(new.mean())
    error = float(np.sqrt(old.var(ddof=1) / len(old) + new.var(ddof=1) / len(new)))
    difference = means[1] - means[0]
    ends = difference - NORMAL_95 * error, difference + NORMAL_95 * error
    old, new = (random.permutation(side)[:MOST] for side in (old, new))
    gap, p = gap_test(old, new, random)
    return Compared(group, what, *means, difference, *ends, gap, p)


def gap_test(old: Array, new: Array, random: np.random.Generator) -> tuple[float, float]:
    """Return the largest gap of two distribution functions, and its p value by permutation.

    The statistic of Kolmogorov and Smirnov, whose tables do not hold where values are tied, as scores
    are. Exact up to the draw of 1,999 permutations, whatever the values.
    """
    values = np.concatenate([old, new])
    order = np.argsort(values, kind="stable")
    ends = np.flatnonzero(np.r_[np.diff(values[order]) > 0, True])
    is_old = np.arange(len(values))[order] < len(old)

    def gap(marks: Flags) -> float:
        ours = np.cumsum(marks)[ends] / len(old)
        theirs = np.cumsum(~marks)[ends] / len(new)
        return float(np.abs(ours - theirs).max())

    found = gap(is_old)
    drawn = np.array([gap(random.permutation(is_old)) for _ in range(SHUFFLES)])
    return found, _p(found, drawn)


def energy_test(old: Array, new: Array, random: np.random.Generator) -> tuple[float, float]:
    """Return the energy coefficient of two sets of points, 0 to 1, and its p value by permutation.

    Szekely, Rizzo (2013), Energy statistics, Journal of Statistical Planning and Inference 143, 1249:
    (2 between - within - within) / (2 between), means of the distances of pairs.

    Parameters
    ----------
    old, new : shape (n, dimensions) and (m, dimensions)
    """
    points = np.concatenate([old, new]).astype(float)
    squares = (points**2).sum(axis=1)
    apart = np.sqrt(np.maximum(squares[:, None] + squares[None] - 2 * points @ points.T, 0.0))
    is_old = np.arange(len(points)) < len(old)
    marks = np.array([is_old, *(random.permutation(is_old) for _ in range(SHUFFLES))]).astype(float)
    n, m = len(old), len(new)
    totals = marks @ apart
    ours = (totals * marks).sum(axis=1)
    both = totals.sum(axis=1) - ours
    theirs = apart.sum() - ours - 2 * both
    between = 2 * both / (n * m)
    energy = between - ours / n**2 - theirs / m**2
    coefficient = energy / np.where(between > 0, between, 1.0)
    return float(coefficient[0]), _p(float(energy[0]), energy[1:])


def _mixes(validated: Notes, new: Notes, random: np.random.Generator) -> Iterator[Compared]:
    """Yield whether the instances lie on the values of each group in the same shares."""
    nan = float("nan")
    for name in new.groups:
        if name not in validated.groups:
            continue
        sides = [_levels(notes, name) for notes in (validated, new)]
        names, numbers = np.unique(np.concatenate(sides), return_inverse=True)
        if len(names) < 2 or min(map(len, sides)) < LEAST:
            continue
        counts = np.bincount(numbers[: len(sides[0])], minlength=len(names))
        totals = np.bincount(numbers, minlength=len(names))
        drawn = random.multivariate_hypergeometric(totals, len(sides[0]), SHUFFLES)
        expected = totals * len(sides[0]) / totals.sum()
        found, others = (((own - expected) ** 2 / expected).sum(axis=-1) for own in (counts, drawn))
        gap = np.abs(counts / len(sides[0]) - (totals - counts) / len(sides[1])).sum() / 2
        p = _p(float(found), others)
        yield Compared(ALL, f"mix of {name}", nan, nan, nan, nan, nan, float(gap), p)


def _levels(notes: Notes, name: str) -> "np.typing.NDArray[np.str_]":
    """Return the value of each instance, that of its first note."""
    _, first = np.unique(np.array(notes.instances, dtype=object).astype(str), return_index=True)
    return np.array([notes.groups[name][place] for place in first], dtype=str)


def _p(found: float, drawn: Array) -> float:
    return float((1 + (drawn >= found - 1e-12).sum()) / (1 + len(drawn)))

"""Ways to choose which responses are rated, and estimates with intervals that allow for the choice.

Weights are 1 / chance of being drawn. Variances are linearised with Hajek's approximation, within strata
where there are some; it is exact for uniform choice. t has Kish's effective number less what is fitted.
"assisted" means prediction-powered: the influence values are regressed on the jury's score and its
square, known for all responses.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import t as student

from calibration.agreement import PanelColumns, column_icc, columns
from calibration.like_for_like import like_for_like
from calibration.rating_matrix import RatingMatrix
from calibration.scores import Array, Flags, Integers

PILOT, STRATA = 30, 5
UNIFORM_SHARE = 0.5  # of the drawing chance, so that no weight is over twice that of uniform choice
RIDGE = 10.0  # penalty, in responses, on what is learned from the pilot


@dataclass(frozen=True, eq=False)
class Population:
    """All N responses with every rating: composites of shape (N, raters), clinicians first."""

    name: str
    composites: Array
    clinicians: int

    @cached_property
    def jury(self) -> Array:
        """Return the jury's mean in standard deviations, shape (N,)."""
        mean = self.composites[:, self.clinicians :].mean(axis=1)
        standardised: Array = (mean - mean.mean()) / mean.std()
        return standardised

    @cached_property
    def spread(self) -> Array:
        """Return the standard deviation over jurors, shape (N,), in points."""
        spread: Array = self.composites[:, self.clinicians :].std(axis=1)
        return spread

    @cached_property
    def known(self) -> Array:
        """Return what is known of unrated responses, shape (N, 3): 1, the score, its square."""
        return np.column_stack([np.ones_like(self.jury), self.jury, self.jury**2])

    @cached_property
    def features(self) -> Array:
        """Return what errors are predicted from, shape (N, 4): `known`, and the spread, standardised."""
        columns = np.column_stack([self.known[:, 1:], self.spread])
        scaled = (columns - columns.mean(axis=0)) / np.maximum(columns.std(axis=0), 1e-12)
        return np.column_stack([self.known[:, 0], scaled])

    @cached_property
    def strata(self) -> Integers:
        """Return the fifth of the jury's scores that each response is in, shape (N,)."""
        rank = np.argsort(np.argsort(self.jury, kind="stable"), kind="stable")
        return np.asarray(rank * STRATA // len(rank), dtype=np.int64)

    def truth(self, statistic: str) -> float:
        """Return the figure of all responses, as medjury computes it."""
        if statistic.startswith("mean"):
            return float(self.composites[:, : self.clinicians].mean())
        number, raters = self.composites.shape
        names = tuple(map(str, range(raters)))
        kinds = tuple("clinician" if n < self.clinicians else "juror" for n in range(raters))
        rows = np.arange(number)
        grid = RatingMatrix(self.composites, tuple(map(str, rows)), rows, names, kinds)
        jury = PanelColumns(names[self.clinicians :], 1)
        if statistic.startswith("like"):
            return like_for_like(grid, jury, "paper").difference
        pair = columns(grid, jury, "paper")
        return column_icc(pair.clinicians, pair.scorer, "paper")

    def has(self, statistic: str, sampler: str) -> bool:
        """Return whether there are raters enough for both."""
        several = self.composites.shape[1] - self.clinicians > 1
        return (several or sampler != "by spread") and (
            self.clinicians > 1 or not statistic.startswith("like")
        )


@dataclass(frozen=True, eq=False)
class Draw:
    """What was drawn: rows, each one's chance of being drawn, and its stratum (0 without strata)."""

    rows: Integers
    chance: Array
    strata: Integers

    @cached_property
    def weights(self) -> Array:
        """Return 1 / chance, summing to 1, shape (n,)."""
        return 1 / self.chance / (1 / self.chance).sum()


@dataclass(frozen=True, eq=False)
class Linear:
    """A figure and, for each of n rated responses, its influence on it, shape (n,)."""

    value: float
    influence: Array


def form(z: Array, weights: Array, left: Array, right: Array) -> Linear:
    """Return the weighted mean product of two combinations of columns that are z-scored by the weights."""
    correlation = (z * weights[:, None]).T @ z
    value = float(left @ correlation @ right)
    scaled = left * (correlation @ right) + right * (correlation @ left)
    return Linear(value, (z @ left) * (z @ right) - value - (z**2 - 1) @ scaled / 2)


def icc_of(xx: Linear, yy: Linear, xy: Linear) -> Linear:
    """Return ICC(C,2) = 4 xy / (xx + yy + 2 xy) of positively related columns."""
    below = xx.value + yy.value + 2 * xy.value
    icc = 4 * xy.value / below
    change = 4 * xy.influence - icc * (xx.influence + yy.influence + 2 * xy.influence)
    return Linear(icc, change / below)


def total(parts: list[Linear]) -> Linear:
    """Return the sum of figures."""
    return Linear(
        sum(part.value for part in parts), np.sum([part.influence for part in parts], axis=0)
    )


def linear(composites: Array, clinicians: int, weights: Array, statistic: str) -> Linear:
    """Return a statistic of rated responses (n, raters) under weights (n,) that sum to 1."""
    if statistic.startswith("mean"):
        rated = composites[:, :clinicians].mean(axis=1)
        return Linear(float(weights @ rated), rated - weights @ rated)
    centred = composites - weights @ composites
    z = centred / np.sqrt(weights @ centred**2)
    is_clinician = np.arange(composites.shape[1]) < clinicians
    jury = ~is_clinician / (~is_clinician).sum()
    if statistic.startswith("icc"):
        mean = is_clinician / clinicians
        pairs = ((jury, jury), (mean, mean), (jury, mean))
        return icc_of(*(form(z, weights, *pair) for pair in pairs))
    single = np.eye(len(jury))[:clinicians]
    others = (is_clinician - single) / (clinicians - 1)
    rest = total([form(z, weights, other, other) for other in others])

    def agreement(left: Array) -> Linear:
        own = total([form(z, weights, one, one) for one in left])
        both = [form(z, weights, one, other) for one, other in zip(left, others, strict=True)]
        return icc_of(own, rest, total(both))

    of_jury, of_clinician = agreement(np.tile(jury, (clinicians, 1))), agreement(single)
    difference = of_jury.influence - of_clinician.influence
    return Linear(of_jury.value - of_clinician.value, difference)


def assisted(whole: Population, draw: Draw, statistic: str) -> Linear:
    """Return the estimate and what is left of the influence; without "assisted" that is all of it."""
    found = linear(whole.composites[draw.rows], whole.clinicians, draw.weights, statistic)
    if not statistic.endswith("assisted"):
        return found
    known, root = whole.known[draw.rows], np.sqrt(draw.weights)
    slopes = np.linalg.lstsq(known * root[:, None], found.influence * root, rcond=None)[0]
    moved = float(whole.known.mean(axis=0) @ slopes)
    return Linear(found.value + moved, found.influence - known @ slopes)


def interval(whole: Population, draw: Draw, statistic: str) -> tuple[float, float, float]:
    """Return estimate, low and high; an ICC's is symmetric in log(1 - ICC), from -1."""
    found = assisted(whole, draw, statistic)
    terms, left = draw.weights * found.influence, np.maximum(1 - draw.chance, 0)
    variance = 0.0
    for stratum in np.unique(draw.strata):
        own = draw.strata == stratum
        n, part, of = own.sum(), left[own], terms[own]
        middle = part @ of / max(part.sum(), 1e-12)
        variance += n / (n - 1) * float(part @ (of - middle) ** 2)
    fitted = 3 if statistic.endswith("assisted") else 1
    kish = 1 / (draw.weights**2).sum()
    error = np.sqrt(variance * (kish - 1) / (kish - fitted))
    half = float(student.ppf(0.975, kish - fitted) * error)
    if statistic.startswith("icc"):
        apart = max(1 - found.value, 1e-3)
        factor = np.exp(min(half / apart, 50))
        return found.value, max(1 - apart * factor, -1.0), 1 - apart / factor
    return found.value, found.value - half, found.value + half


def scale(sizes: Array, number: int) -> float:
    """Return k such that the sum of min(1, k * size) is a number."""
    full: Flags = np.zeros(len(sizes), dtype=bool)
    while True:
        k = float((number - full.sum()) / sizes[~full].sum())
        over = k * sizes >= 1
        if not (over & ~full).any():
            return k
        full |= over


def mixed(sizes: Array) -> Array:
    """Return sizes of mean 1, mixed with those of uniform choice."""
    return UNIFORM_SHARE + (1 - UNIFORM_SHARE) * sizes / sizes.mean()


def draw_by_chance(chance: Array, number: int, random: np.random.Generator) -> Integers:
    """Return rows drawn with these chances, which sum to the number: systematic, in random order."""
    order = random.permutation(len(chance))
    places = np.searchsorted(np.cumsum(chance[order]), random.random() + np.arange(number))
    return order[np.minimum(places, len(order) - 1)]


def uniform(whole: Population, number: int, random: np.random.Generator) -> Draw:
    """Draw without replacement, all alike."""
    rows = random.choice(len(whole.jury), number, replace=False)
    return Draw(rows, np.full(number, number / len(whole.jury)), np.zeros(number, dtype=np.int64))


def by_size(whole: Population, number: int, random: np.random.Generator, sizes: Array) -> Draw:
    """Draw with chances in proportion to sizes (N,), mixed with uniform choice."""
    own = mixed(sizes)
    chance = np.minimum(scale(own, number) * own, 1)
    rows = draw_by_chance(chance, number, random)
    return Draw(rows, chance[rows], np.zeros(number, dtype=np.int64))


def learned(whole: Population, number: int, random: np.random.Generator, target: str) -> Draw:
    """Draw 30, learn how large a statistic's influence values are, draw the others by that."""
    pilot, all_of = uniform(whole, PILOT, random), len(whole.jury)
    size, x = np.abs(assisted(whole, pilot, target).influence), whole.features[pilot.rows]
    penalty = RIDGE * np.diag([0.0, 1, 1, 1])
    predicted = whole.features @ np.linalg.solve(x.T @ x + penalty, x.T @ size)
    predicted = np.maximum(predicted, predicted.mean() / 10)
    own = mixed(predicted)
    rest = np.setdiff1d(np.arange(all_of), pilot.rows)
    later = np.minimum(scale(own[rest], number - PILOT) * own, 1)
    drawn = rest[draw_by_chance(later[rest], number - PILOT, random)]
    rows = np.concatenate([pilot.rows, drawn])
    chance = PILOT / all_of + (1 - PILOT / all_of) * later[rows]
    return Draw(rows, chance, np.zeros(number, dtype=np.int64))


def shares(wanted: Array, number: int) -> Integers:
    """Return whole numbers in proportion to what is wanted, summing to a number."""
    exact = number * wanted / wanted.sum()
    whole: Integers = np.floor(exact).astype(np.int64)
    whole[np.argsort(whole - exact)[: number - whole.sum()]] += 1
    return whole


def stratified(
    whole: Population, number: int, random: np.random.Generator, target: str = ""
) -> Draw:
    """Draw in fifths of the jury's scores, alike; with a target, as Neyman from the sds in 30 of them."""
    sizes = np.bincount(whole.strata)
    counts = shares(sizes.astype(float), PILOT if target else number)
    orders = [random.permutation(np.flatnonzero(whole.strata == n)) for n in range(STRATA)]

    def taken() -> Draw:
        rows = np.concatenate([order[:n] for order, n in zip(orders, counts, strict=True)])
        own = whole.strata[rows]
        return Draw(rows, (counts / sizes)[own], own)

    if target:
        pilot = taken()
        influence = assisted(whole, pilot, target).influence
        sds = np.array([influence[pilot.strata == n].std(ddof=1) for n in range(STRATA)])
        wanted = sizes * (UNIFORM_SHARE * influence.std() + (1 - UNIFORM_SHARE) * sds)
        counts = counts + shares(
            np.maximum(number * wanted / wanted.sum() - counts, 0), number - PILOT
        )
    return taken()

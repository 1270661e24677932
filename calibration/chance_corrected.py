"""Agreement corrected for chance on single criteria: quadratic kappa, Krippendorff's alpha, Gwet's AC2."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from statsmodels.stats.inter_rater import cohens_kappa

from calibration import remarks
from calibration.krippendorff import (
    FirstScores,
    alpha_interval,
    alpha_ordinal,
    count_ratings,
    first_scores,
)
from calibration.notes import Note, Noted, note, noted, undefined
from calibration.pairs import FRAGILE
from calibration.scope import Scope
from calibration.scores import Array, Integers, Scores
from calibration.shared_notes import (
    ALONE_HAS_CRITERION,
    CRITERION_UNSCORED,
    DIFFERENT_SCALES,
    NO_CRITERION,
    NO_SCORE,
)
from calibration.values import NAN


@dataclass(frozen=True)
class AC2:
    """Gwet's coefficient and its standard error, over responses drawn independently."""

    value: float
    se: float


def gwet_ac2(counts: Array, weights: Array) -> AC2:
    """Return Gwet's AC2 of any number of raters, some ratings missing.

    Parameters
    ----------
    counts : shape (n, q)
        How many raters gave each response each point, as `krippendorff.count_ratings`
        returns them; one column for every point of the scale, used or not, since chance
        agreement depends on q.
    weights : shape (q, q)
        Agreement of two points, 1 on the diagonal: `quadratic_weights`. The identity makes
        it AC1.

    Returns
    -------
    AC2
        (p_a - p_e) / (1 - p_e). p_a is the weighted share of agreeing pairs, averaged over
        responses with two ratings or more; p_e = sum(weights) / (q (q - 1)) *
        sum pi (1 - pi), where pi is the mean share of each point over all responses with a
        rating, a single one included. NaN where no response has two ratings; 1 with se 0
        where all agree. se, the square root of the unconditional variance of a sample from
        endless responses with these raters fixed, is NaN with fewer than two responses.

    Notes
    -----
    se is the source's. It takes the number of responses with two ratings for a matter of
    chance without correcting the mean for it, so it is too wide where many have only one.

    References
    ----------
    Gwet (2014), Handbook of Inter-Rater Reliability, 4th ed., chapters 3-5; Gwet (2008),
    British Journal of Mathematical and Statistical Psychology 61, 29.
    """
    counts = counts[counts.sum(axis=1) > 0]
    (n, q), raters = counts.shape, counts.sum(axis=1)
    several = raters >= 2
    if not several.any():
        return AC2(NAN, NAN)
    agreeing = (counts * (counts @ weights - 1)).sum(axis=1)
    agreed = np.where(several, agreeing / np.maximum(raters * (raters - 1), 1), 0.0)
    shares = counts / raters[:, None]
    share = shares.mean(axis=0)
    factor = float(weights.sum()) / (q * (q - 1))
    chance = factor * float(share @ (1 - share))
    value = (float(agreed[several].mean()) - chance) / (1 - chance)
    if n < 2:
        return AC2(value, NAN)
    own = (n / several.sum()) * (agreed - chance * several) / (1 - chance)
    own_chance = factor * (shares @ (1 - share))
    own -= 2 * (1 - value) * (own_chance - chance) / (1 - chance)
    return AC2(value, float(np.sqrt(np.square(own - value).sum() / (n * (n - 1)))))


def quadratic_weights(points: Array) -> Array:
    """Return 1 - (c - k)^2 / (highest - lowest)^2 for all pairs of points, shape (q, q)."""
    return np.asarray(1 - np.square((points[:, None] - points) / (points[-1] - points[0])))


@dataclass(frozen=True)
class ChanceRow(Noted):
    """Chance-corrected agreement on one criterion, of clinicians alone or with one juror.

    raters is "clinicians" or "juror:NAME"; n_responses counts the responses that two of
    these raters scored. All coefficients are at most 1; NaN where undefined.
    """

    benchmark: str
    criterion: str
    raters: str
    kappa_quadratic: float = NAN
    alpha_ordinal: float = NAN
    alpha_interval: float = NAN
    ac2: float = NAN
    ac2_se: float = NAN
    n_responses: int = 0


def chance_rows(scope: Scope, scores: Scores) -> list[ChanceRow]:
    """Return kappa, alpha and AC2 on each criterion, of clinicians and of each juror with them.

    Parameters
    ----------
    scope : one benchmark or all combined; its one criterion if one was asked for, else all
    scores : the study, for its single scores

    Returns
    -------
    list of ChanceRow
        For each criterion in the rubrics' order "clinicians", then the jurors. Of clinicians
        kappa is the mean over their pairs, of a juror over its pairs with each clinician;
        alpha and AC2 are of the clinicians, and of the clinicians and the juror together.
        Over the responses that a clinician scored on the criterion; of hidden repeats and
        replicates the first score, which the note says.

    References
    ----------
    As `quadratic_kappa`, `krippendorff.alpha_interval` and `gwet_ac2`.
    """
    single = scope.options.criterion
    members = scores.members(scope.name)
    known = dict.fromkeys(c for name in members for c in scores.rubrics[name].criteria)
    criteria = tuple(known) if single is None else (single,)
    return [row for name in criteria for row in _criterion_rows(scope, scores, members, name)]


def _criterion_rows(
    scope: Scope, scores: Scores, benchmarks: Sequence[str], criterion: str
) -> Iterator[ChanceRow]:
    members = [name for name in benchmarks if criterion in scores.rubrics[name].criteria]
    read = first_scores(scores, members, criterion, scope.jurors)
    scales = {(scores.rubrics[name].low, scores.rubrics[name].high) for name in read.benchmarks}
    reason = None if read.clinicians else undefined(*CRITERION_UNSCORED, criterion=criterion)
    reason = reason if members else undefined(*NO_CRITERION, criterion=criterion)
    reason = reason if len(scales) < 2 else undefined(*DIFFERENT_SCALES)
    whole = len(members) == len(benchmarks)
    part = None if whole else note(*ALONE_HAS_CRITERION, benchmarks=members)
    coded = None if reason else _Coded.of(read, *next(iter(scales)))
    for group in ("clinicians", *(f"juror:{name}" for name in scope.jurors)):
        row = ChanceRow(scope.name, criterion, group, notes=noted(reason))
        if coded:
            own = read.columns(group)
            row = _measured(row, coded, own, scope.options.min_shared)
            row = replace(row, notes=noted(part, *_rater_notes(scope, read, own), *row.notes))
        yield row


@dataclass(frozen=True, eq=False)
class _Coded:
    """Single scores made ready once, for the clinicians alone and with each juror."""

    read: FirstScores
    points: Array
    values: Array
    codes: Integers
    clinical: Array

    @classmethod
    def of(cls, read: FirstScores, low: int, high: int) -> "_Coded":
        points = np.arange(low, high + 1.0)
        values = np.union1d(points, read.ratings[~np.isnan(read.ratings)])
        place = np.searchsorted(points, read.ratings.T)
        codes = np.where(np.isnan(read.ratings.T), -1, place).astype(np.int64)
        clinical = count_ratings(read.ratings[:, : len(read.clinicians)], values)
        return cls(read, points, values, codes, clinical)

    def counts(self, own: list[int]) -> Array:
        """Return the counts of the clinicians' columns, and of a juror's if there is one more."""
        size = len(self.read.clinicians)
        return self.clinical + count_ratings(self.read.ratings[:, own[size:]], self.values)


def _measured(row: ChanceRow, coded: _Coded, own: list[int], min_shared: int) -> ChanceRow:
    """Fill in the row of the clinicians' columns, or of these and a juror's as the last."""
    read, size, counts = coded.read, len(coded.read.clinicians), coded.counts(own)
    shared = int((counts.sum(axis=1) >= 2).sum())
    if reason := _why_undefined(read, own, shared):
        return replace(row, notes=(reason,))
    ordinal, interval = alpha_ordinal(counts), alpha_interval(counts, coded.values)
    row = replace(row, alpha_ordinal=ordinal, alpha_interval=interval, n_responses=shared)
    same = (
        None
        if np.isfinite(interval)
        else note("alpha_undefined", "alpha undefined: all scores are the same")
    )
    whole = np.isin(coded.values, coded.points)
    if between := int(counts[:, ~whole].sum()):
        return replace(
            row,
            notes=noted(
                same,
                note(
                    "off_points",
                    "kappa and AC2 undefined: {scores:score} between the points of the scale",
                    scores=between,
                ),
            ),
        )
    alone = len(own) == size
    pairs = combinations(own, 2) if alone else ((own[-1], clinician) for clinician in own[:size])
    kappas = pair_kappas(coded.codes, pairs, len(coded.points), min_shared)
    ac2 = gwet_ac2(counts[:, whole], quadratic_weights(coded.points))
    notes = noted(*kappas.notes(min_shared), same)
    return replace(row, kappa_quadratic=kappas.mean, ac2=ac2.value, ac2_se=ac2.se, notes=notes)


def _why_undefined(read: FirstScores, own: list[int], shared: int) -> Note | None:
    if len(own) == 1:
        return remarks.only_clinician(read.clinicians[0])
    if len(own) > len(read.clinicians) and np.isnan(read.ratings[:, own[-1]]).all():
        return undefined(*NO_SCORE, kind="juror", name=read.raters[own[-1]])
    return (
        None
        if shared
        else undefined("no_two_scores", "no response has the scores of two of these raters")
    )


def _rater_notes(scope: Scope, read: FirstScores, own: list[int]) -> Iterator[Note | None]:
    """Yield notes on simulated raters, scores left out, and what the standard error assumes."""
    is_scored = (~np.isnan(read.ratings[:, own])).any(axis=1)
    if later_scores := sum(read.again[column] for column in own):
        yield note(
            "first_scores",
            "first scores only: {scores:score} of repeats or replicates left out",
            scores=later_scores,
        )
    instances = len(np.unique(read.instances[is_scored]))
    if instances < is_scored.sum():
        yield note(
            "shared_ac2",
            (
                "{responses} responses from {instances} instances: AC2's standard error takes them as "
                "independent"
            ),
            "several responses of an instance: AC2's standard error takes them as independent",
            responses=int(is_scored.sum()),
            instances=instances,
        )
    if alone := int(((~np.isnan(read.ratings[:, own])).sum(axis=1) == 1).sum()):
        yield note(
            "single_scores",
            (
                "{responses:response} with a single score: they count in AC2's chance term, and make "
                "its standard error too wide"
            ),
            responses=alone,
        )
    yield remarks.simulated(scope.simulated & {read.raters[column] for column in own})


def quadratic_kappa(table: Array) -> float:
    """Return Cohen's kappa with quadratic weights of one table of two raters.

    Parameters
    ----------
    table : shape (q, q)
        How many responses the first rater gave the point of the row and the second that of
        the column; one row and column for every point of the scale, evenly spaced.

    Returns
    -------
    float
        1 - sum w observed / sum w expected, w = (row - column)^2; -1 to 1. For n responses
        it is 2 cov / (var x + var y + (mean x - mean y)^2) with ddof 0: a rater who is
        stricter loses by it. 0 where one rater gave one point only; NaN where both gave
        one and the same, or where the table is empty.

    References
    ----------
    Cohen (1968), Psychological Bulletin 70, 213; Fleiss & Cohen (1973), Educational and
    Psychological Measurement 33, 613. The computation is statsmodels'.
    """
    rows, columns = np.flatnonzero(table.sum(axis=1)), np.flatnonzero(table.sum(axis=0))
    if not len(rows) or (len(rows) == 1 and np.array_equal(rows, columns)):
        return float("nan")
    return float(cohens_kappa(table, wt="quadratic", return_results=False))


@dataclass(frozen=True)
class PairKappas:
    """The kappas of some pairs of raters.

    Attributes
    ----------
    kappas : tuple of float
        One a pair that shares enough responses and has a kappa.
    fragile : int
        How many of these share fewer than 10 responses.
    constant : int
        In how many of these one rater gave one score only, which makes kappa 0.
    undefined : int
        Pairs that share enough, but gave all of it one and the same score.
    too_few : int
        Pairs that share something, but fewer responses than asked for.
    """

    kappas: tuple[float, ...]
    fragile: int
    constant: int
    undefined: int
    too_few: int

    def notes(self, min_shared: int) -> Iterator[Note]:
        """Yield notes on how many pairs the mean is of, and which were left out."""
        pairs = len(self.kappas)
        if pairs:
            yield note("kappa_of", "kappa: mean of {pairs:pair}", pairs=pairs)
        elif self.undefined:
            yield note("kappa_alike", "kappa undefined: every pair gave one and the same score")
        else:
            yield note(
                "kappa_no_pair",
                "kappa undefined: no pair shares {min_shared} responses",
                min_shared=min_shared,
            )
        if self.fragile:
            yield note(
                "kappa_fragile",
                "fragile: {fragile} of {pairs:pair} with fewer than {least} shared responses",
                fragile=self.fragile,
                pairs=pairs,
                least=FRAGILE,
            )
        if self.constant:
            yield note(
                "kappa_zero",
                "{constant} of {pairs:pair} with kappa 0, as one of the two gave one score only",
                constant=self.constant,
                pairs=pairs,
            )
        if self.undefined and self.kappas:
            yield note(
                "kappa_left_alike",
                "{pairs:pair} left out of kappa: both gave one and the same score",
                pairs=self.undefined,
            )
        if self.too_few:
            yield note(
                "kappa_left_few",
                "{pairs:pair} left out of kappa for sharing fewer than {min_shared} responses",
                pairs=self.too_few,
                min_shared=min_shared,
            )

    @property
    def mean(self) -> float:
        """Return the mean over pairs, each counting once; NaN if there is none."""
        return float(np.mean(self.kappas)) if self.kappas else float("nan")


def pair_kappas(
    codes: Integers, pairs: Iterable[tuple[int, int]], q: int, least: int
) -> PairKappas:
    """Return the quadratic weighted kappa of each of some pairs of raters.

    Parameters
    ----------
    codes : shape (raters, n)
        Which of the q points of the scale each score is, from 0; -1 where it is missing. Of
        single scores: rounding a mean to a point would make up agreement.
    pairs : the two raters of each pair
    q : how many points the scale has, used or not
    least : responses that both must have scored
    """
    tables = [_table(codes[first], codes[second], q) for first, second in pairs]
    enough = [table for table in tables if table.sum() >= max(least, 1)]
    kappas = [(quadratic_kappa(table), table) for table in enough]
    defined = [(kappa, table) for kappa, table in kappas if not np.isnan(kappa)]
    return PairKappas(
        kappas=tuple(kappa for kappa, _ in defined),
        fragile=sum(int(table.sum() < FRAGILE) for _, table in defined),
        constant=sum(int(_one_sided(table)) for _, table in defined),
        undefined=len(kappas) - len(defined),
        too_few=sum(int(table.sum() > 0) for table in tables) - len(enough),
    )


def _table(first: Integers, second: Integers, q: int) -> Array:
    cells = first * q + second
    both = np.bincount(cells[(first >= 0) & (second >= 0)], minlength=q * q)
    return both.reshape(q, q).astype(np.float64)


def _one_sided(table: Array) -> bool:
    """Tell whether one of the two raters gave one point only."""
    return bool(min(np.count_nonzero(table.sum(axis=axis)) for axis in (0, 1)) == 1)

"""Agreement corrected for chance on single criteria: quadratic kappa, Krippendorff's alpha, Gwet's AC2."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pandas as pd
from statsmodels.stats.inter_rater import cohens_kappa

from calibration import remarks
from calibration.clinicians import FRAGILE
from calibration.notes import Note, Noted, note, noted, undefined
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
from data.errors import BadInput


def gwet_ac2(counts: Array, weights: Array) -> float:
    """Return Gwet's AC2 of any number of raters, some ratings missing.

    Parameters
    ----------
    counts : shape (n, q)
        How many raters gave each response each point, as `count_ratings` returns them; one
        column for every point of the scale, used or not, since chance agreement depends on q.
    weights : shape (q, q)
        Agreement of two points, 1 on the diagonal: `quadratic_weights`. The identity makes
        it AC1.

    Returns
    -------
    float
        (p_a - p_e) / (1 - p_e). p_a is the weighted share of agreeing pairs, averaged over
        responses with two ratings or more; p_e = sum(weights) / (q (q - 1)) *
        sum pi (1 - pi), where pi is the mean share of each point over all responses with a
        rating, a single one included. NaN where no response has two ratings; 1 where all agree.

    References
    ----------
    Gwet (2014), Handbook of Inter-Rater Reliability, 4th ed., chapters 3-5; Gwet (2008),
    British Journal of Mathematical and Statistical Psychology 61, 29.
    """
    counts = counts[counts.sum(axis=1) > 0]
    q, raters = counts.shape[1], counts.sum(axis=1)
    several = raters >= 2
    if not several.any():
        return NAN
    agreeing = (counts * (counts @ weights - 1)).sum(axis=1)
    agreed = np.where(several, agreeing / np.maximum(raters * (raters - 1), 1), 0.0)
    share = (counts / raters[:, None]).mean(axis=0)
    chance = float(weights.sum()) / (q * (q - 1)) * float(share @ (1 - share))
    return float((agreed[several].mean() - chance) / (1 - chance))


def quadratic_weights(points: Array) -> Array:
    """Return 1 - (c - k)^2 / (highest - lowest)^2 for all pairs of points, shape (q, q)."""
    return np.asarray(1 - np.square((points[:, None] - points) / (points[-1] - points[0])))


def alpha_ordinal(counts: Array) -> float:
    """Return Krippendorff's alpha with distances of an ordinal scale.

    The distance of two values is how many ratings lie between them: the square of the sum of
    the frequencies from one to the other, the two ends counted by half.

    Parameters
    ----------
    counts : shape (n, q)
        As `count_ratings` returns them, columns in ascending order of what they stand for. Any
        number of raters; a missing rating is just not counted, and a response with a single
        rating takes no part.

    Returns
    -------
    float
        1 - D_observed / D_expected, at most 1: 0 is what scores handed out at random give,
        below 0 raters disagree by system. NaN where no response has two ratings, or where
        all ratings are the same: nothing varies that could be agreed on.

    References
    ----------
    Krippendorff (2011), Computing Krippendorff's alpha-reliability, part D;
    Hayes & Krippendorff (2007), Communication Methods and Measures 1, 77.
    """
    pairable = counts[counts.sum(axis=1) >= 2]
    totals = pairable.sum(axis=0)
    position = np.cumsum(totals) - totals / 2
    distance = np.square(position[:, None] - position)
    expected = float(totals @ distance @ totals)
    if not expected > 0:
        return NAN
    weighted = pairable / (pairable.sum(axis=1, keepdims=True) - 1)
    # A rating paired with itself lies on the diagonal, where the distance is 0.
    observed = float((weighted.T @ pairable * distance).sum())
    return 1 - (float(totals.sum()) - 1) * observed / expected


def count_ratings(ratings: Array, values: Array) -> Array:
    """Count how many raters gave each response each value.

    Parameters
    ----------
    ratings : shape (n, raters), NaN where missing
    values : shape (q,), ascending: every value that may occur

    Returns
    -------
    shape (n, q). Counts of several groups of raters may be added.

    Raises
    ------
    BadInput
        If a rating is none of the values.
    """
    rows, columns = np.nonzero(~np.isnan(ratings))
    scores = ratings[rows, columns]
    place = np.minimum(np.searchsorted(values, scores), len(values) - 1)
    if (odd := scores[values[place] != scores]).size:
        raise BadInput(f"the score {odd[0]:g} is none of the values {values[0]:g}..{values[-1]:g}")
    counts = np.zeros((len(ratings), len(values)))
    np.add.at(counts, (rows, place), 1.0)
    return counts


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
        return NAN
    return float(cohens_kappa(table, wt="quadratic", return_results=False))


def mean_kappa(
    codes: Integers, pairs: Iterable[tuple[int, int]], q: int, least: int
) -> tuple[float, list[Note]]:
    """Return the mean quadratic weighted kappa of some pairs of raters, and notes on it.

    Parameters
    ----------
    codes : shape (raters, n)
        Which of the q points of the scale each score is, from 0; -1 where it is missing. Of
        single scores: rounding a mean to a point would make up agreement.
    pairs : the two raters of each pair, every one that has a kappa counting once
    q : how many points the scale has, used or not
    least : responses that both must have scored
    """
    kappas, fragile, alike = [], 0, 0
    for first, second in pairs:
        both = (codes[first] >= 0) & (codes[second] >= 0)
        if (shared := int(both.sum())) < max(least, 1):
            continue
        cells = codes[first][both] * q + codes[second][both]
        kappa = quadratic_kappa(np.bincount(cells, minlength=q * q).reshape(q, q).astype(float))
        if np.isnan(kappa):
            alike += 1
        else:
            kappas.append(kappa)
            fragile += shared < FRAGILE
    if fragile:
        words = "fragile: {fragile} of {pairs:pair} with fewer than {least} shared responses"
        counts = {"fragile": fragile, "pairs": len(kappas), "least": FRAGILE}
        return float(np.mean(kappas)), [note("kappa_fragile", words, **counts)]
    if kappas:
        return float(np.mean(kappas)), []
    if alike:
        return NAN, [note("kappa_alike", "kappa undefined: every pair gave one and the same score")]
    words = "kappa undefined: no pair shares {min_shared} responses"
    return NAN, [note("kappa_no_pair", words, min_shared=least)]


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
    ac2: float = NAN
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
    """
    members = scores.members(scope.name)
    known = dict.fromkeys(c for name in members for c in scores.rubrics[name].criteria)
    criteria = [scope.options.criterion] if scope.options.criterion else [*known]
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
    is_part = len(members) < len(benchmarks)
    part = note(*ALONE_HAS_CRITERION, benchmarks=members) if is_part else None
    own = [*range(len(read.clinicians))]
    for place, group in enumerate(("clinicians", *(f"juror:{name}" for name in scope.jurors))):
        row = ChanceRow(scope.name, criterion, group, notes=noted(reason))
        if reason:
            yield row
            continue
        columns = own if not place else [*own, len(own) + place - 1]
        row = _measured(row, read, columns, next(iter(scales)), scope.options.min_shared)
        later_scores = sum(read.again[column] for column in columns)
        again = note(
            "first_scores",
            "first scores only: {scores:score} of repeats or replicates left out",
            scores=later_scores,
        )
        raters = {read.raters[column] for column in columns}
        made_up = remarks.simulated(scope.simulated & raters)
        yield replace(row, notes=noted(part, again if later_scores else None, made_up, *row.notes))


def _measured(
    row: ChanceRow,
    read: "FirstScores",
    columns: list[int],
    scale: tuple[int, int],
    min_shared: int,
) -> ChanceRow:
    """Fill in the row of the clinicians' columns, or of these and a juror's as the last."""
    ratings, is_alone = read.ratings[:, columns], len(columns) == len(read.clinicians)
    points = np.arange(scale[0], scale[1] + 1.0)
    values = np.union1d(points, ratings[~np.isnan(ratings)])
    counts = count_ratings(ratings, values)
    shared = int((counts.sum(axis=1) >= 2).sum())
    if len(columns) == 1:
        return replace(row, notes=(remarks.only_clinician(read.clinicians[0]),))
    if not is_alone and np.isnan(ratings[:, -1]).all():
        name = read.raters[columns[-1]]
        return replace(row, notes=(undefined(*NO_SCORE, kind="juror", name=name),))
    if not shared:
        nobody = "no response has the scores of two of these raters"
        return replace(row, notes=(undefined("no_two_scores", nobody),))
    alpha = alpha_ordinal(counts)
    row = replace(row, alpha_ordinal=alpha, n_responses=shared)
    same = note("alpha_undefined", "alpha undefined: all scores are the same")
    notes = [] if np.isfinite(alpha) else [same]
    is_point = np.isin(values, points)
    if between := int(counts[:, ~is_point].sum()):
        words = "kappa and AC2 undefined: {scores:score} between the points of the scale"
        return replace(row, notes=(*notes, note("off_points", words, scores=between)))
    codes = np.where(np.isnan(ratings.T), -1, ratings.T - scale[0]).astype(np.int64)
    last = len(columns) - 1
    pairs = combinations(range(last + 1), 2) if is_alone else ((last, at) for at in range(last))
    kappa, of_kappa = mean_kappa(codes, pairs, len(points), min_shared)
    ac2 = gwet_ac2(counts, quadratic_weights(points))
    return replace(row, kappa_quadratic=kappa, ac2=ac2, notes=(*of_kappa, *notes))


@dataclass(frozen=True, eq=False)
class FirstScores:
    """Single scores on one criterion, of the responses that a clinician scored on it.

    Attributes
    ----------
    ratings : shape (n, raters)
        The first score that a rater gave a response; NaN where there is none.
    benchmarks : those of the n responses
    clinicians, jurors : the columns, clinicians first
    again : how many later scores each column's rater gave (repeats, replicates), left out
    """

    ratings: Array
    benchmarks: tuple[str, ...]
    clinicians: tuple[str, ...]
    jurors: tuple[str, ...]
    again: tuple[int, ...]

    @property
    def raters(self) -> tuple[str, ...]:
        """Return the rater of every column."""
        return (*self.clinicians, *self.jurors)


def first_scores(
    scores: Scores, benchmarks: Sequence[str], criterion: str, jurors: Sequence[str]
) -> FirstScores:
    """Return the first score of clinicians and jurors on one criterion of some benchmarks.

    First is the lowest pass, then the lowest replicate, that has a score: a mean of two
    readings is no point of the scale, so coefficients of single scores take one of them.
    """
    read = scores.ratings[scores.ratings["criterion"] == criterion]
    of_raters = (read["kind"] == "clinician") | read["rater"].isin(list(jurors))
    read = read[of_raters & read["benchmark"].isin(list(benchmarks)) & read["score"].notna()]
    if read[["pass_", "replicate"]].any(axis=None):
        read = read.sort_values(["pass_", "replicate"], kind="stable")
    clinical = read[read["kind"] == "clinician"]
    clinicians = tuple(sorted(clinical["rater"].unique()))
    read = read[read["response_id"].isin(clinical["response_id"].unique())]
    rows = pd.factorize(read["response_id"])[0]
    columns = pd.Index([*clinicians, *jurors]).get_indexer(pd.Index(read["rater"]))
    is_first = ~pd.Series(rows * (len(clinicians) + len(jurors)) + columns).duplicated().to_numpy()
    ratings = np.full((rows.max(initial=-1) + 1, len(clinicians) + len(jurors)), np.nan)
    values = read["score"].to_numpy(dtype=np.float64)
    ratings[rows[is_first], columns[is_first]] = values[is_first]
    later = np.bincount(columns[~is_first], minlength=len(clinicians) + len(jurors))
    benchmarks_read = tuple(sorted(clinical["benchmark"].unique()))
    return FirstScores(ratings, benchmarks_read, clinicians, tuple(jurors), tuple(later.tolist()))

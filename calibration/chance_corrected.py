"""Agreement corrected for chance on single criteria: quadratic kappa, Krippendorff's alpha, Gwet's AC2."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from calibration import remarks
from calibration.clinicians import FRAGILE
from calibration.notes import Note, Noted, note, noted, undefined
from calibration.scope import Scope
from calibration.scores import Array, Scores
from calibration.shared_notes import (
    ALONE_HAS_CRITERION,
    CRITERION_UNSCORED,
    DIFFERENT_SCALES,
    NO_CRITERION,
    NO_SCORE,
)
from calibration.values import NAN


def gwet_ac2(ratings: Array, points: Array, weights: Array | None = None) -> float:
    """Return Gwet's AC2 of any number of raters, some ratings missing.

    Parameters
    ----------
    ratings : shape (n, raters), NaN where missing
    points : shape (q,), ascending
        Every point of the scale, used or not, since chance agreement depends on q. No rating lies
        between them.
    weights : shape (q, q), optional
        Agreement of two points, 1 on the diagonal; quadratic if not given. The identity makes
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
    if weights is None:
        weights = 1 - np.square((points[:, None] - points) / (points[-1] - points[0]))
    counts = _counts(ratings, points)
    counts = counts[counts.sum(axis=1) > 0]
    q, raters = len(points), counts.sum(axis=1)
    several = raters >= 2
    if not several.any():
        return NAN
    agreeing = (counts * (counts @ weights - 1)).sum(axis=1)[several]
    agreed = float((agreeing / (raters * (raters - 1))[several]).mean())
    share = (counts / raters[:, None]).mean(axis=0)
    chance = float(weights.sum()) / (q * (q - 1)) * float(share @ (1 - share))
    return (agreed - chance) / (1 - chance)


def alpha_ordinal(ratings: Array) -> float:
    """Return Krippendorff's alpha of ratings (n, raters), NaN where missing, on an ordinal scale.

    The distance of two values is how many ratings lie between them: the square of the sum of
    the frequencies from one to the other, the two ends counted by half.

    Returns
    -------
    float
        1 - D_observed / D_expected, at most 1: 0 is what scores handed out at random give,
        below 0 raters disagree by system. A response with a single rating takes no part. NaN where
        no response has two ratings, or where all ratings are the same.

    References
    ----------
    Krippendorff (2011), Computing Krippendorff's alpha-reliability, part D;
    Hayes & Krippendorff (2007), Communication Methods and Measures 1, 77.
    """
    counts = _counts(ratings, np.unique(ratings[~np.isnan(ratings)]))
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


def _counts(ratings: Array, values: Array) -> Array:
    """Count how many raters gave each response each value, shape (n, q)."""
    return np.asarray((ratings[:, :, None] == values).sum(axis=1), dtype=np.float64)


def quadratic_kappa(x: Array, y: Array) -> float:
    """Return Cohen's kappa with quadratic weights of two raters' scores (n,), no NaN.

    Returns
    -------
    float
        2 cov / (var x + var y + (mean x - mean y)^2) with ddof 0, from -1 to 1, which is
        1 - sum w observed / sum w expected with w = (x - y)^2: a rater who is stricter loses by it.
        0 where one rater gave one point only; NaN where both gave one and the same, or none.

    References
    ----------
    Cohen (1968), Psychological Bulletin 70, 213; Fleiss & Cohen (1973), Educational and
    Psychological Measurement 33, 613.
    """
    if not len(x) or (np.ptp(x) == np.ptp(y) == 0 and x[0] == y[0]):
        return NAN
    off_x, off_y = x - x.mean(), y - y.mean()
    apart = off_x @ off_x + off_y @ off_y + len(x) * (x.mean() - y.mean()) ** 2
    return float(2 * (off_x @ off_y) / apart)


def mean_kappa(
    ratings: Array, pairs: Iterable[tuple[int, int]], least: int
) -> tuple[float, Note | None]:
    """Return the mean quadratic weighted kappa of some pairs of raters, and a note on it.

    Parameters
    ----------
    ratings : shape (n, raters), single scores, NaN where missing
    pairs : the two raters of each pair, every one that has a kappa counting once
    least : responses that both must have scored
    """
    kappas, sizes = list[float](), list[int]()
    for pair in pairs:
        both = ratings[:, pair]
        both = both[~np.isnan(both).any(axis=1)]
        if len(both) >= max(least, 1):
            kappas.append(quadratic_kappa(*both.T))
            sizes.append(len(both))
    known = ~np.isnan(kappas)
    if not len(kappas):
        words = "kappa undefined: no pair shares {min_shared} responses"
        return NAN, note("kappa_no_pair", words, min_shared=least)
    if not known.any():
        return NAN, note("kappa_alike", "kappa undefined: every pair gave one and the same score")
    fragile = int((np.array(sizes)[known] < FRAGILE).sum())
    words = "fragile: {fragile} of {pairs:pair} with fewer than {least} shared responses"
    counts = {"fragile": fragile, "pairs": int(known.sum()), "least": FRAGILE}
    return float(np.mean(np.array(kappas)[known])), (
        note("kappa_fragile", words, **counts) if fragile else None
    )


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
    members, criteria = scores.members(scope.name), criteria_asked(scope, scores)
    return [row for name in criteria for row in _criterion_rows(scope, scores, members, name)]


def criteria_asked(scope: Scope, scores: Scores) -> list[str]:
    """Return the one criterion that is asked for, or all of the scope in the rubrics' order."""
    if scope.options.criterion:
        return [scope.options.criterion]
    members = scores.members(scope.name)
    return [*dict.fromkeys(c for name in members for c in scores.rubrics[name].criteria)]


def _criterion_rows(
    scope: Scope, scores: Scores, benchmarks: Sequence[str], criterion: str
) -> Iterator[ChanceRow]:
    members = [name for name in benchmarks if criterion in scores.rubrics[name].criteria]
    table, again = first_scores(scores.ratings, members, criterion, scope.jurors)
    rubrics = [scores.rubrics[name] for name in table.index.unique("benchmark")]
    scales = {shape.ends(criterion) for shape in rubrics}
    clinicians = [*table.columns[: len(table.columns) - len(scope.jurors)]]
    reason = None if clinicians else undefined(*CRITERION_UNSCORED, criterion=criterion)
    reason = reason if members else undefined(*NO_CRITERION, criterion=criterion)
    reason = reason if len(scales) < 2 else undefined(*DIFFERENT_SCALES)
    is_part = len(members) < len(benchmarks)
    part = note(*ALONE_HAS_CRITERION, benchmarks=members) if is_part else None
    for juror in (None, *scope.jurors):
        about = scope.name, criterion, f"juror:{juror}" if juror else "clinicians"
        if reason:
            yield ChanceRow(*about, notes=(reason,))
            continue
        own = [*clinicians, juror] if juror else clinicians
        (kappa, alpha, ac2, shared), notes = _figures(
            table[own], juror, scales, scope.options.min_shared
        )
        words = "first scores only: {scores:score} of repeats or replicates left out"
        later = int(again[own].sum())
        first = note("first_scores", words, scores=later) if later else None
        made_up = remarks.simulated(scope.simulated & {*own})
        yield ChanceRow(
            *about, kappa, alpha, ac2, shared, notes=noted(part, first, made_up, *notes)
        )


def _figures(
    table: pd.DataFrame, juror: str | None, scales: set[tuple[int, int]], min_shared: int
) -> tuple[tuple[float, float, float, int], list[Note | None]]:
    """Return kappa, alpha, AC2 and responses of some raters, a juror as the last, and notes."""
    ratings, raters = table.to_numpy(dtype=np.float64), len(table.columns)
    shared = int(((~np.isnan(ratings)).sum(axis=1) >= 2).sum())
    nothing = NAN, NAN, NAN, 0
    if raters == 1:
        return nothing, [remarks.only_clinician(str(table.columns[0]))]
    if juror and np.isnan(ratings[:, -1]).all():
        return nothing, [undefined(*NO_SCORE, kind="juror", name=juror)]
    if not shared:
        nobody = "no response has the scores of two of these raters"
        return nothing, [undefined("no_two_scores", nobody)]
    ((low, high),) = scales
    points, alpha = np.arange(low, high + 1.0), alpha_ordinal(ratings)
    same = note("alpha_undefined", "alpha undefined: all scores are the same")
    flat = None if np.isfinite(alpha) else same
    if between := int((~np.isnan(ratings) & ~np.isin(ratings, points)).sum()):
        words = "kappa and AC2 undefined: {scores:score} between the points of the scale"
        return (NAN, alpha, NAN, shared), [flat, note("off_points", words, scores=between)]
    last = raters - 1
    pairs = ((last, at) for at in range(last)) if juror else combinations(range(raters), 2)
    kappa, of_kappa = mean_kappa(ratings, pairs, min_shared)
    return (kappa, alpha, gwet_ac2(ratings, points), shared), [of_kappa, flat]


def first_scores(
    ratings: pd.DataFrame, benchmarks: Sequence[str], criterion: str, jurors: Sequence[str]
) -> tuple[pd.DataFrame, pd.Series]:
    """Return the first score of clinicians and jurors on one criterion of some benchmarks.

    First is the lowest pass, then the lowest replicate, that has a score: a mean of two
    readings is no point of the scale, so coefficients of single scores take one of them.

    Returns
    -------
    DataFrame
        By benchmark and response_id, of responses that a clinician scored; a column each clinician
        with a score, then each juror. NaN where there is none.
    Series
        How many later scores each of them gave (repeats, replicates), left out.
    """
    read = ratings[ratings["criterion"] == criterion]
    of_raters = (read["kind"] == "clinician") | read["rater"].isin(list(jurors))
    read = read[of_raters & read["benchmark"].isin(list(benchmarks)) & read["score"].notna()]
    clinical = read[read["kind"] == "clinician"]
    raters = [*sorted(clinical["rater"].unique()), *jurors]
    read = read[read["response_id"].isin(clinical["response_id"].unique())]
    read = read.sort_values(["pass_", "replicate"], kind="stable")
    first = read.drop_duplicates(["response_id", "rater"])
    again = read["rater"].value_counts() - first["rater"].value_counts()
    table = first.astype({"benchmark": str, "response_id": str, "rater": str, "score": float})
    table = table.pivot(index=["benchmark", "response_id"], columns="rater", values="score")
    return table.reindex(columns=raters), again.reindex(raters, fill_value=0)

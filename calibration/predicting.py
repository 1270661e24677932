"""Predict the clinicians' mean over all responses, and their likely score on each, from a jury.

The mean is prediction-powered: clinicians' ratings of a sample, and the jury's of all responses. A
single response is mapped to the clinicians' scale, with a cross-conformal interval.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from scipy.optimize import isotonic_regression

from calibration import remarks
from calibration.clustered_intervals import ClusteredMean, clustered_mean
from calibration.decision import Decision, DecisionKind
from calibration.icc import UNDEFINED, Interval
from calibration.json_values import json_value
from calibration.notes import Note, Noted, note, noted, simulated_in, undefined
from calibration.rating_matrix import FLAT
from calibration.scope import AgreementRow, Scope, scopes, why_undefined_scope
from calibration.scores import Array, Flags, Integers, RubricShape, Scores
from calibration.shared_notes import SIMULATED
from calibration.values import COMBINED, NAN, AnalysisOptions
from calibration.verdict import Verdicts
from data.errors import BadInput, TooFew

LEAST_WEIGHED = 5  # rated instances: with fewer, lambda overfits and the interval is too narrow
UNLIKE = 0.25  # standard deviations; samples that differ by less are taken as alike (Rubin 2001)
LEAST_FIT = 3  # responses: as few as an ICC takes
DIGITS = 9  # means of the same scores, added in another order, are one composite
FOLDS = 5  # of the check on held-out responses
MOST_PARTS = 10  # that instances are dealt into; of fewer instances each is a part
CELLS = 2**21  # responses x jury composites held at a time
ROUNDING = 1e-9  # 1 / (1 - 0.9) is a little more than 10
COLUMNS = (
    *("response_id", "benchmark", "instance_id", "jury", "clinician_scale", "low", "high"),
    *("rated_by_clinicians", "notes"),
)
IN_JSON = {"weight": "lambda", "n_rated": "n", "n_unrated": "N"}
SUMMED = ("n_rated", "n_unrated", "n_calibration", "n_predicted", "n_checked")
NO_AGREEMENT = AgreementRow("", "jury")
USABLE = (DecisionKind.USABLE, DecisionKind.USABLE_COMBINED)


@dataclass(frozen=True, eq=False)
class RatedSample:
    """Composites of responses that clinicians rated, and of all others, in points without NaN.

    `clinicians`, `jury` and `instances` have shape (n,), of the rated responses, the others (N,);
    instances are numbered alike in both.
    """

    clinicians: Array
    jury: Array
    instances: Integers
    unrated_jury: Array = field(default_factory=lambda: np.empty(0))
    unrated_instances: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def of(self, rows: Flags | Integers) -> "RatedSample":
        """Return some of the rated responses."""
        return RatedSample(self.clinicians[rows], self.jury[rows], self.instances[rows])


@dataclass(frozen=True, eq=False)
class PredictionPowered:
    """Clinicians' mean alone, and corrected with the jury, whose weight is lambda in [0, 1]."""

    clinicians: ClusteredMean
    corrected: ClusteredMean
    weight: float = NAN

    @property
    def gain(self) -> float:
        """Return the ratio of variances: as many times more ratings would help as much; NaN of 0 / 0."""
        if not self.corrected.error > 0:
            return NAN
        return (self.clinicians.error / self.corrected.error) ** 2


def prediction_powered_mean(sample: RatedSample) -> PredictionPowered:
    """Return the clinicians' mean composite over all responses, from a sample and the jury.

    corrected = lambda mean(jury, N unrated) + mean(clinicians - lambda jury, n rated), with
    lambda = cov(clinicians, jury) / ((1 + n/N) var(jury)), cut to [0, 1]: cov over the n
    (divided by n), var over all n + N. Where instances have several responses, lambda is instead
    the one with the smallest squared error, and each instance's part in that error is taken with
    the lambda of all others, which keeps few instances from flattering it. Errors are between
    instances, as of `clustered_mean`.

    Returns
    -------
    PredictionPowered
        Without unrated responses, with a jury that does not vary, or with fewer than 5 rated
        instances, lambda is 0 and corrected is the clinicians' mean. NaN if n = 0. The interval is
        right where the rated responses are a random sample of all, however well the jury agrees;
        it is for the population that these responses are drawn from.

    References
    ----------
    Angelopoulos, Duchi & Zrnic (2023), PPI++, sections 2 and 6; sums within instances:
    Liang & Zeger (1986).
    """
    every = np.concatenate([sample.jury, sample.unrated_jury])
    n, n_unrated = len(sample.clinicians), len(sample.unrated_jury)
    numbers = np.concatenate([sample.instances, sample.unrated_instances])
    names, place = np.unique(numbers, return_inverse=True)
    rated, unrated, repeated = place[:n], place[n:], len(names) < len(numbers)
    alone = clustered_mean(sample.clinicians, rated, len(names))
    if not n_unrated or alone.instances < LEAST_WEIGHED or np.ptp(every) <= FLAT:
        return PredictionPowered(alone, alone, 0.0 if n else NAN)
    of_others = clustered_mean(sample.unrated_jury, unrated, len(names))
    jury = clustered_mean(sample.jury, rated, len(names)).moves - of_others.moves
    products, squares = alone.moves * jury, jury * jury
    if repeated:
        weight = float(_within_unit(products.sum(), squares.sum()))
    else:
        covariance = np.cov(sample.clinicians, sample.jury, ddof=0)[0, 1]
        weight = float(_within_unit(covariance, (1 + n / n_unrated) * every.var(ddof=1)))
    if not weight:
        return PredictionPowered(alone, alone, 0.0)
    weights: Array | float = weight
    if repeated:
        weights = _within_unit(products.sum() - products, squares.sum() - squares)
    mean = (sample.clinicians - weight * sample.jury).mean() + weight * of_others.value
    corrected = ClusteredMean(float(mean), alone.moves - weights * jury, alone.instances)
    return PredictionPowered(alone, corrected, weight)


def _within_unit(over: Any, under: Any) -> Array:
    """Return a ratio clipped to [0, 1]; 0 where the denominator is not above 0."""
    over, under = np.asarray(over), np.asarray(under)
    ratio = np.divide(over, under, out=np.zeros_like(over), where=under > 0)
    clipped: Array = np.clip(ratio, 0.0, 1.0)
    return clipped


def stratified(
    means: Sequence[ClusteredMean], sizes: Sequence[int], level: float
) -> tuple[float, float, Interval]:
    """Return the mean over strata of given sizes, each sampled by itself, its error and t interval.

    sum w mean, error^2 = sum w^2 error^2 with w = size / sum of sizes. Degrees of freedom after
    Satterthwaite (1946). NaN where a stratum's mean or error is.
    """
    shares = np.array(sizes, dtype=np.float64) / sum(sizes)
    parts = (shares * [stratum.error for stratum in means]) ** 2
    mean, squared = float(shares @ [stratum.value for stratum in means]), float(parts.sum())
    if not squared > 0:
        return mean, NAN, UNDEFINED
    freedom = squared**2 / float((parts**2 / [one.instances - 1 for one in means]).sum())
    error = math.sqrt(squared)
    reach = float(stats.t.ppf((1 + level) / 2, freedom)) * error
    return mean, error, Interval(mean - reach, mean + reach)


def standardised_difference(rated: Array, unrated: Array) -> float:
    """Return (mean of rated - mean of unrated) / sqrt of the mean of their variances.

    NaN where either has fewer than two values or none varies. Below 0.25 in size, samples
    are commonly taken as alike (Rubin 2001).
    """
    if min(len(rated), len(unrated)) < 2:
        return NAN
    spread = math.sqrt((rated.var(ddof=1) + unrated.var(ddof=1)) / 2)
    return float((rated.mean() - unrated.mean()) / spread) if spread > FLAT else NAN


def isotonic_map(jury: Array, clinicians: Array) -> tuple[Array, Array]:
    """Fit the non-decreasing map of the jury's composites that is nearest to the clinicians'.

    Parameters
    ----------
    jury, clinicians : shape (n,)
        Composites of the same responses, in points, no NaN. Responses with one jury composite are
        one knot, at their mean, with their number as its weight.

    Returns
    -------
    knots, values : shape (k,), jury composites and what they map to, by least squares
        Made for `np.interp`: a straight line between two knots, level beyond the first and last.
        Level throughout for a jury that ranks the responses in reverse.

    References
    ----------
    Barlow, Bartholomew, Bremner & Brunk (1972), Statistical Inference under Order
    Restrictions, chapter 1.
    """
    _, place, number = np.unique(np.round(jury, DIGITS), return_inverse=True, return_counts=True)
    weights = number.astype(np.float64)
    knots, means = (np.bincount(place, weights=own) / weights for own in (jury, clinicians))
    return knots, np.asarray(isotonic_regression(means, weights=weights).x, dtype=np.float64)


def conformal_interval(
    rated: RatedSample, jury: Array, level: float, seed: int
) -> tuple[Array, Array]:
    """Return intervals of the clinicians' composites for jury composites (N,), not cut at the scale.

    The instances are dealt into 10 parts; fewer instances are each a part. For every rated response
    i, the map without its part gives the error e_i and, for a new jury composite x, the two values
    map_i(x) - e_i and map_i(x) + e_i. The interval is from the lower quantile of the first to
    the upper quantile of the second (CV+). The m instances count the same, whatever their number of
    responses: 1 / (m + 1) each, and as much is at infinity.

    For a response of a new instance that is exchangeable with these, the interval holds the
    clinicians' composite with a probability of about `level`; for any distribution and any map the
    guarantee is 2 level - 1, less at most 1 / 11 with 10 parts.

    Returns
    -------
    low, high : shape (N,), NaN with fewer instances than `least_instances(level)`

    References
    ----------
    Barber, Candes, Ramdas & Tibshirani (2021), Annals of Statistics 49, 486, theorems 1 and 4;
    weights: Lee, Barber & Willett (2023), arXiv 2306.06342, hierarchical jackknife+.
    """
    names, place = np.unique(rated.instances, return_inverse=True)
    m, n = len(names), len(place)
    values, at = np.unique(jury, return_inverse=True)
    ends = np.full((2, len(values)), np.nan)
    if m < least_instances(level):
        return ends[0, at], ends[1, at]
    part = (np.random.default_rng(seed).permutation(m) % min(MOST_PARTS, m))[place]
    maps = [
        isotonic_map(rated.jury[part != number], rated.clinicians[part != number])
        for number in range(min(MOST_PARTS, m))
    ]
    held_out = np.stack([np.interp(rated.jury, *own) for own in maps])[part, np.arange(n)]
    error = np.abs(rated.clinicians - held_out)[:, None]
    weights = 1 / (np.bincount(place)[place] * (m + 1))
    batch = max(1, CELLS // n)
    for start in range(0, len(values), batch):
        rows = slice(start, start + batch)
        middle = np.stack([np.interp(values[rows], *own) for own in maps])[part]
        ends[0, rows] = -weighted_quantile(error - middle, weights, level)
        ends[1, rows] = weighted_quantile(error + middle, weights, level)
    return ends[0, at], ends[1, at]


def weighted_quantile(values: Array, weights: Array, level: float) -> Array:
    """Return the least value of each column of values (n, N) at which weights (n,) add up to a level.

    The weights add up to less than 1: the rest is at infinity, and so is a quantile in it.
    """
    order = np.argsort(values, axis=0)
    reached = np.cumsum(weights[order], axis=0) >= level - ROUNDING
    first = np.take_along_axis(order, reached.argmax(axis=0)[None], axis=0)
    quantiles: Array = np.take_along_axis(values, first, axis=0)[0]
    return np.where(reached[-1], quantiles, np.inf)


def least_instances(level: float) -> int:
    """Return the least m that has an interval: ceil(1 / (1 - level)) - 1, 9 for 0.9, and 4 or more."""
    return max(LEAST_FIT + 1, math.ceil(1 / (1 - level) - ROUNDING / (1 - level)) - 1)


def held_out_coverage(rated: RatedSample, level: float, seed: int) -> tuple[float, int]:
    """Return the share of rated responses inside intervals computed without them, and of how many.

    The instances are dealt into 5 folds: intervals come from four, and the responses of the fifth
    are checked. A fold whose other four are too few for an interval is not checked; the share of
    none is NaN.
    """
    names, place = np.unique(rated.instances, return_inverse=True)
    fold = np.random.default_rng([seed, FOLDS]).permutation(len(names)) % FOLDS
    inside: list[Flags] = [np.empty(0, dtype=np.bool_)]
    for number in range(FOLDS):
        held, others = rated.of(fold[place] == number), rated.of(fold[place] != number)
        low, high = conformal_interval(others, held.jury, level, seed)
        given = held.clinicians[~np.isnan(low)]
        low, high = low[~np.isnan(low)] - ROUNDING, high[~np.isnan(low)] + ROUNDING
        inside.append((given >= low) & (given <= high))
    checked = np.concatenate(inside)
    return (float(checked.mean()) if len(checked) else NAN), len(checked)


@dataclass(frozen=True)
class PredictedRow(Noted):
    """One benchmark, or all combined. Means and q are in points; undefined is NaN, see `notes`.

    Attributes
    ----------
    n_calibration : rated instances, from which the map and its error come
    q : half the mean width of the intervals of single responses, before any cut at the scale
    n_predicted : responses with a value on the clinicians' scale
    mean_clinicians, mean_jury, mean_corrected : of the rated, of all, prediction-powered
    weight, n_rated, n_unrated, gain : lambda, n, N and ratio of variances of the last
    rated_unrated_difference : of jury means, in standard deviations
    coverage : share of `n_checked` rated responses inside intervals computed without them
    agreement : the jury's row of the agreement table
    verdict : the kind of the study's decision on the jury, such as "non_inferior"
    """

    benchmark: str
    n_calibration: int = 0
    q: float = NAN
    n_predicted: int = 0
    mean_clinicians: float = NAN
    clinicians_low: float = NAN
    clinicians_high: float = NAN
    mean_jury: float = NAN
    mean_corrected: float = NAN
    low: float = NAN
    high: float = NAN
    weight: float = NAN
    n_rated: int = 0
    n_unrated: int = 0
    gain: float = NAN
    rated_unrated_difference: float = NAN
    coverage: float = NAN
    n_checked: int = 0
    agreement: AgreementRow = NO_AGREEMENT
    verdict: str = ""

    @property
    def validated(self) -> bool:
        """Whether real jurors agree with real clinicians as well as the study's protocol asks."""
        return self.verdict == DecisionKind.NON_INFERIOR and not self.simulated

    @property
    def unlike(self) -> bool:
        """Whether the jury scores the rated responses higher or lower than the others."""
        return abs(self.rated_unrated_difference) > UNLIKE


def to_json(row: PredictedRow) -> dict[str, Any]:
    """Return a row as `analyse predict --json` has it; what is undefined becomes None."""
    figures = {IN_JSON.get(name, name): value for name, value in json_value(row).items()}
    agreement, notes = (
        figures.pop("agreement"),
        {key: figures.pop(key) for key in ("note", "notes")},
    )
    ends = {"icc": "icc", "icc_low": "low", "icc_high": "high", "n_instances": "n_instances"}
    figures |= {name: agreement[of] for name, of in ends.items()}
    return figures | {"validated": row.validated} | notes


def predictions(
    scores: Scores,
    options: AnalysisOptions,
    verdicts: Verdicts,
    level: float = 0.9,
    tick: Callable[[float], None] | None = None,
) -> tuple[list[PredictedRow], pd.DataFrame]:
    """Return the clinicians' mean over all responses, and their likely composite on each.

    Parameters
    ----------
    scores, options
        As for the verdicts. The jury's composite on a response is the mean of its jurors'
        composites, in points.
    verdicts : the study's decisions on this jury, with the agreement table they rest on
    level : in (0, 1), of the intervals of single responses and of means; that of the ICC is 95 %
    tick : called with the share of the work done

    Returns
    -------
    rows : for each benchmark, then "combined" if there are several: its means are the
        benchmarks' weighted by their responses, whatever share of each was rated
    responses : a row of `COLUMNS` for each response that the jury scored, predicted from its own
        benchmark's ratings alone. clinician_scale is the map's value, low and high the ends of the
        conformal interval within the scale, in points and NaN where undefined, see `notes`

    Raises
    ------
    BadInput
        If `level` or the seed is out of range, or as `table.agreement_table`.
    TooFew
        If there are no jurors.
    """
    if not 0 < level < 1:
        raise BadInput(f"level {level:g}: it is a share between 0 and 1, such as 0.9")
    if options.seed < 0:
        raise BadInput(f"seed {options.seed}: it is 0 or more")
    rows: list[PredictedRow] = []
    means: list[PredictionPowered] = []
    responses: list[pd.DataFrame] = []
    for scope in scopes(scores, options, tick):
        if scope.jury is None:
            raise TooFew("no juror has rated anything: there is no jury to predict with")
        kind = verdicts.decisions[scope.name].kind.value
        row = PredictedRow(scope.name, agreement=verdicts.jury_on(scope.name), verdict=kind)
        reason = why_undefined_scope(scores, scope)
        if scope.name == COMBINED:
            rows.append(_combined(row, scope, reason, [*zip(rows, means, strict=True)], level))
        else:
            row, own, table = _of_benchmark(row, scores, scope, reason, level)
            rows.append(row)
            means.append(own)
            responses.append(table)
    return rows, pd.concat(responses, ignore_index=True)


def _of_benchmark(
    row: PredictedRow, scores: Scores, scope: Scope, reason: Note | None, level: float
) -> tuple[PredictedRow, PredictionPowered, pd.DataFrame]:
    composites = _composites_of_both(scores, scope)
    scored = composites[composites["jury"].notna()].reset_index(drop=True)
    instances = np.unique(scored["instance_id"].to_numpy(dtype=str), return_inverse=True)[1]
    jury, clinicians = (scored[who].to_numpy(dtype=np.float64) for who in ("jury", "clinicians"))
    rated, seed = ~np.isnan(clinicians), scope.options.seed
    sample = RatedSample(
        clinicians[rated], jury[rated], instances[rated], jury[~rated], instances[~rated]
    )
    n, means = len(sample.jury), prediction_powered_mean(sample)
    low, high = conformal_interval(sample, jury, level, seed)
    coverage, n_checked = held_out_coverage(sample, level, seed)
    alone, corrected = means.clinicians.interval(level), means.corrected.interval(level)
    row = replace(
        row,
        n_calibration=means.clinicians.instances,
        q=float((high - low)[rated].mean()) / 2 if n else NAN,
        n_predicted=len(scored) if n >= LEAST_FIT else 0,
        mean_clinicians=means.clinicians.value,
        clinicians_low=alone.low,
        clinicians_high=alone.high,
        mean_jury=float(jury.mean()) if len(jury) else NAN,
        mean_corrected=means.corrected.value,
        low=corrected.low,
        high=corrected.high,
        weight=means.weight,
        n_rated=n,
        n_unrated=len(sample.unrated_jury),
        gain=means.gain,
        rated_unrated_difference=standardised_difference(sample.jury, sample.unrated_jury),
        coverage=coverage,
        n_checked=n_checked,
    )
    least, few = least_instances(level), None
    if row.n_calibration < least:
        words = (
            f"no interval: {{responses:rated instance}}, {{least}} are needed for {100 * level:g} %"
        )
        about = {"responses": row.n_calibration, "least": least, "level": level}
        few = note("few_to_calibrate", words, **about)
    notes = [reason] if reason else [few, *_notes(scope, row, sample, composites)]
    row = replace(row, notes=noted(*notes, _simulated(scope)))
    made_up = note("raters_simulated", "simulated raters") if row.simulated else None
    shape, of_all = scores.rubrics[scope.name], noted(reason or few, made_up)
    return row, means, _responses(scored.assign(low=low, high=high), sample, shape, of_all)


def _combined(
    row: PredictedRow,
    scope: Scope,
    reason: Note | None,
    parts: Sequence[tuple[PredictedRow, PredictionPowered]],
    level: float,
) -> PredictedRow:
    totals = {name: sum(getattr(own, name) for own, _ in parts) for name in SUMMED}
    covered = sum(own.coverage * own.n_checked for own, _ in parts if own.n_checked)
    coverage = covered / totals["n_checked"] if totals["n_checked"] else NAN
    row = replace(row, coverage=coverage, **totals)
    defined = [(own, mean) for own, mean in parts if own.n_rated]
    if reason or not defined:
        return replace(row, n_rated=0, n_unrated=0, notes=noted(reason, _simulated(scope)))
    sizes = [own.n_rated + own.n_unrated for own, _ in defined]
    alone, error, of_alone = stratified([mean.clinicians for _, mean in defined], sizes, level)
    corrected, least, ends = stratified([mean.corrected for _, mean in defined], sizes, level)
    notes = []
    if in_no_mean := [own.benchmark for own, _ in parts if not own.n_rated]:
        left_out = "left out of all means, without a response that both rated: {benchmarks}"
        notes.append(note("in_no_mean", left_out, benchmarks=in_no_mean))
    if lost := [own.benchmark for own, mean in defined if np.isnan(mean.clinicians.error)]:
        too_few = "no interval: too few rated instances of {benchmarks}"
        notes.append(note("no_mean_interval", too_few, benchmarks=lost))
    return replace(
        row,
        mean_clinicians=alone,
        clinicians_low=of_alone.low,
        clinicians_high=of_alone.high,
        mean_jury=float(np.average([own.mean_jury for own, _ in defined], weights=sizes)),
        mean_corrected=corrected,
        low=ends.low,
        high=ends.high,
        n_unrated=sum(own.n_unrated for own, _ in defined),
        gain=(error / least) ** 2,
        notes=noted(*notes, _simulated(scope)),
    )


def _composites_of_both(scores: Scores, scope: Scope) -> pd.DataFrame:
    """Return response_id, instance_id, benchmark, and the composites of jury and clinicians.

    In points, the mean over jurors and over clinicians, NaN where there is none; sorted by response
    id, so that a seed gives the same figures in whatever order a study was imported.
    """
    responses = scores.responses[scores.responses["benchmark"] == scope.name]
    table = responses.sort_values("response_id", ignore_index=True)
    members, needed = (scope.jury.members, scope.jury.needed) if scope.jury else ((), 1)
    of_jurors = scope.composites["rater"].isin(members)
    of_clinicians = scope.composites["kind"] == "clinician"
    for name, own, least in (("jury", of_jurors, needed), ("clinicians", of_clinicians, 1)):
        means = scope.composites[own].groupby("response_id")["composite"].agg(["mean", "count"])
        of_enough = means["mean"].where(means["count"] >= least).astype(float)
        table[name] = table["response_id"].map(of_enough)
    return table


def _responses(
    table: pd.DataFrame, sample: RatedSample, rubric: RubricShape, of_all: tuple[Note, ...]
) -> pd.DataFrame:
    """Return `COLUMNS` of responses: intervals cut at the scale, outside which no composite lies."""
    jury, slack = table["jury"], 10**-DIGITS
    mapped: Array = np.full(len(table), np.nan)
    is_beyond = np.zeros(len(table), dtype=np.bool_)
    if len(sample.jury) >= LEAST_FIT:
        mapped = np.interp(jury.to_numpy(), *isotonic_map(sample.jury, sample.clinicians))
        is_beyond = ~jury.between(sample.jury.min() - slack, sample.jury.max() + slack).to_numpy()
    is_cut = (table["low"] < rubric.low - slack) | (table["high"] > rubric.high + slack)
    beyond = note("outside_map", "outside what the map was fitted on")
    cut = note("cut_at_scale", "cut at the scale")
    notes = [
        noted(beyond if is_out else None, cut if is_over else None, *of_all)
        for is_out, is_over in zip(is_beyond, is_cut, strict=True)
    ]
    return table.assign(
        clinician_scale=mapped,
        low=table["low"].clip(lower=rubric.low),
        high=table["high"].clip(upper=rubric.high),
        rated_by_clinicians=table["clinicians"].notna(),
        notes=pd.Series(notes, table.index, dtype=object),
    )[list(COLUMNS)]


def _notes(
    scope: Scope, row: PredictedRow, sample: RatedSample, composites: pd.DataFrame
) -> Iterator[Note | None]:
    """Yield the notes on a benchmark's figures: what they rest on and what they do not show."""
    if row.unlike:
        yield note(
            "rated_unlike",
            "RATED AND UNRATED DIFFER: the jury gave rated responses {rated:.2f}, others "
            "{unrated:.2f}, {deviations:.2f} standard deviations apart, and unless the rated were "
            "drawn at random the corrected mean may be wrong",
            rated=sample.jury.mean(),
            unrated=sample.unrated_jury.mean(),
            deviations=abs(row.rated_unrated_difference),
        )
    if not row.n_rated:
        yield undefined("none_of_both", "no response has composites of both jury and clinicians")
    yield remarks.few_instances(row.n_calibration)
    if scope.jury:
        yield remarks.fewer_jurors(scope.jury.needed, len(scope.jury.members))
    raters = (*scope.jurors, *scope.clinicians)
    yield remarks.incomplete(sum(scope.incomplete.get(name, 0) for name in raters))
    unscored = composites.loc[composites["jury"].isna(), "clinicians"]
    if len(unscored):
        yield note(
            "jury_unscored",
            "the jury scored {scored} of {responses:response}: the others are left out, {rated} of "
            "them rated by clinicians",
            scored=len(composites) - len(unscored),
            responses=len(composites),
            rated=int(unscored.notna().sum()),
        )


def _simulated(scope: Scope) -> Note | None:
    return remarks.simulated(scope.simulated & {*scope.jurors, *scope.clinicians})


def decide(rows: Sequence[PredictedRow], verdicts: Mapping[str, Decision]) -> Decision:
    """Return whether the predictions may be used: the study's verdict on the jury that decides.

    Parameters
    ----------
    rows : a row a benchmark, then "combined" if there are several; at least one
    verdicts : of `verdict.decisions` on the same jury, by benchmark

    Returns
    -------
    Decision
        Of subject "predictions"; figures, reasons and kind are those of the verdict that decides,
        on all combined, or on the only benchmark; where that on all combined is undefined, on
        the first benchmark that is not validated. "simulated" where any rater is; "usable" where
        it is "non_inferior" on every benchmark, and "usable_combined" where only on all combined.
    """
    row = rows[-1]
    parts = [own for own in rows if own.benchmark != COMBINED]
    if row.benchmark != COMBINED or verdicts[COMBINED].kind is DecisionKind.UNDEFINED:
        row = min(parts, key=lambda own: own.validated)
    verdict = verdicts[row.benchmark]
    kind, next_step = verdict.kind, verdict.next
    reasons = [
        *verdict.reasons,
        *(
            note("unshown_in", "not shown in {benchmark} by itself", benchmark=other.benchmark)
            for other in rows
            if other is not row and not other.validated
        ),
        *(
            note("of_benchmark", "in {benchmark}, {what}", benchmark=own.benchmark, what=unlike)
            for own in rows
            if (unlike := own.told("rated_unlike"))
        ),
    ]
    if raters := simulated_in(rows):
        kind, reasons = DecisionKind.SIMULATED, [note(*SIMULATED, raters=raters)]
        next_step = note(
            "do_rate_for_real",
            "have clinicians rate a random sample, and a real jury score every response",
        )
    elif kind is DecisionKind.NON_INFERIOR:
        kind = USABLE[not all(own.validated for own in parts)]
        at_random = note("do_rate_at_random", "draw the responses that clinicians rate at random")
        next_step = at_random if any(own.unlike for own in rows) else None
    both = "{responses:response} of {instances:instance} that both the jury and clinicians rated"
    counts = {"responses": row.agreement.n_responses, "instances": row.agreement.n_instances}
    alone = "{responses:response} that the jury alone rated"
    return Decision(
        "predictions",
        kind,
        estimate=verdict.estimate,
        low=verdict.low,
        high=verdict.high,
        reasons=tuple(reasons),
        basis=(
            note("both_rated", both, **counts),
            note("predicted_for", alone, responses=row.n_unrated),
        ),
        next=next_step,
    )

"""Predict the clinicians' mean over all responses, and their likely score on each, from a jury.

The mean is prediction-powered: clinicians' ratings of a sample, and the jury's of all responses. A
single response is mapped to the clinicians' scale, with a cross-conformal interval.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from scipy.optimize import isotonic_regression

from calibration import remarks
from calibration.clustered_intervals import ClusteredMean, clustered_mean
from calibration.columns import PanelColumns
from calibration.decision import Decision, DecisionKind
from calibration.icc import UNDEFINED, Interval
from calibration.json_values import json_value
from calibration.notes import Note, Noted, note, noted, simulated_in, undefined
from calibration.rating_matrix import FLAT
from calibration.scope import Scope, scopes, why_undefined_scope
from calibration.scores import Array, Flags, Integers, Scores
from calibration.shared_notes import SIMULATED
from calibration.values import COMBINED, NAN, AnalysisOptions
from data.errors import BadInput, TooFew

LEAST_WEIGHED = 5  # rated instances: with fewer, lambda overfits and the interval is too narrow
UNLIKE = 0.25  # standard deviations; samples that differ by less are taken as alike (Rubin 2001)
LEAST_FIT = 3  # responses: as few as an ICC takes
DIGITS = 9  # means of the same scores, added in another order, are one composite
MOST_PARTS = 10  # that instances are dealt into; of fewer instances each is a part
CELLS = 2**21  # responses x jury composites held at a time
ROUNDING = 1e-9  # 1 / (1 - 0.9) is a little more than 10
COLUMNS = (
    *("response_id", "benchmark", "instance_id", "jury", "clinician_scale", "low", "high"),
    *("rated_by_clinicians", "notes"),
)
IN_JSON = {"weight": "lambda", "n_rated": "n", "n_unrated": "N"}
SUMMED = ("n_rated", "n_unrated", "n_calibration", "n_predicted")
USABLE = (DecisionKind.USABLE, DecisionKind.USABLE_COMBINED)


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


def prediction_powered_mean(
    clinicians: Array, jury: Array, instances: Integers
) -> PredictionPowered:
    """Return the clinicians' mean composite over all responses, from a sample and the jury.

    corrected = lambda mean(jury, N unrated) + mean(clinicians - lambda jury, n rated), with
    lambda = cov(clinicians, jury) / ((1 + n/N) var(jury)), cut to [0, 1]: cov over the n
    (divided by n), var over all n + N. Where instances have several responses, lambda is instead
    the one with the smallest squared error, and each instance's part in that error is taken with
    the lambda of all others, which keeps few instances from flattering it. Errors are between
    instances, as of `clustered_mean`.

    Parameters
    ----------
    clinicians, jury, instances : shape (n + N,)
        Composites of all responses, the clinicians' NaN where they rated none, and their instances.

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
    rated = ~np.isnan(clinicians)
    n, n_unrated = int(rated.sum()), int((~rated).sum())
    names, place = np.unique(instances, return_inverse=True)
    repeated = len(names) < len(instances)
    alone = clustered_mean(clinicians, place, len(names))
    if not n_unrated or alone.instances < LEAST_WEIGHED or np.ptp(jury) <= FLAT:
        return PredictionPowered(alone, alone, 0.0 if n else NAN)
    of_others = clustered_mean(np.where(rated, NAN, jury), place, len(names))
    moves = clustered_mean(np.where(rated, jury, NAN), place, len(names)).moves - of_others.moves
    products, squares = alone.moves * moves, moves * moves
    if repeated:
        weight = float(_within_unit(products.sum(), squares.sum()))
    else:
        covariance = np.cov(clinicians[rated], jury[rated], ddof=0)[0, 1]
        weight = float(_within_unit(covariance, (1 + n / n_unrated) * jury.var(ddof=1)))
    if not weight:
        return PredictionPowered(alone, alone, 0.0)
    weights: Array | float = weight
    if repeated:
        weights = _within_unit(products.sum() - products, squares.sum() - squares)
    mean = (clinicians - weight * jury)[rated].mean() + weight * of_others.value
    corrected = ClusteredMean(float(mean), alone.moves - weights * moves, alone.instances)
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
    clinicians: Array, jury: Array, instances: Integers, level: float, seed: int
) -> tuple[Array, Array]:
    """Return intervals of the clinicians' composites of all responses, not cut at the scale.

    The instances are dealt into 10 parts; fewer instances are each a part. For every rated response
    i, the map without its part gives the error e_i and, for a new jury composite x, the two values
    map_i(x) - e_i and map_i(x) + e_i. The interval is from the lower quantile of the first to
    the upper quantile of the second (CV+). The m instances count the same, whatever their number of
    responses: 1 / (m + 1) each, and as much is at infinity.

    For a response of a new instance that is exchangeable with these, the interval holds the
    clinicians' composite with a probability of about `level`; for any distribution and any map the
    guarantee is 2 level - 1, less at most 1 / 11 with 10 parts.

    Parameters
    ----------
    clinicians, jury, instances : as in `prediction_powered_mean`
    level : of the intervals, in (0, 1)
    seed : of the dealing

    Returns
    -------
    low, high : shape (n + N,), NaN with fewer instances than `least_instances(level)`

    References
    ----------
    Barber, Candes, Ramdas & Tibshirani (2021), Annals of Statistics 49, 486, theorems 1 and 4;
    weights: Lee, Barber & Willett (2023), arXiv 2306.06342, hierarchical jackknife+.
    """
    rated = ~np.isnan(clinicians)
    own, given = jury[rated], clinicians[rated]
    names, place = np.unique(instances[rated], return_inverse=True)
    m, n = len(names), len(place)
    values, at = np.unique(jury, return_inverse=True)
    ends = np.full((2, len(values)), np.nan)
    if m < least_instances(level):
        return ends[0, at], ends[1, at]
    parts = min(MOST_PARTS, m)
    part = (np.random.default_rng(seed).permutation(m) % parts)[place]
    maps = [isotonic_map(own[part != one], given[part != one]) for one in range(parts)]
    held_out = np.stack([np.interp(own, *one) for one in maps])[part, np.arange(n)]
    error = np.abs(given - held_out)[:, None]
    weights = 1 / (np.bincount(place)[place] * (m + 1))
    batch = max(1, CELLS // n)
    for start in range(0, len(values), batch):
        rows = slice(start, start + batch)
        middle = np.stack([np.interp(values[rows], *one) for one in maps])[part]
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
    verdict: str = ""

    @property
    def validated(self) -> bool:
        """Whether real jurors agree with real clinicians as well as the study's protocol asks."""
        return self.verdict == DecisionKind.NON_INFERIOR and not self.simulated


def to_json(row: PredictedRow) -> dict[str, Any]:
    """Return a row as `analyse predict --json` has it; what is undefined becomes None."""
    named = {IN_JSON.get(name, name): value for name, value in json_value(row).items()}
    return named | {"validated": row.validated}


def predictions(
    scores: Scores,
    options: AnalysisOptions,
    verdicts: Mapping[str, Decision],
    level: float = 0.9,
    tick: Callable[[float], None] | None = None,
) -> tuple[list[PredictedRow], pd.DataFrame]:
    """Return the clinicians' mean over all responses, and their likely composite on each.

    Parameters
    ----------
    scores, options
        As for the verdicts. The jury's composite on a response is the mean of its jurors'
        composites, in points.
    verdicts : the study's decisions on this jury, by benchmark
    level : in (0, 1), of the intervals of single responses and of means
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
    parts: list[tuple[PredictedRow, PredictionPowered]] = []
    rows: list[PredictedRow] = []
    responses: list[pd.DataFrame] = []
    for scope in scopes(scores, options, tick):
        if scope.jury is None:
            raise TooFew("no juror has rated anything: there is no jury to predict with")
        reason = why_undefined_scope(scores, scope)
        simulated = remarks.simulated(scope.simulated & {*scope.jurors, *scope.clinicians})
        if scope.name == COMBINED:
            row = _combined(parts, level, reason)
        else:
            row, mean, singles = _of_benchmark(scores, scope, scope.jury, level)
            of_all = noted(reason or row.told("few_to_calibrate"), simulated)
            singles["notes"] = [(*own, *of_all) for own in singles["notes"]]
            responses.append(singles)
            row = replace(row, notes=(reason,)) if reason else row
        verdict = verdicts[scope.name].kind.value
        rows.append(replace(row, verdict=verdict, notes=noted(*row.notes, simulated)))
        if scope.name != COMBINED:
            parts.append((rows[-1], mean))
    return rows, pd.concat(responses, ignore_index=True)


def _of_benchmark(
    scores: Scores, scope: Scope, jury: PanelColumns, level: float
) -> tuple[PredictedRow, PredictionPowered, pd.DataFrame]:
    """Return a benchmark's row, its mean, and the rows of its single responses.

    Responses are sorted, so that a seed gives the same in whatever order a study was imported.
    """
    means = means_of_both(scope.composites, jury.members, jury.needed)
    every = scores.responses[scores.responses["benchmark"] == scope.name]
    every = every.sort_values("response_id", ignore_index=True).join(means, on="response_id")
    scored = every[every["jury"].notna()].reset_index(drop=True)
    of_jury, clinicians = (scored[who].to_numpy(dtype=np.float64) for who in ("jury", "clinicians"))
    instances = np.unique(scored["instance_id"].to_numpy(dtype=str), return_inverse=True)[1]
    rated, n = ~np.isnan(clinicians), int((~np.isnan(clinicians)).sum())
    mean = prediction_powered_mean(clinicians, of_jury, instances)
    low, high = conformal_interval(clinicians, of_jury, instances, level, scope.options.seed)
    alone, corrected = mean.clinicians.interval(level), mean.corrected.interval(level)
    row = PredictedRow(
        scope.name,
        n_calibration=mean.clinicians.instances,
        q=float((high - low)[rated].mean()) / 2 if n else NAN,
        n_predicted=len(scored) if n >= LEAST_FIT else 0,
        mean_clinicians=mean.clinicians.value,
        clinicians_low=alone.low,
        clinicians_high=alone.high,
        mean_jury=float(of_jury.mean()) if len(of_jury) else NAN,
        mean_corrected=mean.corrected.value,
        low=corrected.low,
        high=corrected.high,
        weight=mean.weight,
        n_rated=n,
        n_unrated=len(of_jury) - n,
        gain=mean.gain,
        rated_unrated_difference=standardised_difference(of_jury[rated], of_jury[~rated]),
    )
    raters = (*scope.jurors, *scope.clinicians)
    notes = noted(
        *_notes(row, of_jury, rated, level),
        remarks.incomplete(sum(scope.incomplete.get(name, 0) for name in raters)),
        _unscored(every),
    )
    ends = scores.rubrics[scope.name].ends(scope.options.criterion)
    singles = _singles(scored).assign(low=low.clip(min=ends[0]), high=high.clip(max=ends[1]))
    return replace(row, notes=notes), mean, singles[list(COLUMNS)]


def means_of_both(composites: pd.DataFrame, jurors: Sequence[str], needed: int) -> pd.DataFrame:
    """Return the means of composites by response_id: `clinicians`, and `jury` of at least `needed` jurors.

    NaN where only the other has one. `composites` are those of `rating_matrix.composites`.
    """
    is_juror = (composites["kind"] == "juror") & composites["rater"].isin(list(jurors))
    means = {}
    for who, own, least in (
        ("clinicians", composites["kind"] == "clinician", 1),
        ("jury", is_juror, needed),
    ):
        rows = composites[own].astype({"response_id": "str"})  # lists of names differ by the rows
        found = rows.groupby("response_id")["composite"].agg(["mean", "count"])
        means[who] = found["mean"].where(found["count"] >= least).astype(float)
    return pd.DataFrame(means)


def _singles(scored: pd.DataFrame) -> pd.DataFrame:
    """Return the responses with the map's value, and a note where that is extrapolated."""
    jury, mapped = scored["jury"].to_numpy(), np.full(len(scored), np.nan)
    beyond = np.zeros(len(scored), dtype=np.bool_)
    both = scored[scored["clinicians"].notna()]
    if len(both) >= LEAST_FIT:
        knots, values = isotonic_map(both["jury"].to_numpy(), both["clinicians"].to_numpy())
        mapped = np.interp(jury, knots, values)
        beyond = (jury < knots[0] - ROUNDING) | (jury > knots[-1] + ROUNDING)
    outside = note("outside_map", "outside what the map was fitted on")
    return scored.assign(
        clinician_scale=mapped,
        rated_by_clinicians=scored["clinicians"].notna(),
        notes=pd.Series([(outside,) if one else () for one in beyond], dtype=object),
    )


def _notes(row: PredictedRow, jury: Array, rated: Flags, level: float) -> Iterator[Note | None]:
    """Yield what a benchmark's figures rest on, and what they do not show."""
    if abs(row.rated_unrated_difference) > UNLIKE:
        yield note(
            "rated_unlike",
            "RATED AND UNRATED DIFFER: the jury gave rated responses {rated:.2f}, others "
            "{unrated:.2f}, {deviations:.2f} standard deviations apart, and unless the rated were "
            "drawn at random the corrected mean may be wrong",
            rated=jury[rated].mean(),
            unrated=jury[~rated].mean(),
            deviations=abs(row.rated_unrated_difference),
        )
    instances, least = row.n_calibration, least_instances(level)
    if not row.n_rated:
        yield undefined("none_of_both", "no response has composites of both jury and clinicians")
    elif instances < least:
        words = (
            f"no interval: {{responses:rated instance}}, {{least}} are needed for {100 * level:g} %"
        )
        yield note("few_to_calibrate", words, responses=instances, least=least)
    else:
        yield remarks.few_instances(instances)


def _unscored(table: pd.DataFrame) -> Note | None:
    """Return how many responses the jury has not scored, all or in part."""
    unscored = table.loc[table["jury"].isna(), "clinicians"]
    if not len(unscored):
        return None
    return note(
        "jury_unscored",
        "the jury scored {scored} of {responses:response}: the others are left out, {rated} of "
        "them rated by clinicians",
        scored=len(table) - len(unscored),
        responses=len(table),
        rated=int(unscored.notna().sum()),
    )


def _combined(
    parts: Sequence[tuple[PredictedRow, PredictionPowered]], level: float, reason: Note | None
) -> PredictedRow:
    """Return the row of all benchmarks, without those that have no response that both rated."""
    totals = {name: sum(getattr(own, name) for own, _ in parts) for name in SUMMED}
    row = PredictedRow(COMBINED, **totals, notes=noted(reason))
    defined = [(own, mean) for own, mean in parts if own.n_rated]
    if reason or not defined:
        return replace(row, n_rated=0, n_unrated=0)
    sizes = [own.n_rated + own.n_unrated for own, _ in defined]
    alone, error, of_alone = stratified([mean.clinicians for _, mean in defined], sizes, level)
    corrected, least, ends = stratified([mean.corrected for _, mean in defined], sizes, level)
    lost = [own.benchmark for own, _ in parts if not own.n_rated]
    words = "left out of all means, without a response that both rated: {benchmarks}"
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
        notes=(note("in_no_mean", words, benchmarks=lost),) if lost else (),
    )


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
    unshown = [other.benchmark for other in rows if other is not row and not other.validated]
    unlike = [(own.benchmark, own.told("rated_unlike")) for own in rows if own.told("rated_unlike")]
    reasons = [
        *verdict.reasons,
        *(
            note("unshown_in", "not shown in {benchmark} by itself", benchmark=one)
            for one in unshown
        ),
        *(
            note("of_benchmark", "in {benchmark}, {what}", benchmark=name, what=what)
            for name, what in unlike
        ),
    ]
    if raters := simulated_in(rows):
        kind, reasons = DecisionKind.SIMULATED, [note(*SIMULATED, raters=raters)]
        action = "have clinicians rate a random sample, and a real jury score every response"
        next_step = note("do_rate_for_real", action)
    elif kind is DecisionKind.NON_INFERIOR:
        kind = USABLE[not all(own.validated for own in parts)]
        at_random = note("do_rate_at_random", "draw the responses that clinicians rate at random")
        next_step = at_random if unlike else None
    both = "{responses:response} of {instances:instance} that both the jury and clinicians rated"
    alone = "{responses:response} that the jury alone rated"
    return Decision(
        "predictions",
        kind,
        estimate=verdict.estimate,
        low=verdict.low,
        high=verdict.high,
        reasons=tuple(reasons),
        basis=(
            note("both_rated", both, responses=row.n_rated, instances=row.n_calibration),
            note("predicted_for", alone, responses=row.n_unrated),
        ),
        next=next_step,
    )

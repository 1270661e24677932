"""What a fall in agreement comes from: a changed juror, another case mix, both, or neither.

A juror that scored the same responses again a week later or more (the anchor) shows whether it has
changed; the responses rated then and now show whether the cases have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from calibration import remarks
from calibration.bootstrap import LEAST_CLUSTERS
from calibration.clustered_intervals import clustered_mean
from calibration.columns import LEAST_RESPONSES, PanelColumns, columns
from calibration.differences import holm
from calibration.icc import UNDEFINED, Interval
from calibration.intervals import fisher_z, icc_difference, left_out
from calibration.notes import Noted, note, noted, undefined
from calibration.rating_matrix import mean_of_given, required_criteria
from calibration.reliability import icc_one
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers, RubricShape, Scores
from calibration.values import NAN
from calibration.weighted import scorer_iccs, weighted_icc

LEVEL = 0.05
MOVED_SHARE = 0.1  # smaller changes of the shares of benchmarks are usual between months
LEAST_EXPLAINED = 0.5  # share of the fall that a reason must explain to be named
LEAST_EFFECTIVE = 10
MIN_GAP = timedelta(days=7)  # replicates made within a week show a juror's noise, not its drift
DRIFTS = {
    "none": "agreement has not measurably fallen since the baseline",
    "not_compared": "no earlier period to compare the newest one with",
    "model": "the data point to the model: its scores of the same responses have changed",
    "case_mix": "the data point to the case mix: other responses were rated",
    "model_and_case_mix": "both have changed: the model and the case mix",
    "neither": "neither model nor case mix shows why: the clinicians may have changed, or it is chance",
    "unknown": "the case mix does not show why agreement is lower, and whether the model has changed is "
    "not known without responses scored again: run the jury with more verdicts of each juror",
}
SCORE_KEYS = ["response_id", "rater", "pass_", "replicate"]


@dataclass(frozen=True)
class AnchorRow(Noted):
    """A scorer's first and latest composites of the same responses.

    Attributes
    ----------
    scorer : "juror:NAME", or "jury" for the mean of jurors that all have both
    shift, low, high : latest minus first in points, with a 95 % interval over instances
    p_holm : two-sided p of shift 0, corrected for the jurors of the jury
    icc_one : ICC(A,1) of first and latest
    icc_first, icc_latest : ICC(C,2) with the clinicians on the same n_clinical responses
    change_low, change_high : 95 % interval of latest minus first of these two
    """

    scorer: str
    n_responses: int
    n_instances: int
    shift: float
    low: float
    high: float
    p_holm: float
    icc_one: float
    n_clinical: int
    icc_first: float
    icc_latest: float
    change_low: float
    change_high: float


@dataclass(frozen=True)
class CaseMix(Noted):
    """The responses rated in the baseline and now.

    Attributes
    ----------
    baseline, now : labels of the periods
    shares : a mapping for each benchmark: its name, number and share of responses of each
    moved : half the sum of absolute differences of the shares: 0 the same, 1 nothing in common
    mean_*, sd_* : of the clinicians' mean composites, in points
    icc_baseline, icc_now, change : ICC(C,2), and its change with a 95 % interval
    icc_reweighted : of now, its benchmarks weighted to the baseline's shares. NaN where that rests
        on fewer than 10 effective responses, (sum of weights)^2 / sum of squares (Kish 1965)
    """

    baseline: str
    now: str
    shares: tuple[Mapping[str, Any], ...] = ()
    moved: float = NAN
    mean_baseline: float = NAN
    mean_now: float = NAN
    sd_baseline: float = NAN
    sd_now: float = NAN
    icc_baseline: float = NAN
    icc_now: float = NAN
    change: float = NAN
    change_low: float = NAN
    change_high: float = NAN
    icc_reweighted: float = NAN


def drift_of(anchor: Sequence[AnchorRow], mix: CaseMix | None, alarm: bool) -> str:
    """Return what a fall in agreement comes from, a key of `DRIFTS`.

    Agreement has fallen where there is an alarm, or the whole interval of the change from the
    baseline is below 0. The model has changed where, on the anchor, the shift of a juror has
    p_holm below 0.05 or the whole interval of the jury's change in ICC is below 0. The case mix
    explains a fall if shares of benchmarks moved by 0.1 or more, and weighted back they account
    for half of it, on Fisher's z.
    """
    if not (alarm or (mix is not None and mix.change_high < 0)):
        is_compared = mix is not None and np.isfinite(mix.change_high)
        return "none" if is_compared else "not_compared"
    moved = any(row.scorer != "jury" and row.p_holm < LEVEL for row in anchor)
    causes = ["model"] * (moved or any(row.change_high < 0 for row in anchor[-1:]))
    if mix is not None and mix.moved >= MOVED_SHARE:
        iccs = np.array([mix.icc_baseline, mix.icc_now, mix.icc_reweighted])
        before, after, weighted = fisher_z(np.where(iccs < 1, iccs, NAN))
        is_explained = before > after and weighted - after >= LEAST_EXPLAINED * (before - after)
        causes += ["case_mix"] * bool(is_explained)
    none = "neither" if any(row.n_responses for row in anchor) else "unknown"
    return "_and_".join(causes) or none


def case_mix(
    scope: Scope, jury: PanelColumns, baseline: tuple[str, Flags], now: tuple[str, Flags]
) -> CaseMix:
    """Compare what was rated in two sets of periods.

    Over the responses with both columns, those of the whole analysed set (z as there). `baseline` and
    `now` are a label and which responses of the grid, shape (n,). The interval leaves out each instance
    of the two in turn. NaN where undefined, with the reason in the notes.
    """
    grid, analysis = scope.grid, scope.options
    pair = columns(grid, jury, analysis.method)
    benchmarks = scope.composites.drop_duplicates("response_id").set_index("response_id")
    responses = pd.DataFrame(
        {
            "x": pair.clinicians,
            "y": pair.scorer,
            "points": mean_of_given(grid.composites[:, grid.of_kind("clinician")]),
            "benchmark": benchmarks["benchmark"].reindex(list(grid.responses)).to_numpy(),
        }
    )
    rows = [flags & pair.both for _, flags in (baseline, now)]
    old, new = (responses[own] for own in rows)
    if min(len(old), len(new)) < 2:
        few = undefined("mix_undefined", "too few responses in the baseline or now to compare")
        return CaseMix(baseline[0], now[0], notes=(few,))
    weights = left_out(grid.n_clusters, grid.clusters[rows[0] | rows[1]])
    before, after = (scorer_iccs(grid, [jury], analysis.method, weights, own)[:, 0] for own in rows)
    change = icc_difference(after, before)
    shares = _shares(old["benchmark"].tolist(), new["benchmark"].tolist())
    weighted, effective = _reweighted(new, shares, analysis.method == "published")
    words = (
        "only {responses:.1f} effective responses with the baseline's shares: {least} are needed"
    )
    is_few = effective < LEAST_EFFECTIVE
    few_effective = note("few_effective", words, responses=effective, least=LEAST_EFFECTIVE)
    return CaseMix(
        baseline=baseline[0],
        now=now[0],
        shares=shares,
        moved=sum(abs(one["now"] - one["baseline"]) for one in shares) / 2,
        mean_baseline=old["points"].mean(),
        mean_now=new["points"].mean(),
        sd_baseline=old["points"].std(),
        sd_now=new["points"].std(),
        icc_baseline=float(before[0]),
        icc_now=float(after[0]),
        change=float(after[0] - before[0]),
        change_low=change.low,
        change_high=change.high,
        icc_reweighted=NAN if is_few else weighted,
        notes=(few_effective,) if is_few else (),
    )


def _reweighted(
    new: pd.DataFrame, shares: Sequence[Mapping[str, Any]], restandardise: bool
) -> tuple[float, float]:
    """Return the ICC of now with the baseline's shares of benchmarks, and its effective responses."""
    factor = {one["benchmark"]: one["baseline"] / one["now"] for one in shares if one["now"]}
    weights = new["benchmark"].map(factor).to_numpy(dtype=np.float64)[None]
    if not weights.any():
        return NAN, 0.0
    x, y = ((new[one] - new[one].mean()).to_numpy() for one in ("x", "y"))
    icc = weighted_icc(x, y, weights, restandardise=restandardise)
    return float(icc[0]), float(weights.sum() ** 2 / np.square(weights).sum())


def _shares(old: list[str], new: list[str]) -> tuple[Mapping[str, Any], ...]:
    return tuple(
        {
            "benchmark": name,
            "n_baseline": old.count(name),
            "n_now": new.count(name),
            "baseline": old.count(name) / len(old),
            "now": new.count(name) / len(new),
        }
        for name in sorted({*old, *new})
    )


def anchor_rows(
    scope: Scope, jury: PanelColumns, jurors: Sequence[str], readings: pd.DataFrame
) -> list[AnchorRow]:
    """Return how the scores of each juror, and then of the jury, have changed on its anchor.

    `readings` are as `anchors` returns them, of the scope's benchmarks; responses without clinicians
    count only for the shift. Empty where no juror has an anchor; a juror without one has n_responses
    0 and a note. p is by t with instances - 1 degrees of freedom, p_holm Holm's; NaN where undefined.
    """
    own = readings[readings["rater"].isin(list(jurors))]
    if own.empty:
        return []
    rows = [
        _anchor_row(scope, jury, f"juror:{name}", (name,), own[own["rater"] == name])
        for name in jurors
    ]
    adjusted = holm(np.array([row.p_holm for row in rows]))
    rows = [replace(row, p_holm=float(p)) for row, p in zip(rows, adjusted, strict=True)]
    if len(jurors) == 1:
        return rows
    grouped = own.groupby(["response_id", "instance_id"])[["first", "latest"]]
    of_all = grouped.mean()[grouped.size() == len(jurors)].reset_index()
    return [*rows, _anchor_row(scope, jury, "jury", jurors, of_all)]


def _anchor_row(
    scope: Scope, jury: PanelColumns, scorer: str, members: Sequence[str], readings: pd.DataFrame
) -> AnchorRow:
    pair = readings[["first", "latest"]].to_numpy(dtype=np.float64)
    _, clusters = np.unique(readings["instance_id"].to_numpy(dtype=str), return_inverse=True)
    shift, ends, p = mean_shift(pair[:, 1] - pair[:, 0], clusters)
    clinical, iccs, change = _with_clinicians(scope, jury, readings)
    none = "no anchor: no response scored again at least {days} days later"
    few = "{responses} of these responses rated by clinicians: no ICC"
    lost = note("few_anchors_rated", few, responses=clinical)
    simulated = remarks.simulated(scope.simulated & set(members))
    notes = noted(lost if clinical < LEAST_RESPONSES else None, simulated)
    return AnchorRow(
        scorer=scorer,
        n_responses=len(pair),
        n_instances=len(np.unique(clusters)),
        shift=shift,
        low=ends.low,
        high=ends.high,
        p_holm=p,
        icc_one=icc_one(pair),
        n_clinical=clinical,
        icc_first=float(iccs[0]),
        icc_latest=float(iccs[1]),
        change_low=change.low,
        change_high=change.high,
        notes=notes if len(pair) else (note("no_anchor", none, days=MIN_GAP.days),),
    )


def _with_clinicians(
    scope: Scope, jury: PanelColumns, readings: pd.DataFrame
) -> tuple[int, Array, Interval]:
    """Return how many anchor responses clinicians rated, both ICCs, and the change's interval."""
    grid, analysis = scope.grid, scope.options
    place = {name: row for row, name in enumerate(grid.responses)}
    rated = readings[readings["response_id"].isin(place)]
    rows = rated["response_id"].map(place).to_numpy(dtype=np.int64)
    x = columns(grid, jury, analysis.method).clinicians[rows]
    is_rated = ~np.isnan(x)
    if is_rated.sum() < LEAST_RESPONSES:
        return int(is_rated.sum()), np.full(2, np.nan), UNDEFINED
    clusters = grid.clusters[rows][is_rated]
    weights = left_out(grid.n_clusters, clusters)[:, clusters]
    of_all = [x[is_rated], *rated[["first", "latest"]].to_numpy(dtype=np.float64)[is_rated].T]
    judge, *both = (one - one.mean() for one in of_all)
    first, latest = (weighted_icc(judge, y, weights, restandardise=True) for y in both)
    change = icc_difference(latest, first)
    iccs = np.array([first[0], latest[0]])
    return len(clusters), iccs, Interval(change.low, change.high)


def mean_shift(differences: Array, clusters: Integers) -> tuple[float, Interval, float]:
    """Return the mean of differences, its 95 % interval over clusters, and the p of a mean of 0.

    By t with clusters - 1 degrees of freedom on `clustered_mean`: with one difference a cluster this
    is the paired t test. Interval and p are NaN with fewer than 2 clusters; p is 1 where all
    differences are 0, and NaN where they are all equal and not 0, since they have no variance.
    (Cameron & Miller 2015, Journal of Human Resources 50, 317.)
    """
    m = len(np.unique(clusters))
    mean = clustered_mean(differences, clusters, m)
    if m < LEAST_CLUSTERS:
        return mean.value, UNDEFINED, NAN
    if mean.error <= 1e-12:
        p = 1.0 if abs(mean.value) <= 1e-12 else NAN
        return mean.value, Interval(mean.value, mean.value), p
    p = 2 * float(special.stdtr(m - 1, -abs(mean.value) / mean.error))
    return mean.value, mean.interval(), p


def anchors(readings: pd.DataFrame, rubrics: Mapping[str, RubricShape]) -> pd.DataFrame:
    """Return the first and the latest composite of every response a juror scored again later.

    `readings` has response_id, instance_id, benchmark, rater, criterion, pass_, replicate, score and
    at, a row for each score; a score that replaced another of the same replicate is not a second
    reading, and one without all criteria has no composite. Of readings at least 7 days apart it
    returns response_id, instance_id, benchmark, rater, first and latest.
    """
    complete = _complete(readings, rubrics)
    pairs = complete.groupby(["response_id", "instance_id", "benchmark", "rater"])
    both = pairs.agg(first=("composite", "first"), latest=("composite", "last"))
    gap = pairs["at"].last() - pairs["at"].first()
    return both[gap >= MIN_GAP].reset_index()


def without_later(scores: Scores, readings: pd.DataFrame) -> Scores:
    """Return the scores without those by a juror a week or more after its first of the response.

    Such readings show how a juror has changed; averaged with the first they would hide that.
    `readings` are as in `anchors`.
    """
    complete = _complete(readings, scores.rubrics)
    first = complete.groupby(["response_id", "rater"])["at"].transform("min")
    later = pd.MultiIndex.from_frame(complete.loc[complete["at"] - first >= MIN_GAP, SCORE_KEYS])
    is_later = pd.MultiIndex.from_frame(scores.ratings[SCORE_KEYS]).isin(later)
    return replace(scores, ratings=scores.ratings[~is_later].reset_index(drop=True))


def _complete(readings: pd.DataFrame, rubrics: Mapping[str, RubricShape]) -> pd.DataFrame:
    """Return the readings with all criteria, each with its composite and time, in order."""
    required = required_criteria(rubrics, None)
    pairs = [(name, criterion) for name, own in required.items() for criterion in own]
    asked = pd.MultiIndex.from_frame(readings[["benchmark", "criterion"]]).isin(pairs)
    keys = ["response_id", "instance_id", "benchmark", "rater", "pass_", "replicate"]
    grouped = readings[asked].dropna(subset=["score"]).groupby(keys, sort=False)
    composites = grouped.agg(
        composite=("score", "mean"), given=("score", "size"), at=("at", "max")
    ).reset_index()
    needed = composites["benchmark"].map({name: len(own) for name, own in required.items()})
    return composites[composites["given"] == needed].sort_values(["at", "replicate"], kind="stable")

"""The cause of a fall in agreement: a changed juror, another case mix, both, or neither."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from calibration.agreement import columns
from calibration.bootstrap import LEAST_CLUSTERS, draw_counts, percentile_interval
from calibration.icc import UNDEFINED, Interval
from calibration.monitoring.cusum import fisher_z
from calibration.monitoring.rows import AnchorRow, BenchmarkShare, CaseMix
from calibration.notes import Figures, Note, Noted, note, noted, undefined
from calibration.rating_matrix import mean_of_given
from calibration.resampled_moments import icc_of_moments, moments
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers
from calibration.values import NAN

DRIFTS = {
    "model": "and the data point to the model: its scores of the same responses have changed",
    "case_mix": "and the data point to the case mix: other responses were rated",
    "model_and_case_mix": "and both have changed: the model and the case mix",
    "neither": (
        "and neither the model nor the case mix shows why: the clinicians may have changed, or it "
        "is chance"
    ),
    "unknown": "and the case mix does not show why",
}
UNANCHORED = (
    "no anchor: without responses scored again it is not known whether the model has changed; a "
    "jury run with more verdicts of each juror scores them again"
)
NOTHING_EARLIER = ("nothing_earlier", "no earlier period to compare the newest one with")
NOT_LOWER = ("not_lower", "agreement has not measurably fallen since the baseline")

LEVEL = 0.05
MOVED_SHARE = 0.1  # smaller changes of the shares of benchmarks are usual between months
LEAST_EXPLAINED = 0.5  # share of the fall that a reason must explain to be named
MODEL, MIX = "model", "case_mix"
LEAST_EFFECTIVE = 10


@dataclass(frozen=True)
class Drift(Noted):
    """What a fall in agreement comes from, with the evidence as notes in reading order.

    Attributes
    ----------
    drift : str
        "none" (agreement has not fallen), "not_compared" (there is nothing earlier), "model",
        "case_mix", "model_and_case_mix", "neither", or "unknown" (it has fallen, there is no
        anchor, and the case mix does not explain it).
    anchored : whether any juror has an anchor
    """

    drift: str
    anchored: bool

    @property
    def said(self) -> tuple[str, ...]:
        """Return its notes in words."""
        return tuple(str(remark) for remark in self.notes)


def drift_of(anchor: Sequence[AnchorRow], mix: CaseMix | None, alarm: bool) -> Drift:
    """Return what a fall in agreement comes from, as far as the data tell.

    Agreement has fallen where the CUSUM has raised an alarm, or the whole interval of the change
    from the baseline is below 0. The model has changed where, on the anchor, the shift of a juror
    has p_holm below 0.05 or the whole interval of the jury's change in ICC is below 0. The case
    mix explains a fall if one of two things accounts for half of it, on Fisher's z: shares of
    benchmarks that moved by 0.1 or more and are weighted back, or a smaller spread of the
    clinicians' scores, with the whole interval of its ratio to the baseline's below 1.

    Parameters
    ----------
    anchor : rows of `anchor.anchor_rows`
    mix : of `case_mix`; None where there is nothing to compare with
    alarm : whether the CUSUM has raised one
    """
    juror_notes, mix_notes = _juror_changes(anchor), _case_mix_reasons(mix)
    anchored = any(row.n_responses for row in anchor)
    if not (alarm or (mix is not None and mix.change_high < 0)):
        compared = mix is not None and bool(np.isfinite(mix.change_high))
        summary = note(*(NOT_LOWER if compared else NOTHING_EARLIER))
        return Drift(
            "none" if compared else "not_compared", anchored, notes=(summary, *juror_notes)
        )
    drift = "_and_".join(([MODEL] if juror_notes else []) + ([MIX] if mix_notes else []))
    if not drift:
        drift = "neither" if anchored else "unknown"
    summary = note("drift", _drift, drift=drift, alarm=alarm, anchored=anchored)
    return Drift(drift, anchored, notes=(summary, *juror_notes, *mix_notes))


def _juror_changes(anchor: Sequence[AnchorRow]) -> list[Note]:
    """Return a note for each way in which the jurors have changed on their anchor."""
    shifted = [_juror_shift(row) for row in anchor if row.scorer != "jury" and row.p_holm < LEVEL]
    fallen = [
        note(
            "anchor_icc_fell",
            (
                "its ICC on {responses} responses scored again went from {first:z.2f} to "
                "{latest:z.2f}"
            ),
            responses=row.n_clinical,
            first=row.icc_first,
            latest=row.icc_latest,
        )
        for row in _jury_row(anchor)
        if row.change_high < 0
    ]
    return [*shifted, *fallen]


def _juror_shift(row: AnchorRow) -> Note:
    return note(
        "juror_moved",
        (
            "{juror:scorer} moved by {shift:+.2f} points ({low:+.2f} to {high:+.2f}) on "
            "{responses} responses scored again"
        ),
        juror=row.scorer,
        shift=row.shift,
        low=row.low,
        high=row.high,
        responses=row.n_responses,
    )


def _jury_row(anchor: Sequence[AnchorRow]) -> list[AnchorRow]:
    """Return the row of the jury: of its only juror where there is one."""
    return [row for row in anchor if row.scorer == "jury" or len(anchor) == 1]


def _case_mix_reasons(mix: CaseMix | None) -> list[Note]:
    """Return a note for each way in which the case mix accounts for half of a fall."""
    if mix is None or not np.isfinite(mix.change):
        return []
    return [*_by_shares(mix), *_by_spread(mix)]


def _by_shares(mix: CaseMix) -> list[Note]:
    if mix.moved < MOVED_SHARE or not explains(mix, mix.icc_reweighted, mix.icc_now):
        return []
    return [
        note(
            "shares_explain",
            (
                "{moved:.0%} of the responses are of other benchmarks than in the baseline; weighted "
                "to its shares the ICC would be {weighted:z.2f} instead of {icc:z.2f}"
            ),
            moved=mix.moved,
            weighted=mix.icc_reweighted,
            icc=mix.icc_now,
        )
    ]


def _by_spread(mix: CaseMix) -> list[Note]:
    if not mix.sd_high < 1 or not explains(mix, mix.icc_baseline, mix.icc_spread):
        return []
    return [
        note(
            "spread_explains",
            (
                "the clinicians' scores lie closer together: SD {sd_now:.2f}, {sd_baseline:.2f} in "
                "the baseline; that alone takes its ICC of {icc:z.2f} to {icc_spread:z.2f}"
            ),
            sd_now=mix.sd_now,
            sd_baseline=mix.sd_baseline,
            icc=mix.icc_baseline,
            icc_spread=mix.icc_spread,
        )
    ]


def explains(mix: CaseMix, high: float, low: float) -> bool:
    """Return whether the fall from one ICC to another is half of the whole, on Fisher's z."""
    before, after, upper, lower = fisher_z(np.array([mix.icc_baseline, mix.icc_now, high, low]))
    return bool(before > after and upper - lower >= LEAST_EXPLAINED * (before - after))


@dataclass(frozen=True, eq=False)
class _PeriodSample:
    """Responses of some periods that clinicians and jury scored.

    Attributes
    ----------
    x, y : shape (n,), columns of clinicians and jury
    points : shape (n,), the clinicians' mean composites
    clusters, benchmarks : instance and benchmark of each response
    """

    x: Array
    y: Array
    points: Array
    clusters: Integers
    benchmarks: list[str]

    @property
    def n_clusters(self) -> int:
        return int(self.clusters.max()) + 1 if len(self.clusters) else 0

    def figures(self, counts: Array, restandardise: bool) -> Array:
        """Return ICC, mean and sd of the clinicians' points for counts (B, clusters)."""
        weights = counts[:, self.clusters]
        n = weights.sum(axis=1)
        mean = weights @ self.points / n
        square = np.maximum(weights @ self.points**2 - n * mean**2, 0.0)
        sd = np.sqrt(square / np.maximum(n - 1, 1))
        icc = weighted_icc(weights, self.x, self.y, restandardise=restandardise)
        return np.column_stack([icc, mean, sd])


def weighted_icc(weights: Array, x: Array, y: Array, *, restandardise: bool) -> Array:
    """Return ICC(C,2) of two columns (n,) with weights (B, n); NaN where undefined."""
    columns_centred = (np.broadcast_to(column - column.mean(), weights.shape) for column in (x, y))
    return icc_of_moments(moments(weights, *columns_centred), restandardise=restandardise)


def z_icc(weights: Array, x: Array, y: Array) -> Array:
    """Return ICC(C,2) of two columns (n,), both z-scored, with weights (B, n)."""
    return weighted_icc(weights, x, y, restandardise=True)


def case_mix(scope: Scope, baseline: tuple[str, Flags], now: tuple[str, Flags]) -> CaseMix:
    """Compare what was rated in two sets of periods.

    Parameters
    ----------
    scope : Scope
        With a jury; its columns are those of the whole analysed set (z as there).
    baseline, now : label, and which responses of the grid, shape (n,)

    Returns
    -------
    CaseMix
        Over the responses with both columns. The intervals are by resampling the instances of
        each set, with z taken as known. NaN where undefined, with the reason in the notes.
    """
    restandardise = scope.options.method == "published"
    old, new = _period_sample(scope, baseline[1]), _period_sample(scope, now[1])
    if min(len(old.x), len(new.x)) < 2:
        return CaseMix(
            baseline[0],
            now[0],
            notes=(
                undefined("mix_undefined", "too few responses in the baseline or now to compare"),
            ),
        )
    shares = _shares(old, new)
    before, after = (
        sample.figures(np.ones((1, sample.n_clusters)), restandardise)[0] for sample in (old, new)
    )
    icc, mean, sd = _intervals(scope, old, new, restandardise)
    weights = _to_baseline(new, shares)
    effective = float(weights.sum() ** 2 / np.square(weights).sum())
    absent = [share.benchmark for share in shares if share.n_baseline and not share.n_now]
    return CaseMix(
        baseline=baseline[0],
        now=now[0],
        shares=shares,
        moved=sum(abs(share.now - share.baseline) for share in shares) / 2,
        mean_baseline=float(before[1]),
        mean_now=float(after[1]),
        mean_change=float(after[1] - before[1]),
        mean_low=mean.low,
        mean_high=mean.high,
        sd_baseline=float(before[2]),
        sd_now=float(after[2]),
        sd_ratio=float(after[2] / before[2]) if before[2] else NAN,
        sd_low=sd.low,
        sd_high=sd.high,
        icc_baseline=float(before[0]),
        icc_now=float(after[0]),
        change=float(after[0] - before[0]),
        change_low=icc.low,
        change_high=icc.high,
        icc_reweighted=NAN
        if effective < LEAST_EFFECTIVE
        else float(weighted_icc(weights, new.x, new.y, restandardise=restandardise)[0]),
        icc_spread=_with_spread(old, float(np.var(new.x)), restandardise),
        notes=noted(*_notes(absent, effective)),
    )


def _period_sample(scope: Scope, rows: Flags) -> _PeriodSample:
    grid = scope.grid
    if scope.jury is None:
        rows = np.zeros_like(rows)
        pair_x = pair_y = np.full(len(rows), np.nan)
    else:
        pair = columns(grid, scope.jury, scope.options.method)
        rows, pair_x, pair_y = rows & pair.both, pair.clinicians, pair.scorer
    points = mean_of_given(grid.composites[:, grid.of_kind("clinician")])
    benchmark_of = scope.composites.drop_duplicates("response_id").set_index("response_id")[
        "benchmark"
    ]
    responses = [name for name, is_in in zip(grid.responses, rows, strict=True) if is_in]
    _, clusters = np.unique(grid.clusters[rows], return_inverse=True)
    benchmarks = [str(name) for name in benchmark_of.reindex(responses)]
    return _PeriodSample(
        pair_x[rows], pair_y[rows], points[rows], clusters.astype(np.int64), benchmarks
    )


def _shares(old: _PeriodSample, new: _PeriodSample) -> tuple[BenchmarkShare, ...]:
    shares = []
    for name in sorted({*old.benchmarks, *new.benchmarks}):
        before, after = old.benchmarks.count(name), new.benchmarks.count(name)
        share_pair = before / len(old.benchmarks), after / len(new.benchmarks)
        shares.append(BenchmarkShare(name, before, after, *share_pair))
    return tuple(shares)


def _to_baseline(new: _PeriodSample, shares: tuple[BenchmarkShare, ...]) -> Array:
    """Return weights (1, n) under which now's benchmarks have the baseline's shares."""
    factor = {share.benchmark: share.baseline / share.now for share in shares if share.now}
    return np.array([[factor[name] for name in new.benchmarks]])


def _with_spread(old: _PeriodSample, variance: float, restandardise: bool) -> float:
    """Return the baseline's ICC for another variance of the clinicians' column."""
    variance_baseline, slope = float(np.var(old.x)), NAN
    if variance_baseline > 0:
        slope = float(np.mean((old.x - old.x.mean()) * (old.y - old.y.mean()))) / variance_baseline
    residual = float(np.var(old.y)) - slope**2 * variance_baseline
    xy, yy = slope * variance, slope**2 * variance + max(residual, 0.0)
    if restandardise:
        denominator = np.sqrt(variance * yy)
        return 2 * xy / (xy + denominator) if denominator > 0 else NAN
    total = variance + yy + 2 * xy
    return 4 * xy / total if total > 0 else NAN


def _intervals(
    scope: Scope, old: _PeriodSample, new: _PeriodSample, restandardise: bool
) -> list[Interval]:
    """Return the intervals of the change of the ICC and the mean, and of the ratio of the sds."""
    if min(old.n_clusters, new.n_clusters) < LEAST_CLUSTERS or not scope.options.reps:
        return [UNDEFINED] * 3
    drawn = []
    for sample, seed in ((old, scope.options.seed), (new, scope.options.seed + 1)):
        rows = len(sample.x)
        batches = draw_counts(sample.n_clusters, reps=scope.options.reps, seed=seed, rows=rows)
        drawn.append(np.concatenate([sample.figures(counts, restandardise) for counts in batches]))
    before, after = drawn
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = after[:, 2] / before[:, 2]
    change = after[:, :2] - before[:, :2]
    return [percentile_interval(replicates) for replicates in (change[:, 0], change[:, 1], ratio)]


def _notes(absent: list[str], effective: float) -> Iterator[Note]:
    if effective < LEAST_EFFECTIVE:
        yield note(
            "few_effective",
            (
                "weighted to the baseline's shares, the newest period has {responses:.1f} effective "
                "responses: {least} are needed"
            ),
            responses=effective,
            least=LEAST_EFFECTIVE,
        )
    if absent:
        yield note(
            "not_rated_now",
            "not rated now, so weighting cannot represent them: {benchmarks}",
            benchmarks=absent,
        )


def _drift(figures: Figures) -> str:
    lower = "agreement has fallen" if figures["alarm"] else "the ICC is lower than in the baseline"
    text = f"{lower}, {DRIFTS[figures['drift']]}"
    return text if figures["anchored"] else f"{text}; {UNANCHORED}"

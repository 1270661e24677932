"""What a fall in agreement comes from: a changed juror, other responses (case mix), both, or neither."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from calibration.agreement import columns
from calibration.bootstrap import LEAST_CLUSTERS, draw_counts, percentile_interval
from calibration.codes import MonitoringCode
from calibration.icc import UNDEFINED, Interval
from calibration.messages import words
from calibration.monitoring.cusum import fisher_z
from calibration.monitoring.rows import AnchorRow, CaseMix, Share
from calibration.rating_matrix import mean_of_given
from calibration.resampled_moments import icc_of_moments, moments
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers
from calibration.values import NAN, Note, Noted, note, noted

LEVEL = 0.05
MOVED = 0.1  # shares that differ by less are what any two months differ by
HALF = 0.5  # of the fall must be explained before anything is named as its reason
MODEL, MIX = "model", "case_mix"


@dataclass(frozen=True)
class Drift(Noted):
    """Which drift the data speak for; its notes say so, in the order to be read.

    Attributes
    ----------
    drift : str
        "none" (agreement has not fallen), "not_compared" (with what?), "model", "case_mix",
        "model_and_case_mix", "neither", or "unknown" (fallen, no anchor, and the case mix does
        not explain it).
    anchored : whether any juror has an anchor
    """

    drift: str
    anchored: bool

    @property
    def said(self) -> tuple[str, ...]:
        """Return its notes in words."""
        return tuple(words(one) for one in self.notes)


def drift_of(anchor: Sequence[AnchorRow], mix: CaseMix | None, alarm: bool) -> Drift:
    """Say what the data speak for where agreement is lower than it was.

    It is where the CUSUM has raised an alarm, or the interval of the change from the baseline is
    all below 0. The model has changed where, on the anchor, the shift of a juror has p_holm below
    0.05 or the jury's change in ICC has an interval all below 0. The case mix explains a fall
    where the shares of benchmarks moved by 0.1 or more and weighting them back, or a spread whose
    interval is all below that of the baseline, accounts for half of it, on Fisher's z.
    """
    moved, explained = _model(anchor), _mix(mix)
    anchored = any(row.n_responses for row in anchor)
    if not (alarm or (mix is not None and mix.change_high < 0)):
        compared = mix is not None and bool(np.isfinite(mix.change_high))
        first = note(MonitoringCode.NOT_LOWER if compared else MonitoringCode.NOTHING_EARLIER)
        return Drift("none" if compared else "not_compared", anchored, notes=(first, *moved))
    drift = "_and_".join(([MODEL] if moved else []) + ([MIX] if explained else []))
    if not drift:
        drift = "neither" if anchored else "unknown"
    summary = note(MonitoringCode.DRIFT, drift=drift, alarm=alarm, anchored=anchored)
    return Drift(drift, anchored, notes=(summary, *moved, *explained))


def _model(anchor: Sequence[AnchorRow]) -> list[Note]:
    """Return a note for each way in which the jurors have changed on their anchor."""
    moved = [_moved(row) for row in anchor if row.scorer != "jury" and row.p_holm < LEVEL]
    fell = [
        note(
            MonitoringCode.ANCHOR_ICC_FELL,
            responses=row.n_clinical,
            first=row.icc_first,
            latest=row.icc_latest,
        )
        for row in _whole(anchor)
        if row.change_high < 0
    ]
    return [*moved, *fell]


def _moved(row: AnchorRow) -> Note:
    return note(
        MonitoringCode.JUROR_MOVED,
        juror=row.scorer,
        shift=row.shift,
        low=row.low,
        high=row.high,
        responses=row.n_responses,
    )


def _whole(anchor: Sequence[AnchorRow]) -> list[AnchorRow]:
    """Return the row of the jury: of its only juror where there is one."""
    return [row for row in anchor if row.scorer == "jury" or len(anchor) == 1]


def _mix(mix: CaseMix | None) -> list[Note]:
    """Return a note for each way in which the case mix accounts for half of a fall."""
    if mix is None or not np.isfinite(mix.change):
        return []
    return [*_by_shares(mix), *_by_spread(mix)]


def _by_shares(mix: CaseMix) -> list[Note]:
    if mix.moved < MOVED or not explains(mix, mix.icc_reweighted, mix.icc_now):
        return []
    return [
        note(
            MonitoringCode.SHARES_EXPLAIN,
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
            MonitoringCode.SPREAD_EXPLAINS,
            sd_now=mix.sd_now,
            sd_baseline=mix.sd_baseline,
            icc=mix.icc_baseline,
            icc_spread=mix.icc_spread,
        )
    ]


def explains(mix: CaseMix, high: float, low: float) -> bool:
    """Tell whether the fall from one ICC to another is half of the whole, on Fisher's z."""
    was, now, above, below = fisher_z(np.array([mix.icc_baseline, mix.icc_now, high, low]))
    return bool(was > now and above - below >= HALF * (was - now))


LEAST_EFFECTIVE = 10


@dataclass(frozen=True, eq=False)
class _Part:
    """The responses of some periods with both columns, and the clinicians' composites."""

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
    wide = (np.broadcast_to(one - one.mean(), weights.shape) for one in (x, y))
    return icc_of_moments(moments(weights, *wide), restandardise=restandardise)


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
        Over the responses with both columns. The instances of each set are drawn anew for the
        intervals, z being taken as known. NaN where undefined, with the reason in the note.
    """
    again = scope.asked.method == "published"
    old, new = _part(scope, baseline[1]), _part(scope, now[1])
    if min(len(old.x), len(new.x)) < 2:
        return CaseMix(baseline[0], now[0], notes=(note(MonitoringCode.MIX_UNDEFINED),))
    shares = _shares(old, new)
    was, present = (part.figures(np.ones((1, part.n_clusters)), again)[0] for part in (old, new))
    icc, mean, sd = _intervals(scope, old, new, again)
    weights = _to_baseline(new, shares)
    effective = float(weights.sum() ** 2 / np.square(weights).sum())
    lost = [one.benchmark for one in shares if one.n_baseline and not one.n_now]
    return CaseMix(
        baseline=baseline[0],
        now=now[0],
        shares=shares,
        moved=sum(abs(one.now - one.baseline) for one in shares) / 2,
        mean_baseline=float(was[1]),
        mean_now=float(present[1]),
        mean_change=float(present[1] - was[1]),
        mean_low=mean.low,
        mean_high=mean.high,
        sd_baseline=float(was[2]),
        sd_now=float(present[2]),
        sd_ratio=float(present[2] / was[2]) if was[2] else NAN,
        sd_low=sd.low,
        sd_high=sd.high,
        icc_baseline=float(was[0]),
        icc_now=float(present[0]),
        change=float(present[0] - was[0]),
        change_low=icc.low,
        change_high=icc.high,
        icc_reweighted=NAN
        if effective < LEAST_EFFECTIVE
        else float(weighted_icc(weights, new.x, new.y, restandardise=again)[0]),
        icc_spread=_with_spread(old, float(np.var(new.x)), again),
        notes=noted(*_notes(lost, effective)),
    )


def _part(scope: Scope, rows: Flags) -> _Part:
    grid = scope.grid
    if scope.jury is None:
        rows = np.zeros_like(rows)
        pair_x = pair_y = np.full(len(rows), np.nan)
    else:
        pair = columns(grid, scope.jury, scope.asked.method)
        rows, pair_x, pair_y = rows & pair.both, pair.clinicians, pair.scorer
    points = mean_of_given(grid.composites[:, grid.of_kind("clinician")])
    named = scope.given.drop_duplicates("response_id").set_index("response_id")["benchmark"]
    kept = [name for name, own in zip(grid.responses, rows, strict=True) if own]
    _, clusters = np.unique(grid.clusters[rows], return_inverse=True)
    benchmarks = [str(name) for name in named.reindex(kept)]
    return _Part(pair_x[rows], pair_y[rows], points[rows], clusters.astype(np.int64), benchmarks)


def _shares(old: _Part, new: _Part) -> tuple[Share, ...]:
    out = []
    for name in sorted({*old.benchmarks, *new.benchmarks}):
        before, after = old.benchmarks.count(name), new.benchmarks.count(name)
        shares = before / len(old.benchmarks), after / len(new.benchmarks)
        out.append(Share(name, before, after, *shares))
    return tuple(out)


def _to_baseline(new: _Part, shares: tuple[Share, ...]) -> Array:
    """Return weights (1, n) under which now's benchmarks have the baseline's shares."""
    factor = {one.benchmark: one.baseline / one.now for one in shares if one.now}
    return np.array([[factor[name] for name in new.benchmarks]])


def _with_spread(old: _Part, variance: float, again: bool) -> float:
    """Return the baseline's ICC if the variance of the clinicians' column were another one."""
    own, slope = float(np.var(old.x)), NAN
    if own > 0:
        slope = float(np.mean((old.x - old.x.mean()) * (old.y - old.y.mean()))) / own
    error = float(np.var(old.y)) - slope**2 * own
    xy, yy = slope * variance, slope**2 * variance + max(error, 0.0)
    if again:
        below = np.sqrt(variance * yy)
        return 2 * xy / (xy + below) if below > 0 else NAN
    total = variance + yy + 2 * xy
    return 4 * xy / total if total > 0 else NAN


def _intervals(scope: Scope, old: _Part, new: _Part, again: bool) -> list[Interval]:
    """Return the intervals of the change of the ICC and the mean, and of the ratio of the sds."""
    if min(old.n_clusters, new.n_clusters) < LEAST_CLUSTERS or not scope.asked.reps:
        return [UNDEFINED] * 3
    drawn = []
    for part, seed in ((old, scope.asked.seed), (new, scope.asked.seed + 1)):
        counts = draw_counts(part.n_clusters, reps=scope.asked.reps, seed=seed, rows=len(part.x))
        drawn.append(np.concatenate([part.figures(one, again) for one in counts]))
    was, present = drawn
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = present[:, 2] / was[:, 2]
    change = present[:, :2] - was[:, :2]
    return [percentile_interval(one) for one in (change[:, 0], change[:, 1], ratio)]


def _notes(lost: list[str], effective: float) -> Iterator[Note]:
    if effective < LEAST_EFFECTIVE:
        yield note(MonitoringCode.FEW_EFFECTIVE, responses=effective, least=LEAST_EFFECTIVE)
    if lost:
        yield note(MonitoringCode.NOT_RATED_NOW, benchmarks=lost)

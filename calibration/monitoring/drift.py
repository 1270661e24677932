"""Why agreement has fallen: whether the data speak for the model, for the case mix, or neither."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.codes import MonitoringCode
from calibration.messages import words
from calibration.monitoring.fisher import fisher_z
from calibration.monitoring.rows import AnchorRow, CaseMix
from calibration.values import Note, Noted, note

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

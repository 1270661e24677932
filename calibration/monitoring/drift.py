"""Why agreement has fallen: whether the data speak for the model, for the case mix, or neither."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.monitoring.anchor import AnchorRow
from calibration.monitoring.case_mix import CaseMix
from calibration.monitoring.fisher import fisher_z

LEVEL = 0.05
MOVED = 0.1  # shares that differ by less are what any two months differ by
HALF = 0.5  # of the fall must be explained before anything is named as its reason
MODEL, MIX = "model", "case_mix"
NOT_FALLEN = "agreement has not measurably fallen since the baseline"
NOT_COMPARED = "no earlier period to compare the newest one with"


@dataclass(frozen=True)
class Verdict:
    """Which drift the data speak for.

    Attributes
    ----------
    drift : str
        "none" (agreement has not fallen), "not_compared" (with what?), "model", "case_mix", "model_and_case_mix",
        "neither", or "unknown" (fallen, no anchor, and the case mix does not explain it).
    anchored : whether any juror has an anchor
    said : sentences, in the order to be read
    """

    drift: str
    anchored: bool
    said: tuple[str, ...]


def verdict(anchor: Sequence[AnchorRow], mix: CaseMix | None, alarm: bool) -> Verdict:
    """Say what the data speak for where agreement has fallen.

    It has fallen where the CUSUM has raised an alarm, or the interval of the change from the
    baseline is all below 0. The model has changed where, on the anchor, the shift of a juror has
    p_holm below 0.05 or the jury's change in ICC has an interval all below 0. The case mix
    explains a fall where the shares of benchmarks moved by 0.1 or more and weighting them back,
    or a spread whose interval is all below that of the baseline, accounts for half of it, on
    Fisher's z.
    """
    moved, explained = _model(anchor), _mix(mix)
    anchored = any(row.n_responses for row in anchor)
    if not (alarm or (mix is not None and mix.change_high < 0)):
        compared = mix is not None and np.isfinite(mix.change_high)
        said = NOT_FALLEN if compared else NOT_COMPARED
        return Verdict("none" if compared else "not_compared", anchored, (said, *moved))
    drift = "_and_".join(([MODEL] if moved else []) + ([MIX] if explained else []))
    if not drift:
        drift = "neither" if anchored else "unknown"
    return Verdict(drift, anchored, (_summary(drift, anchored), *moved, *explained))


def _summary(drift: str, anchored: bool) -> str:
    known = {
        "model": "agreement has fallen, and the data speak for the model: on the same responses "
        "it has changed",
        "case_mix": "agreement has fallen, and the data speak for the case mix: other responses "
        "were rated",
        "model_and_case_mix": "agreement has fallen, and both have changed: the model and the "
        "case mix",
        "neither": "agreement has fallen, and neither the model nor the case mix shows why: the "
        "clinicians may have changed, or it is chance",
        "unknown": "agreement has fallen, and the case mix does not show why",
    }
    return known[drift] if anchored else f"{known[drift]}; {NO_ANCHOR}"


NO_ANCHOR = (
    "no anchor: whether the model has changed cannot be told; a jury run with more verdicts of "
    "each juror scores the same responses again"
)


def _model(anchor: Sequence[AnchorRow]) -> list[str]:
    """Return a sentence for each way in which the jurors have changed on their anchor."""
    said = [
        f"{row.scorer.removeprefix('juror:')} moved by {row.shift:+.2f} points "
        f"({row.low:+.2f} to {row.high:+.2f}) on {row.n_responses} responses scored again"
        for row in anchor
        if row.scorer != "jury" and row.p_holm < LEVEL
    ]
    return [
        *said,
        *(
            f"its ICC on {row.n_clinical} responses scored again went from {row.icc_first:z.2f} to "
            f"{row.icc_latest:z.2f}"
            for row in _whole(anchor)
            if row.change_high < 0
        ),
    ]


def _whole(anchor: Sequence[AnchorRow]) -> list[AnchorRow]:
    """Return the row of the jury: of its only juror where there is one."""
    return [row for row in anchor if row.scorer == "jury" or len(anchor) == 1]


def _mix(mix: CaseMix | None) -> list[str]:
    """Return a sentence for each way in which the case mix accounts for half of a fall."""
    if mix is None or not np.isfinite(mix.change):
        return []
    return [*_by_shares(mix), *_by_spread(mix)]


def _by_shares(mix: CaseMix) -> list[str]:
    if mix.moved < MOVED or not explains(mix, mix.icc_reweighted, mix.icc_now):
        return []
    return [
        f"{mix.moved:.0%} of the responses are of other benchmarks than in the baseline; weighted "
        f"to its shares the ICC would be {mix.icc_reweighted:z.2f} instead of {mix.icc_now:z.2f}"
    ]


def _by_spread(mix: CaseMix) -> list[str]:
    if not mix.sd_high < 1 or not explains(mix, mix.icc_baseline, mix.icc_spread):
        return []
    return [
        f"the clinicians' scores lie closer together: SD {mix.sd_now:.2f}, {mix.sd_baseline:.2f} in "
        f"the baseline; that alone takes its ICC of {mix.icc_baseline:z.2f} to {mix.icc_spread:z.2f}"
    ]


def explains(mix: CaseMix, high: float, low: float) -> bool:
    """Tell whether the fall from one ICC to another is half of the whole, on Fisher's z."""
    was, now, above, below = fisher_z(np.array([mix.icc_baseline, mix.icc_now, high, low]))
    return bool(was > now and above - below >= HALF * (was - now))

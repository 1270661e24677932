"""The jury's ICC with the clinicians, beside predictions made from it."""

from dataclasses import dataclass

from calibration.agreement import column_icc, columns, scorer_replicates, why_undefined
from calibration.bootstrap import LEAST_CLUSTERS, percentile_interval
from calibration.codes import NoteCode as Code
from calibration.f_interval import UNDEFINED
from calibration.scope import Scope
from calibration.values import NAN, Note, note


@dataclass(frozen=True)
class Agreement:
    """The jury's ICC with the clinicians and its 95 % interval, as in the agreement table.

    NaN where undefined, with the `reason`; `responses` and `instances` it rests on.
    """

    icc: float = NAN
    low: float = NAN
    high: float = NAN
    responses: int = 0
    instances: int = 0
    reason: Note | None = None


def agreement(scope: Scope) -> Agreement:
    """Return a scope's ICC of jury and clinicians, with the bootstrap interval over instances."""
    if scope.jury is None or not scope.grid.responses:
        return Agreement(reason=note(Code.NONE_OF_BOTH))
    pair = columns(scope.grid, scope.jury, scope.asked.method)
    both = pair.both
    x, y = pair.clinicians[both], pair.scorer[both]
    reason, instances = why_undefined(x, y), scope.grid.instances(both)
    ends = UNDEFINED
    if not reason and instances >= LEAST_CLUSTERS:
        statistic = scorer_replicates(scope.grid, scope.jury, (), scope.asked.method)
        ends = percentile_interval(scope.resample(statistic)[:, 0])
    icc = column_icc(x, y, scope.asked.method)
    return Agreement(icc, ends.low, ends.high, len(x), instances, reason)

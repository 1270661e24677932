"""Whether a jury was shown to agree with the clinicians at all: ask before it is used."""

import math
from dataclasses import dataclass

from calibration import notes
from calibration.agreement import column_icc, columns, scorer_replicates, why_undefined
from calibration.bootstrap import LEAST_CLUSTERS, percentile_interval
from calibration.f_interval import UNDEFINED
from calibration.scope import NAN, Scope


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
    reason: str = ""

    @property
    def shown(self) -> bool:
        """Tell whether the jury is shown to agree: above chance, on enough instances."""
        return self.low > 0 and self.instances >= notes.FEW_INSTANCES

    @property
    def warning(self) -> str:
        """Return what to be told of a jury that is not shown to agree, or ""."""
        if self.shown:
            return ""
        if not math.isfinite(self.low):
            found = self.reason.removeprefix("undefined: ") or "its ICC has no interval"
        elif self.low > 0:
            found = f"{notes.counted(self.instances, 'instance')}, {notes.FEW_INSTANCES} are needed"
        else:
            found = f"ICC(C,2) {self.icc:z.2f}, 95 % interval {self.low:z.2f} to {self.high:z.2f}"
        return f"NOT VALIDATED: the jury is not shown to agree with the clinicians ({found})"


def agreement(scope: Scope) -> Agreement:
    """Return a scope's ICC of jury and clinicians, with the bootstrap interval over instances."""
    if scope.jury is None or not scope.grid.responses:
        return Agreement(reason="undefined: no response has composites of both")
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

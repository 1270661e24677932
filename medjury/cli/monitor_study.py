"""What `medjury monitor` computes: the study's figures over time, for one jury."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine

from data.queries.attempts import juror_profiles
from data.queries.periods import juror_ratings
from data.queries.reports import reports
from medjury.cli.monitor_jurors import juror_ends
from medjury.cli.monitor_parts import (
    Wanted,
    dated_periods,
    mix_of,
    normal_of,
    remember_jury,
    scope_of,
)
from medjury.cli.monitor_reports import reported
from medjury.services.scores import all_jurors, scores_of

if TYPE_CHECKING:
    from calibration.monitoring.anchor import AnchorRow
    from calibration.monitoring.case_mix import CaseMix
    from calibration.monitoring.drift import Verdict
    from calibration.monitoring.periods import PeriodRow
    from calibration.monitoring.watch import Watched
    from calibration.scope import Scope


NOTHING = "nothing to compare: the newest period is the baseline"


@dataclass(frozen=True, eq=False)
class Monitored:
    """All that was found, for the screen, JSON and OpenMetrics."""

    wanted: Wanted
    jury: tuple[str, ...]
    scope: "Scope"
    periods: Sequence["PeriodRow"]
    watched: "Watched"
    fallen: bool
    judged: bool
    reason: str
    anchor: Sequence["AnchorRow"]
    mix: "CaseMix | None"
    verdict: "Verdict"
    reports: Sequence[Mapping[str, Any]]
    jurors: Sequence[Mapping[str, Any]]

    @property
    def simulated(self) -> list[str]:
        """Return who of the jury and the clinicians is no real rater."""
        return sorted(self.scope.simulated & {*self.jury, *self.scope.clinicians})

    def to_json(self) -> dict[str, Any]:
        """Return it as `monitor --json` writes it; what is undefined is None."""
        watched = self.watched
        body = {
            "benchmark": self.scope.name,
            "scorer": "jury",
            "jury": list(self.jury),
            "simulated": self.simulated,
            "method": self.wanted.method,
            "every": self.wanted.every,
            "since": self.wanted.since,
            "least": self.wanted.least,
            "threshold": self.wanted.min_icc,
            "fallen": self.fallen,
            "judged": self.judged,
            "reason": self.reason,
            "newest": watched.judged.period,
            "alarm": watched.alarm or None,
            "target": {
                "icc": watched.target_icc,
                "low": watched.target_low,
                "high": watched.target_high,
                "source": watched.source,
                "note": watched.reason,
            },
            "drift": asdict(self.verdict),
            "reports": list(self.reports),
            "periods": [asdict(one) for one in self.periods],
            "cusum": [asdict(one) for one in watched.rows],
            "anchor": [asdict(one) for one in self.anchor],
            "case_mix": asdict(self.mix) if self.mix else {"note": NOTHING},
            "jurors": list(self.jurors),
        }
        return {name: plain(value) for name, value in body.items()}


def plain(value: Any) -> Any:
    """Return a value as JSON takes it: days as ISO 8601, what is not finite as None."""
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, date):
        return value.isoformat()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def monitored(engine: Engine, wanted: Wanted, today: date) -> Monitored:
    """Compute everything, and note in the ledger that the jury was held against the clinicians.

    Raises
    ------
    BadInput
        If there is no jury, no clinician has rated, nothing was rated since the day asked for,
        benchmarks have different scales, or the report cannot be the baseline.
    """
    from threadpoolctl import threadpool_limits

    from calibration.monitoring.anchor import anchor_rows
    from calibration.monitoring.drift import verdict
    from calibration.monitoring.scored_again import anchors, without_later
    from calibration.monitoring.watch import fallen, watch

    everything = scores_of(engine)
    scores = everything.of(wanted.benchmark) if wanted.benchmark else everything
    jury = tuple(wanted.jurors or all_jurors(scores))
    normal = normal_of(engine, wanted, scores)
    with threadpool_limits(1):
        again = juror_ratings(engine)
        scope = scope_of(engine, without_later(scores, again), jury, wanted)
        rows, asking = dated_periods(engine, scope, again, wanted, today)
        watched = watch(rows, normal)
        anchor = anchor_rows(scope, jury, anchors(again, scores.rubrics))
        mix = mix_of(scope, asking, rows, watched)
    remember_jury(engine, scope, jury, wanted, everything.ratings)
    has, judged, reason = fallen(watched, wanted.min_icc)
    return Monitored(
        wanted=wanted,
        jury=jury,
        scope=scope,
        periods=rows,
        watched=watched,
        fallen=has,
        judged=judged,
        reason=reason,
        anchor=anchor,
        mix=mix,
        verdict=verdict(anchor, mix, bool(watched.alarm)),
        reports=reported(reports(engine), scope.name),
        jurors=juror_ends(jury, juror_profiles(engine, jury), wanted.panel, today),
    )

"""Agreement computed anew as clinicians rate, and the alarm where it has fallen."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime

from sqlalchemy import Engine

from annotate.watching.log import Log
from annotate.watching.settings import AgreementSettings, AlarmSettings
from calibration.decision import DecisionKind
from calibration.values import AnalysisOptions
from data.errors import BadInput, TooFew
from data.queries.watch import newest_clinician_rating
from data.schema import now
from data.store.watch import NewAlarm, raise_alarm
from medjury.services.monitoring import Judged, Monitored, MonitoringQuestion, monitor

UNOWNED = "nobody named"


@dataclass
class Agreement:
    """Agreement over time, as `analyse monitor` has it, and its alarms.

    Attributes
    ----------
    jurors : of the panel; None for all that have rated
    newest : what was found the last time
    """

    settings: AgreementSettings
    alarm: AlarmSettings
    jurors: tuple[str, ...] | None
    log: Log
    monotonic: Callable[[], float] = time.monotonic
    clock: Callable[[], datetime] = now
    newest: Monitored | None = None
    _known: tuple[int, date] | None = None
    _looked: float = field(default=-math.inf)

    def look(self, engine: Engine) -> bool:
        """Compute agreement anew where there is reason to; return whether an alarm was raised."""
        if self.monotonic() - self._looked < self.settings.check_minutes * 60:
            return False
        known = newest_clinician_rating(engine), self.clock().date()
        if known == self._known or not known[0]:
            return False
        try:
            self.newest = monitor(engine, self._question())
        except (BadInput, TooFew) as error:
            self.log.write("not_judged", why=type(error).__name__)
            self._known, self._looked = known, self.monotonic()
            return False
        self._known, self._looked = known, self.monotonic()
        judged = self.newest.judged
        row = judged.watched.judged
        self.log.write(
            "judged",
            decision=judged.decision.kind.value,
            period=row.period,
            icc=_known_number(row.icc),
            responses=row.n_responses,
            missing=row.n_missing,
        )
        if not judged.has_fallen:
            return False
        return self._raise(engine, judged)

    def _question(self) -> MonitoringQuestion:
        own = self.settings
        return MonitoringQuestion(
            today=self.clock().date(),
            options=AnalysisOptions(
                jurors=self.jurors, benchmark=own.benchmark, reps=own.reps, seed=0
            ),
            every=own.every,
            least=own.min_instances,
            since=own.since,
            floor=own.min_icc,
            false_alarms=own.false_alarms,
            baseline=own.baseline,
            baseline_report=own.baseline_report,
            target=own.target,
        )

    def _raise(self, engine: Engine, judged: Judged) -> bool:
        """Keep the alarm, unless there was one about the same benchmark, jury and target."""
        own = self.alarm
        new = NewAlarm(
            alarm_key(judged, self.settings.since),
            judged.benchmark,
            own.owner.strip() or UNOWNED,
            own.action,
            own.due_days,
            figures_of(judged),
        )
        raised = raise_alarm(engine, new)
        if raised:
            self.log.write("alarm", benchmark=judged.benchmark, period=new.figures["period"])
        return raised


def alarm_key(judged: Judged, since: date | None) -> str:
    """Return what an alarm is about: with another target, or since another day, it is another one."""
    parts = (judged.benchmark, "+".join(judged.study.jury), judged.watched.source)
    known = f"{judged.question.target}" if judged.watched.source == "given" else ""
    return " | ".join((*parts, known, f"{since or ''}"))


def figures_of(judged: Judged) -> dict[str, object]:
    """Return what an alarm rests on: numbers and the name of a period."""
    watched, fall = judged.watched, judged.watched.fall
    row = watched.alarm or watched.judged
    of_target = fall is not None and fall.of == "target"
    return {
        "period": row.period,
        "icc": _known_number(fall.icc if fall else row.icc),
        "low": _known_number(fall.low if fall else row.boot_low),
        "high": _known_number(fall.high if fall else row.boot_high),
        "below": "target" if of_target else "floor",
        "target": _known_number(watched.target_icc if of_target else judged.question.floor),
        "responses": row.n_responses,
        "instances": row.n_instances,
        "missing": row.n_missing,
        "decision": DecisionKind.FALLEN.value,
    }


def _known_number(value: float) -> float | None:
    return round(float(value), 6) if math.isfinite(value) else None

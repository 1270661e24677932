"""A jury's agreement with clinicians over time: whether it has fallen, and what speaks for why."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine

from calibration.decision import Decision, DecisionKind
from calibration.json_values import decision_json, json_value
from calibration.monitoring.rows import AnchorRow, CaseMix, PeriodRow
from calibration.notes import Note, Noted, note, noted, told
from calibration.values import COMBINED, AnalysisOptions
from data.database import one_moment
from data.errors import BadInput
from data.queries.frames import clinician_dates, juror_ratings
from data.queries.jury import juror_profiles
from data.queries.ledger import report, reports
from medjury.services.frozen_reports import ReportRow, jury_row, report_rows
from medjury.services.ledger import Looked
from medjury.services.panels import JurorEnd, juror_ends
from medjury.services.scores import all_jurors, scores_of, silent_jurors

if TYPE_CHECKING:
    import pandas as pd

    from calibration.monitoring.drift import Drift
    from calibration.monitoring.periods import PeriodLength, PeriodOptions
    from calibration.monitoring.watch import CusumResult, TargetOptions
    from calibration.scope import Scope
    from calibration.scores import Flags, Scores

FLOOR = 0.4
FALSE_ALARMS = 0.05  # a year
LEAST_INSTANCES = 20
WHOLE = "composite"  # where no criterion is named
WEEK = timedelta(days=7)
Tick = Callable[[float], None]
"""Told the share of the work done, from above 0 to 1."""


@dataclass(frozen=True, slots=True)
class MonitoringQuestion:
    """What is asked of agreement over time.

    Attributes
    ----------
    today : whose period is not over
    options : of the analysis; its min_shared and references are not used
    panel : a panel of the user's, which may know when its jurors' models end
    every, least : the calendar period, and the instances it needs
    since : periods before this day are left out
    floor : the least ICC that is wanted
    false_alarms : share of years of watching in which an unchanged jury may raise an alarm
    baseline, baseline_report, target : what is normal: the first so many periods, a frozen
        report, or a known ICC; at most one is given, and none is the first 3 periods
    """

    today: date
    options: AnalysisOptions = field(default_factory=AnalysisOptions)
    panel: str | None = None
    every: "PeriodLength" = "month"
    least: int = LEAST_INSTANCES
    since: date | None = None
    floor: float = FLOOR
    false_alarms: float = FALSE_ALARMS
    baseline: int | None = None
    baseline_report: int | None = None
    target: float | None = None


@dataclass(frozen=True, eq=False)
class MonitoredStudy:
    """What the figures are computed from: scores, the jury's readings, and what is normal."""

    jury: tuple[str, ...]
    scores: "Scores"
    ratings: "pd.DataFrame"
    again: "pd.DataFrame"
    scope: "Scope"
    normal: "TargetOptions"

    @property
    def simulated(self) -> tuple[str, ...]:
        """Return who of the jury and the clinicians is no real rater."""
        return tuple(sorted(self.scope.simulated & {*self.jury, *self.scope.clinicians}))

    @cached_property
    def anchors(self) -> "pd.DataFrame":
        """Return what jurors scored again later, of the benchmarks that are looked at."""
        from calibration.monitoring.anchor import anchors, scored_benchmarks

        ratings = anchors(self.again, self.scores.rubrics)
        return ratings[ratings["benchmark"].isin(scored_benchmarks(self.scope))]


@dataclass(frozen=True, eq=False)
class Judged:
    """Whether agreement has fallen, and the periods that say so.

    Attributes
    ----------
    mix : the judged period against the baseline or the first; None where it is that one
    remarks : on all periods together
    unnoted : why the ledger was not told of the jury, or ""
    """

    question: MonitoringQuestion
    study: MonitoredStudy
    periods: tuple[PeriodRow, ...]
    watched: "CusumResult"
    mix: CaseMix | None
    decision: Decision
    remarks: tuple[Note, ...]
    unnoted: str = ""

    @property
    def benchmark(self) -> str:
        """Return the benchmark, or "combined"."""
        return self.study.scope.name

    @property
    def is_judged(self) -> bool:
        """Whether there is a figure to judge by: an alarm, or the ICC of the judged period."""
        return self.watched.alarm is not None or math.isfinite(self.watched.judged.icc)

    @property
    def why(self) -> Note:
        """Return the reason that decides, whoever is simulated."""
        reasons = self.decision.reasons
        return next(remark for remark in reasons if remark.code != "simulated")

    @property
    def title(self) -> str:
        """Return what its table of periods is called."""
        question = self.question
        return f"{self.benchmark}: agreement by {question.every}, method {question.options.method}"

    @property
    def has_fallen(self) -> bool:
        """Whether the decision says that agreement has fallen."""
        return self.decision.kind is DecisionKind.FALLEN


@dataclass(frozen=True, eq=False)
class Causes:
    """What a change may come from, and when the jurors' models end."""

    anchor: tuple[AnchorRow, ...]
    mix: CaseMix | None
    drift: "Drift"
    jurors: tuple[JurorEnd, ...]


@dataclass(frozen=True, eq=False)
class Monitored:
    """All that `medjury analyse monitor` finds."""

    judged: Judged
    causes: Causes
    reports: tuple[ReportRow, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as `analyse monitor --json` has it; what is undefined is None."""
        judged, causes, watched = self.judged, self.causes, self.judged.watched
        question = judged.question
        return {
            "decision": decision_json(judged.decision),
            "benchmark": judged.benchmark,
            "scorer": "jury",
            "jury": list(judged.study.jury),
            "simulated": list(judged.study.simulated),
            "method": question.options.method,
            "every": question.every,
            "since": json_value(question.since),
            "least": question.least,
            "threshold": question.floor,
            "false_alarms": question.false_alarms,
            "limit": json_value(watched.limit),
            "detectable": json_value(watched.detectable),
            "fallen": judged.has_fallen,
            "judged": judged.is_judged,
            "reason": str(judged.why),
            "newest": watched.judged.period,
            "alarm": watched.alarm.period if watched.alarm else None,
            "fall": _fall(watched),
            "target": _target(watched),
            "drift": _drift(causes.drift),
            "reports": [report.to_json() for report in self.reports],
            "periods": json_value(judged.periods),
            "cusum": json_value(watched.rows),
            "anchor": json_value(causes.anchor),
            "case_mix": json_value(
                causes.mix
                or Noted(
                    notes=(
                        note("mix_of_one", "nothing to compare: the newest period is the baseline"),
                    )
                )
            ),
            "jurors": json_value(causes.jurors),
        }


def _fall(watched: "CusumResult") -> dict[str, Any] | None:
    """Return what the alarm rests on, its periods by their labels."""
    fall = watched.fall
    if fall is None:
        return None
    figures: dict[str, Any] = json_value(fall)
    return figures | {"periods": [row.period for row in fall.periods]}


def _target(watched: "CusumResult") -> dict[str, Any]:
    ends = {name: json_value(getattr(watched, f"target_{name}")) for name in ("icc", "low", "high")}
    none = noted(watched.reason)
    return ends | {"source": watched.source, "note": told(none), "notes": json_value(none)}


def _drift(drift: "Drift") -> dict[str, Any]:
    figures = {"drift": drift.drift, "anchored": drift.anchored}
    return figures | {"said": list(drift.said), "notes": json_value(drift.notes)}


def monitor(engine: Engine, question: MonitoringQuestion, tick: Tick | None = None) -> Monitored:
    """Compute everything; see `judge`."""
    judged = judge(engine, question, tick)
    frozen = report_rows(reports(engine), judged.benchmark)
    return Monitored(judged, causes(engine, judged), tuple(frozen))


def judge(engine: Engine, question: MonitoringQuestion, tick: Tick | None = None) -> Judged:
    """Judge agreement by its periods, and note in the ledger that the jury was looked at.

    Raises
    ------
    BadInput
        If there is no jury, no clinician has rated, nothing was rated since the day asked for,
        benchmarks have different scales, or the report cannot be the baseline.
    """
    from threadpoolctl import threadpool_limits

    from calibration.monitoring.decision import decide
    from calibration.monitoring.watch import AlarmRule, watch

    study = _study(engine, question)
    asking = _asking(engine, study, question)
    with threadpool_limits(1):
        rows = _periods(study, asking, tick)
        rule = AlarmRule(question.false_alarms, question.floor, question.every)
        watched = watch(rows, study.normal, rule)
        mix = _mix(study.scope, asking, rows, watched)
    anchored = bool(study.anchors["rater"].isin(list(study.jury)).any())
    decision = decide(watched, mix, anchored=anchored, simulated=study.simulated)
    return Judged(
        question=question,
        study=study,
        periods=tuple(rows),
        watched=watched,
        mix=mix,
        decision=decision,
        remarks=tuple(_remarks(rows)),
        unnoted=_remember(engine, study, question.options),
    )


def causes(engine: Engine, judged: Judged) -> Causes:
    """Return what a change may come from, of agreement that has been judged."""
    from threadpoolctl import threadpool_limits

    from calibration.monitoring.anchor import anchor_rows
    from calibration.monitoring.drift import drift_of

    study, question = judged.study, judged.question
    with threadpool_limits(1):
        anchor = anchor_rows(study.scope, study.jury, study.anchors)
    profiles = juror_profiles(engine, study.jury)
    ends = juror_ends(study.jury, profiles, question.panel, question.today)
    drift = drift_of(anchor, judged.mix, judged.watched.is_below_target)
    return Causes(tuple(anchor), judged.mix, drift, tuple(ends))


def _study(engine: Engine, question: MonitoringQuestion) -> MonitoredStudy:
    from calibration.monitoring.anchor import without_later

    options = question.options
    with one_moment(engine):
        everything, again = scores_of(engine, of_clinicians=True), juror_ratings(engine)
    scores = everything.of(options.benchmark) if options.benchmark else everything
    jury = tuple(options.jurors or all_jurors(scores))
    normal = _normal(engine, question, scores)
    scope = _scope(engine, without_later(scores, again), jury, options)
    return MonitoredStudy(jury, scores, everything.ratings, again, scope, normal)


def _scope(
    engine: Engine, scores: "Scores", jury: Sequence[str], options: AnalysisOptions
) -> "Scope":
    """Return the one benchmark, or all combined, with the jury that is watched."""
    from calibration.scope import scopes, why_undefined_scope

    if not jury:
        raise BadInput(
            "no juror has rated anything in this study: run a jury (`medjury jury run PANEL`; in the app: "
            "Jury lab) or import scores made elsewhere (`medjury rate ratings FILE`; Study, Import)"
        )
    seated = scores
    if options.jurors:
        seated = replace(scores, silent=frozenset(silent_jurors(engine, scores)))
    *_, scope = scopes(seated, replace(options, jurors=tuple(jury)))
    if why := why_undefined_scope(scores, scope):
        hint = "; --benchmark NAME watches one by itself" if len(scores.benchmarks) > 1 else ""
        raise BadInput(f"{scope.name} is {why!s}{hint}")
    return scope


def _normal(engine: Engine, question: MonitoringQuestion, scores: "Scores") -> "TargetOptions":
    """Return what the periods are compared with."""
    from calibration.monitoring.cusum import error_of_interval
    from calibration.monitoring.watch import BASELINE, TargetOptions

    if question.target is not None:
        return TargetOptions(None, question.target, None, "given")
    if question.baseline_report is None:
        return TargetOptions(question.baseline or BASELINE)
    frozen, options = report(engine, question.baseline_report), question.options
    name = COMBINED if len(scores.benchmarks) > 1 else scores.benchmarks[0]
    row, method = jury_row(frozen.body, name), frozen.body.get("method")
    icc = row["icc"]
    criterion = frozen.body.get("options", {}).get("criterion")
    if icc is None:
        raise BadInput(f"--baseline-report {frozen.id}: has no ICC of a jury on {name}")
    if (method, criterion) != (options.method, options.criterion):
        raise BadInput(
            f"--baseline-report {frozen.id}: is of method {method}, criterion {criterion or WHOLE}; "
            f"asked for are {options.method}, {options.criterion or WHOLE}: they cannot be compared"
        )
    error = error_of_interval(row["boot_low"], row["boot_high"], row["n_responses"])
    return TargetOptions(None, icc, frozen.at.date(), f"report {frozen.id}", error)


def _periods(study: MonitoredStudy, asking: "PeriodOptions", tick: Tick | None) -> list[PeriodRow]:
    """Return the jury's agreement by period."""
    from calibration.monitoring.periods import period_rows, periods_of

    scope = study.scope
    many = len(periods_of(scope, asking))
    if not many or scope.jury is None:
        raise BadInput(f"--since {asking.since}: clinicians have rated no response since then")
    resampled = [0]

    def ticked(resamples: int) -> None:
        resampled[0] += resamples
        if tick is not None:
            tick(resampled[0] / (many * scope.options.reps))

    return period_rows(replace(scope, tick=ticked), scope.jury, asking)


def _asking(engine: Engine, study: MonitoredStudy, question: MonitoringQuestion) -> "PeriodOptions":
    """Return what is asked of the calendar."""
    from calibration.monitoring.periods import DayRange, PeriodOptions

    again = study.again[study.again["rater"].isin(study.scope.jurors)]
    own = again.groupby("response_id")["at"].agg(["min", "max"])
    rated = clinician_dates(engine).items()
    days = zip(own.index, own["min"].dt.date, own["max"].dt.date, strict=True)
    return PeriodOptions(
        rated={
            name: DayRange(days_rated.first.date(), days_rated.last.date())
            for name, days_rated in rated
        },
        today=question.today,
        every=question.every,
        least=question.least,
        since=question.since,
        scored={str(name): DayRange(first, last) for name, first, last in days},
    )


def _mix(
    scope: "Scope",
    asking: "PeriodOptions",
    rows: Sequence[PeriodRow],
    watched: "CusumResult",
) -> CaseMix | None:
    """Compare the periods of the fall, or the judged one, with the baseline's (else the first).

    While the judged period is itself one of the baseline, with those of it before that.
    """
    from calibration.monitoring.drift import case_mix
    from calibration.monitoring.periods import periods_of

    begun = watched.fell[0].start
    before = [row for row in watched.baseline or rows[:1] if row.end < begun]
    if not before:
        return None
    own = {period.label: period.rows for period in periods_of(scope, asking)}
    earlier, now = (
        (_spanned(part, asking.every), _together(part, own)) for part in (before, watched.fell)
    )
    return case_mix(scope, earlier, now)


def _spanned(rows: Sequence[PeriodRow], every: "PeriodLength") -> str:
    """Return the first and the last calendar period of some rows as one label."""
    from calibration.monitoring.periods import label_of, start_of

    ends = (rows[0].start, start_of(rows[-1].end, every))
    first, last = (label_of(day, every) for day in ends)
    return first if first == last else f"{first} to {last}"


def _together(rows: Sequence[PeriodRow], own: Mapping[str, "Flags"]) -> "Flags":
    flags = own[rows[0].period].copy()
    for row in rows[1:]:
        flags |= own[row.period]
    return flags


def _remarks(rows: Sequence[PeriodRow]) -> Iterator[Note]:
    """Yield what holds of all periods: scored at one time, the jury cannot have changed."""
    days = [day for row in rows for day in (row.jury_first, row.jury_last) if day]
    if len(rows) > 1 and days and max(days) - min(days) < WEEK:
        yield note(
            "scored_at_once",
            (
                "the jury scored all periods within a week, by {day}: a fall between them is no "
                "change of the model"
            ),
            day=max(days),
        )
    if len(rows) == 1:
        yield note(
            "one_period",
            (
                "all responses are of one period ({period}): ratings imported without rated_at carry "
                "the day of the import"
            ),
            period=rows[0].period,
        )


def _remember(engine: Engine, study: MonitoredStudy, options: AnalysisOptions) -> str:
    """Note the jury in the ledger, with its ICC over all periods; return why not, or ""."""
    from calibration.agreement import column_icc, columns
    from calibration.scope import AgreementRow

    scope, jury = study.scope, study.jury
    if scope.jury is None:
        return ""
    pair = columns(scope.grid, scope.jury, options.method)
    x, y = pair.clinicians[pair.both], pair.scorer[pair.both]
    icc = column_icc(x, y, options.method)
    row = AgreementRow(scope.name, "jury", icc=icc, n_responses=len(x))
    needed = options.min_jurors or len(jury)
    looked = Looked(jury, needed, options.criterion or "", options.method, "")
    return looked.remember(engine, [row], [], study.ratings)

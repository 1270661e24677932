"""A jury's agreement with clinicians over time: whether it has fallen, and what speaks for why."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import Engine
from threadpoolctl import threadpool_limits

from calibration.columns import column_icc, columns
from calibration.decision import Decision, DecisionKind
from calibration.drift import (
    AnchorRow,
    CaseMix,
    anchor_rows,
    anchors,
    case_mix,
    drift_of,
    without_later,
)
from calibration.json_values import decision_json, json_value
from calibration.monitoring import (
    FREQUENCY,
    PeriodRow,
    Watched,
    decide,
    error_of_interval,
    period_label,
    period_rows,
    watch,
)
from calibration.notes import Note, note, noted, told
from calibration.scope import AgreementRow, Scope, scopes, why_undefined_scope
from calibration.scores import Scores
from calibration.values import COMBINED, MonitoringOptions
from data.database import one_moment
from data.errors import BadInput
from data.queries.frames import clinician_dates, juror_ratings
from data.queries.jury import juror_profiles
from data.queries.ledger import report, reports
from medjury.services.frozen_reports import ReportRow, jury_row, report_rows
from medjury.services.ledger import Looked
from medjury.services.panels import JurorEnd, juror_ends
from medjury.services.scores import all_jurors, scores_of, silent_jurors

WEEK = timedelta(days=7)
Tick = Callable[[float], None]
"""Told the share of the work done, from above 0 to 1."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Monitored(Watched):
    """All that `medjury analyse monitor` finds: whether agreement has fallen, and what speaks for why.

    `simulated` are those of the jury and the clinicians who are no real raters; `mix` is the judged
    period against the baseline or the first, None where it is that one; `drift` as in
    `calibration.drift`; `remarks` are on all periods together; `unnoted` says why the ledger was
    not told of the jury.
    """

    benchmark: str
    jury: tuple[str, ...]
    simulated: tuple[str, ...]
    decision: Decision
    mix: CaseMix | None
    anchor: tuple[AnchorRow, ...]
    drift: str
    remarks: tuple[Note, ...]
    jurors: tuple[JurorEnd, ...]
    reports: tuple[ReportRow, ...]
    unnoted: str = ""

    @property
    def has_fallen(self) -> bool:
        """Whether the decision says that agreement has fallen."""
        return self.decision.kind is DecisionKind.FALLEN

    @property
    def title(self) -> str:
        """Return what its table of periods is called."""
        options = self.options
        return f"{self.benchmark}: agreement by {options.every}, method {options.analysis.method}"

    def to_json(self) -> dict[str, Any]:
        """Return it as `analyse monitor --json` has it; what is undefined is None."""
        options, ends = self.options, ("icc", "low", "high")
        target = {name: getattr(self, f"target_{name}") for name in ends}
        reason = {"note": told(noted(self.reason)), "notes": noted(self.reason)}
        fall = {name: getattr(self, name) for name in (*ends, "most")} | {"of": self.below}
        alone = ("benchmark", "jury", "simulated", "periods", "anchor", "jurors")
        figures: dict[str, Any] = json_value(
            {name: getattr(self, name) for name in alone}
            | {
                "scorer": "jury",
                "method": options.analysis.method,
                "every": options.every,
                "since": options.since,
                "least": options.least,
                "threshold": options.floor,
                "false_alarms": options.false_alarms,
                "fallen": self.has_fallen,
                "judged": math.isfinite(self.icc),
                "newest": self.judged.period,
                "alarm": self.alarm.period if self.alarm else None,
                "fall": fall | {"periods": [row.period for row in self.fell]}
                if self.below
                else None,
                "target": target | {"source": options.source} | reason,
                "drift": {"drift": self.drift, "anchored": bool(self.anchor)},
                "case_mix": self.mix,
            }
        )
        reports = [row.to_json() for row in self.reports]
        return figures | {"decision": decision_json(self.decision), "reports": reports}


def monitor(
    engine: Engine, options: MonitoringOptions, tick: Tick = lambda share: None
) -> Monitored:
    """Judge agreement by its periods, and note in the ledger that the jury was looked at.

    Raises
    ------
    BadInput
        If there is no jury, no clinician has rated, nothing was rated since the day asked for,
        benchmarks have different scales, or the report cannot be the baseline.
    """
    analysis = options.analysis
    with one_moment(engine):
        everything, again = scores_of(engine), juror_ratings(engine)
    scores = everything.of(analysis.benchmark) if analysis.benchmark else everything
    jurors = tuple(analysis.jurors or all_jurors(scores))
    if options.baseline_report is not None:
        options = _with_report(engine, options, scores)
    scope = _scope(engine, without_later(scores, again), jurors, options)
    if (jury := scope.jury) is None:
        raise BadInput(f"{scope.name} has no jury")
    rated = {name: one.last.date() for name, one in clinician_dates(engine).items()}
    with threadpool_limits(1):
        rows = period_rows(scope, jury, rated, options, tick)
        if not rows:
            raise BadInput(f"--since {options.since}: clinicians have rated no response since then")
        watched = watch(rows, options)
        mix = _mix(scope, watched, [rated[name] for name in scope.grid.responses])
        own = anchors(again, scores.rubrics)
        seen = own["benchmark"].isin(scope.composites["benchmark"].unique())
        anchor = anchor_rows(scope, jury, jurors, own[seen])
    simulated = tuple(sorted(scope.simulated & {*jurors, *scope.clinicians}))
    return Monitored(
        **vars(watched),
        benchmark=scope.name,
        jury=jurors,
        simulated=simulated,
        decision=decide(watched, mix, simulated),
        mix=mix,
        anchor=tuple(anchor),
        drift=drift_of(anchor, mix, watched.below == "target"),
        remarks=tuple(_remarks(watched.periods, again[again["rater"].isin(scope.jurors)], scope)),
        jurors=tuple(
            juror_ends(jurors, juror_profiles(engine, jurors), options.panel, options.today)
        ),
        reports=tuple(report_rows(reports(engine), scope.name)),
        unnoted=_remember(engine, scope, everything.ratings, jurors, options),
    )


def _with_report(engine: Engine, options: MonitoringOptions, scores: Scores) -> MonitoringOptions:
    """Return the options with a frozen report's ICC as the target."""
    frozen, analysis = report(engine, options.baseline_report or 0), options.analysis
    name = COMBINED if len(scores.benchmarks) > 1 else scores.benchmarks[0]
    row = jury_row(frozen.body, name)
    was = frozen.body.get("method"), frozen.body.get("options", {}).get("criterion")
    if row["icc"] is None:
        raise BadInput(f"--baseline-report {frozen.id}: has no ICC of a jury on {name}")
    if was != (analysis.method, analysis.criterion):
        raise BadInput(
            f"--baseline-report {frozen.id}: is of method {was[0]}, criterion "
            f"{was[1] or 'composite'}; asked for are {analysis.method}, "
            f"{analysis.criterion or 'composite'}: they cannot be compared"
        )
    error = error_of_interval(row["low"], row["high"], row["n_responses"])
    return replace(options, target=row["icc"], target_se=error, target_since=frozen.at.date())


def _scope(
    engine: Engine, scores: Scores, jurors: Sequence[str], options: MonitoringOptions
) -> Scope:
    """Return the one benchmark, or all combined, with the jury that is watched."""
    if not jurors:
        raise BadInput(
            "no juror has rated anything in this study: run a jury (`medjury jury run PANEL`; in the app: "
            "Jury lab) or import scores made elsewhere (`medjury rate ratings FILE`; Study, Import)"
        )
    seated = scores
    if options.analysis.jurors:
        seated = replace(scores, silent=frozenset(silent_jurors(engine, scores)))
    *_, scope = scopes(seated, replace(options.analysis, jurors=tuple(jurors)))
    if why := why_undefined_scope(scores, scope):
        hint = "; --benchmark NAME watches one by itself" if len(scores.benchmarks) > 1 else ""
        raise BadInput(f"{scope.name} is {why!s}{hint}")
    return scope


def _mix(scope: Scope, watched: Watched, days: Sequence[date]) -> CaseMix | None:
    """Compare the periods of the fall, or the judged one, with the baseline's (else the first).

    While the judged period is itself one of the baseline, with those of it before that.
    """
    options, fell = watched.options, watched.fell
    periods = watched.baseline or watched.periods[:1]
    before = [row for row in periods if row.end < fell[0].start]
    if not before or scope.jury is None:
        return None

    def part(rows: Sequence[PeriodRow]) -> tuple[str, Any]:
        days_of = rows[0].start, rows[-1].end
        ends = [pd.Period(f"{day}", freq=FREQUENCY[options.every]) for day in days_of]
        flags = [
            any(row.start <= day <= row.end for row in rows) and day >= (options.since or date.min)
            for day in days
        ]
        return period_label(*ends), np.array(flags)

    return case_mix(scope, scope.jury, part(before), part(fell))


def _remarks(rows: Sequence[PeriodRow], readings: pd.DataFrame, scope: Scope) -> Iterator[Note]:
    """Yield what holds of all periods: scored at one time, the jury cannot have changed."""
    days = readings.loc[readings["response_id"].isin(scope.grid.responses), "at"]
    if len(rows) > 1 and len(days) and days.max() - days.min() < WEEK:
        yield note(
            "scored_at_once",
            "the jury scored all periods within a week, by {day}: a fall between them is no change "
            "of the model",
            day=days.max().date(),
        )
    if len(rows) == 1:
        yield note(
            "one_period",
            "all responses are of one period ({period}): ratings imported without rated_at carry "
            "the day of the import",
            period=rows[0].period,
        )


def _remember(
    engine: Engine,
    scope: Scope,
    ratings: pd.DataFrame,
    jurors: Sequence[str],
    options: MonitoringOptions,
) -> str:
    """Note the jury in the ledger, with its ICC over all periods; return why not, or ""."""
    analysis = options.analysis
    if scope.jury is None:
        return ""
    pair = columns(scope.grid, scope.jury, analysis.method)
    x, y = pair.clinicians[pair.both], pair.scorer[pair.both]
    row = AgreementRow(scope.name, "jury", column_icc(x, y, analysis.method), n_responses=len(x))
    needed = analysis.min_jurors or len(jurors)
    looked = Looked(jurors, needed, analysis.criterion or "", analysis.method, "")
    return looked.remember(engine, [row], [], ratings)

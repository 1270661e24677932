"""A jury's agreement with clinicians over time: whether it has fallen, and what speaks for why."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import Engine
from threadpoolctl import threadpool_limits

from calibration import monitoring
from calibration.columns import PanelColumns, column_icc, columns
from calibration.decision import Decision, DecisionKind
from calibration.intervals import fisher_z
from calibration.json_values import decision_json, json_value
from calibration.notes import Note, note, noted, told
from calibration.scope import AgreementRow, Scope, scopes, why_undefined_scope
from calibration.scores import Scores
from calibration.values import COMBINED, NORMAL_95, MonitoringOptions
from data.database import one_moment
from data.errors import BadInput
from data.study.calls import juror_profiles
from data.study.frames import clinician_dates, juror_ratings
from data.study.ledger import report, reports
from medjury.services.frozen_reports import ReportRow, jury_row, report_rows
from medjury.services.ledger import Looked
from medjury.services.panels import JurorEnd, juror_ends
from medjury.services.scores import scores_of, silent_jurors


@dataclass(frozen=True, kw_only=True, eq=False)
class Monitored(monitoring.Watched):
    """All that `medjury analyse monitor` finds: whether agreement has fallen, and what speaks for why.

    `simulated` are those of the jury and the clinicians who are no real raters; `mix` is the judged
    period against the baseline or the first, None where it is that one; `drift` as in
    `calibration.monitoring`; `remarks` are on all periods together; `unnoted` says why the ledger was
    not told of the jury.
    """

    benchmark: str
    jury: tuple[str, ...]
    simulated: tuple[str, ...]
    decision: Decision
    mix: monitoring.CaseMix | None
    anchor: tuple[monitoring.AnchorRow, ...]
    drift: str
    remarks: tuple[Note, ...]
    jurors: tuple[JurorEnd, ...]
    reports: tuple[ReportRow, ...]
    unnoted: str

    def to_json(self) -> dict[str, Any]:
        """Return it as `analyse monitor --json` has it; what is undefined is None."""
        options, reason = self.options, noted(self.reason)
        names = ("benchmark", "jury", "simulated", "periods", "anchor", "jurors")
        settings = ("every", "since", "least", "false_alarms")
        target = {"icc": self.target_icc, "source": options.source}
        fall = {name: getattr(self, name) for name in ("icc", "low", "high", "most")}
        fall |= {"of": self.below, "periods": [row.period for row in self.fell]}
        figures = {
            **{name: getattr(self, name) for name in names},
            **{name: getattr(options, name) for name in settings},
            "method": options.analysis.method,
            "threshold": options.floor,
            "fallen": self.decision.kind is DecisionKind.FALLEN,
            "judged": math.isfinite(self.icc),
            "newest": self.judged.period,
            "alarm": self.fell[-1].period if self.below else None,
            "fall": fall if self.below else None,
            "target": target | {"note": told(reason), "notes": reason},
            "drift": {"drift": self.drift},
            "case_mix": self.mix,
        }
        reports = [row.to_json() for row in self.reports]
        return dict(json_value(figures)) | {
            "decision": decision_json(self.decision),
            "reports": reports,
        }


def monitor(engine: Engine, options: MonitoringOptions) -> Monitored:
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
    jurors = tuple(analysis.jurors or scores.all_jurors())
    if options.baseline_report is not None:
        options = _with_report(engine, options, scores)
    scope = _scope(engine, monitoring.without_later(scores, again), jurors, options)
    if (jury := scope.jury) is None:
        raise BadInput(f"{scope.name} has no jury")
    rated = {name: one.date() for name, one in clinician_dates(engine).items()}
    with threadpool_limits(1):
        rows = monitoring.period_rows(scope, jury, rated, options)
        if not rows:
            raise BadInput(f"--since {options.since}: clinicians have rated no response since then")
        watched = monitoring.watch(rows, options)
        mix = _mix(scope, jury, watched, [rated[name] for name in scope.grid.responses])
        own = monitoring.anchors(again, scores.rubrics)
        seen = own["benchmark"].isin(scope.composites["benchmark"].unique())
        anchor = monitoring.anchor_rows(scope, jury, jurors, own[seen])
    simulated = tuple(sorted(scope.simulated & {*jurors, *scope.clinicians}))
    pair = columns(scope.grid, jury, analysis.method)
    icc = column_icc(pair.clinicians[pair.both], pair.scorer[pair.both], analysis.method)
    row = AgreementRow(scope.name, "jury", icc, n_responses=int(pair.both.sum()))
    needed, criterion = analysis.min_jurors or len(jurors), analysis.criterion or ""
    looked = Looked(jurors, needed, criterion, analysis.method, "")
    return Monitored(
        **vars(watched),
        benchmark=scope.name,
        jury=jurors,
        simulated=simulated,
        decision=monitoring.decide(watched, mix, simulated),
        mix=mix,
        anchor=tuple(anchor),
        drift=monitoring.drift_of(anchor, mix, watched.below == "target"),
        remarks=_remarks(watched, again, scope),
        jurors=tuple(
            juror_ends(jurors, juror_profiles(engine, jurors), options.panel, options.today)
        ),
        reports=tuple(report_rows(reports(engine), scope.name)),
        unnoted=looked.remember(engine, [row], [], everything.ratings),
    )


def _with_report(engine: Engine, options: MonitoringOptions, scores: Scores) -> MonitoringOptions:
    """Return the options with a frozen report's ICC as the target.

    The standard error of its Fisher's z is half the width of its 95 % interval on z, divided by
    1.96, and not less than that of independent responses, which stands for an undefined interval.
    """
    frozen, analysis = report(engine, options.baseline_report or 0), options.analysis
    name = COMBINED if len(scores.benchmarks) > 1 else scores.benchmarks[0]
    row = jury_row(frozen.body, name)
    was = frozen.body.get("method"), frozen.body.get("options", {}).get("criterion")
    if row["icc"] is None:
        raise BadInput(f"--baseline-report {frozen.id}: has no ICC of a jury on {name}")
    if was != (analysis.method, analysis.criterion):
        raise BadInput(
            f"--baseline-report {frozen.id} is of {was[0]}, {was[1] or 'composite'}, and cannot be "
            f"compared with {analysis.method}, {analysis.criterion or 'composite'}"
        )
    low, high = fisher_z(np.array([row["low"], row["high"]], dtype=np.float64))
    error = float(
        np.fmax((high - low) / 2 / NORMAL_95, monitoring.independent_se(row["n_responses"]))
    )
    return replace(options, target=row["icc"], target_se=error, target_since=frozen.at.date())


def _scope(
    engine: Engine, scores: Scores, jurors: Sequence[str], options: MonitoringOptions
) -> Scope:
    """Return the one benchmark, or all combined, with the jury that is watched."""
    if not jurors:
        raise BadInput("no juror has rated anything: run a jury or import scores made elsewhere")
    silent = silent_jurors(engine, scores) if options.analysis.jurors else scores.silent
    seated = replace(scores, silent=frozenset(silent))
    *_, scope = scopes(seated, replace(options.analysis, jurors=tuple(jurors)))
    if why := why_undefined_scope(scores, scope):
        hint = "; --benchmark NAME watches one by itself" if len(scores.benchmarks) > 1 else ""
        raise BadInput(f"{scope.name} is {why!s}{hint}")
    return scope


def _mix(
    scope: Scope, jury: PanelColumns, watched: monitoring.Watched, days: Sequence[date]
) -> monitoring.CaseMix | None:
    """Compare the periods of the fall, or the judged one, with those before of the baseline or the first."""
    fell, since = watched.fell, watched.options.since or date.min
    periods = watched.baseline or watched.periods[:1]
    before = [row for row in periods if row.end < fell[0].start]
    parts = []
    for rows in (before, fell):
        labels = [label for row in rows for label in row.period.split(" to ")]
        inside = [day >= since and any(row.start <= day <= row.end for row in rows) for day in days]
        parts.append((" to ".join(dict.fromkeys([*labels[:1], *labels[-1:]])), np.array(inside)))
    return monitoring.case_mix(scope, jury, *parts) if before else None


def _remarks(watched: monitoring.Watched, again: pd.DataFrame, scope: Scope) -> tuple[Note, ...]:
    """Return what holds of all periods: scored at one time, the jury cannot have changed."""
    rows, of = watched.periods, again["response_id"].isin(scope.grid.responses)
    days = again.loc[of & again["rater"].isin(scope.jurors), "at"]
    if len(rows) == 1:
        words = "all responses are of {period}: ratings imported without rated_at are of that day"
        return (note("one_period", words, period=rows[0].period),)
    if days.empty or days.max() - days.min() >= monitoring.MIN_GAP:
        return ()
    words = "the jury scored all within a week, by {day}: a fall is no change of the model"
    return (note("scored_at_once", words, day=days.max().date()),)

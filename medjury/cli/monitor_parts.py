"""The steps of `medjury monitor`: whom to watch, in which periods, against what."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Literal

from sqlalchemy import Engine

from data.errors import BadInput
from data.queries.periods import clinician_dates
from data.queries.reports import report
from medjury.cli.monitor_reports import jury_row
from medjury.cli.output import progress
from medjury.services.ledger import Looked
from medjury.services.scores import silent_jurors

if TYPE_CHECKING:
    import pandas as pd

    from calibration.monitoring.case_mix import CaseMix
    from calibration.monitoring.periods import Asking, PeriodRow
    from calibration.monitoring.watch import Normal, Watched
    from calibration.scope import Scope
    from calibration.scores import Flags, Scores


WHOLE = "composite"  # where no criterion is named


@dataclass(frozen=True, slots=True)
class Wanted:
    """What `monitor` is asked for, as its options say; of the last three at most one."""

    jurors: list[str] | None = None
    panel: str | None = None
    benchmark: str | None = None
    criterion: str | None = None
    method: Literal["paper", "published"] = "paper"
    min_jurors: int | None = None
    every: Literal["week", "month", "quarter"] = "month"
    since: date | None = None
    least: int = 20
    min_icc: float = 0.4
    reps: int = 2000
    seed: int = 0
    baseline: int | None = None
    baseline_report: int | None = None
    target: float | None = None


def scope_of(engine: Engine, scores: "Scores", jury: Sequence[str], wanted: Wanted) -> "Scope":
    """Return the one benchmark, or all combined, with the jury that is watched."""
    from calibration.scope import Asked
    from calibration.scopes import Sitting, scopes, why_undefined_scope

    if not jury:
        raise BadInput(
            "no juror has rated anything in this study: `medjury jury run PANEL` asks a jury, "
            "`medjury ratings FILE` brings in scores made elsewhere"
        )
    seated = scores
    if wanted.jurors:
        seated = replace(scores, silent=frozenset(silent_jurors(engine, scores)))
    asked = Asked(wanted.method, wanted.criterion, wanted.reps, wanted.seed)
    *_, scope = scopes(seated, Sitting(jury, wanted.min_jurors), asked)
    if why := why_undefined_scope(scores, scope):
        hint = "; --benchmark NAME watches one by itself" if len(scores.benchmarks) > 1 else ""
        raise BadInput(f"{scope.name} is {why}{hint}")
    return scope


def dated_periods(
    engine: Engine, scope: "Scope", again: "pd.DataFrame", wanted: Wanted, today: date
) -> tuple[list["PeriodRow"], "Asking"]:
    """Return the jury's agreement by period, and what was asked of the calendar."""
    from calibration.monitoring.periods import Asking, Days, period_rows, periods_of

    own = again[again["rater"].isin(scope.jurors)].groupby("response_id")["at"].agg(["min", "max"])
    asking = Asking(
        rated={
            name: Days(one.first.date(), one.last.date())
            for name, one in clinician_dates(engine).items()
        },
        today=today,
        every=wanted.every,
        least=wanted.least,
        since=wanted.since,
        scored={
            str(name): Days(first, last)
            for name, first, last in zip(
                own.index, own["min"].dt.date, own["max"].dt.date, strict=True
            )
        },
    )
    many = len(periods_of(scope, asking))
    if not many or scope.jury is None:
        raise BadInput(f"--since {wanted.since}: clinicians have rated no response since then")
    with progress("resampling", float(many * wanted.reps)) as at:
        done = [0]

        def tick(resamples: int) -> None:
            done[0] += resamples
            at(float(done[0]))

        return period_rows(replace(scope, tick=tick), scope.jury, asking), asking


def normal_of(engine: Engine, wanted: Wanted, scores: "Scores") -> "Normal":
    """Return what the periods are compared with, as the options say."""
    from calibration.monitoring.watch import BASELINE, Normal
    from calibration.scores import COMBINED

    if wanted.target is not None:
        return Normal(None, wanted.target, None, "given")
    if wanted.baseline_report is None:
        return Normal(wanted.baseline or BASELINE)
    one = report(engine, wanted.baseline_report)
    name = COMBINED if len(scores.benchmarks) > 1 else scores.benchmarks[0]
    icc, method = jury_row(one.body, name)["icc"], one.body.get("method")
    criterion = one.body.get("options", {}).get("criterion")
    if icc is None:
        raise BadInput(f"--baseline-report {one.id}: has no ICC of a jury on {name}")
    if (method, criterion) != (wanted.method, wanted.criterion):
        raise BadInput(
            f"--baseline-report {one.id}: is of method {method}, criterion {criterion or WHOLE}; "
            f"asked for are {wanted.method}, {wanted.criterion or WHOLE}: they cannot be compared"
        )
    return Normal(None, icc, one.at.date(), f"report {one.id}")


def mix_of(
    scope: "Scope", asking: "Asking", rows: Sequence["PeriodRow"], watched: "Watched"
) -> "CaseMix | None":
    """Compare the periods of the fall, or the judged one, with the baseline's (else the first)."""
    from calibration.monitoring.case_mix import case_mix
    from calibration.monitoring.periods import periods_of

    before = [one.period for one in watched.baseline or rows[:1]]
    now = [one.period for one in watched.fell]
    if set(now) & set(before):
        return None
    own = {one.label: one.rows for one in periods_of(scope, asking)}
    then, present = (_together([own[label] for label in labels]) for labels in (before, now))
    return case_mix(scope, (spanned(before), then), (spanned(now), present))


def spanned(labels: Sequence[str]) -> str:
    """Return the first and the last of some periods as one label."""
    first, last = labels[0].split(" to ")[0], labels[-1].split(" to ")[-1]
    return first if first == last else f"{first} to {last}"


def _together(rows: Sequence["Flags"]) -> "Flags":
    found = rows[0].copy()
    for one in rows[1:]:
        found |= one
    return found


def remember_jury(
    engine: Engine,
    scope: "Scope",
    jury: Sequence[str],
    wanted: Wanted,
    ratings: "pd.DataFrame",
) -> None:
    """Note the jury in the ledger, with its ICC over all periods."""
    from calibration.agreement import column_icc, columns

    if scope.jury is None:
        return
    pair = columns(scope.grid, scope.jury, wanted.method)
    x, y = pair.clinicians[pair.both], pair.scorer[pair.both]
    icc = column_icc(x, y, wanted.method)
    row = {
        "benchmark": scope.name,
        "scorer": "jury",
        "icc": icc if math.isfinite(icc) else None,
        "n_responses": len(x),
    }
    looked = Looked(jury, wanted.min_jurors or len(jury), wanted.criterion or "", wanted.method, "")
    looked.remember(engine, [row], [], ratings)

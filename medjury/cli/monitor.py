"""`medjury monitor`: a jury's agreement with clinicians over time; exit 1 when it has fallen."""

import math
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from medjury.cli.monitor_metrics import openmetrics, write_openmetrics
from medjury.cli.monitor_parts import Wanted
from medjury.cli.monitor_study import monitored
from medjury.cli.monitor_words import print_monitored
from medjury.cli.options import Db, Json, Seed, finite, named_jurors, study_of
from medjury.cli.places import STANDARD_OUTPUT, write_json, writes_to

FALLEN = 1
Method = Literal["paper", "published"]
Every = Literal["week", "month", "quarter"]
Metrics = Annotated[
    Path | None,
    typer.Option(
        "--openmetrics",
        metavar="FILE",
        help="For a scraper; - is standard output.",
        callback=writes_to,
    ),
]


def monitor(
    context: typer.Context,
    min_icc: Annotated[
        float, typer.Option(help="Below this agreement has fallen.", callback=finite)
    ] = 0.4,
    every: Annotated[Every, typer.Option(help="Calendar period.")] = "month",
    since: Annotated[
        str | None, typer.Option(metavar="DATE", help="Show and watch only from this day on.")
    ] = None,
    least: Annotated[int, typer.Option(min=3, help="Instances a period needs.")] = 20,
    baseline: Annotated[
        int | None, typer.Option(min=1, help="First periods that make the target; 3.")
    ] = None,
    baseline_report: Annotated[
        int | None, typer.Option(metavar="ID", help="A frozen report is the target.")
    ] = None,
    target: Annotated[
        float | None, typer.Option(metavar="ICC", help="A known target.", callback=finite)
    ] = None,
    panel: Annotated[str | None, typer.Option(metavar="PANEL", help="Only its jurors.")] = None,
    jurors: Annotated[str | None, typer.Option(metavar="a,b,c", help="Only these jurors.")] = None,
    method: Annotated[Method, typer.Option()] = "paper",
    benchmark: Annotated[str | None, typer.Option(help="Only this one, not all of them.")] = None,
    criterion: Annotated[str | None, typer.Option(help="One criterion, not the composite.")] = None,
    min_jurors: Annotated[
        int | None, typer.Option(min=1, help="Jurors a response needs; by default all.")
    ] = None,
    reps: Annotated[int, typer.Option(min=1, help="Bootstrap replicates.")] = 2000,
    seed: Seed = 0,
    metrics_to: Metrics = None,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Follow how far the jury agrees with clinicians; exit 1 when it has fallen."""
    _check(min_icc, target, (baseline, baseline_report, target))
    wanted = Wanted(
        jurors=named_jurors(panel, jurors),
        panel=panel,
        benchmark=benchmark,
        criterion=criterion,
        method=method,
        min_jurors=min_jurors,
        every=every,
        since=_day(since),
        least=least,
        min_icc=min_icc,
        reps=reps,
        seed=seed,
        baseline=baseline,
        baseline_report=baseline_report,
        target=target,
    )
    found = monitored(study_of(context, db), wanted, datetime.now(UTC).date())
    taken = STANDARD_OUTPUT if metrics_to == STANDARD_OUTPUT else json_to
    print_monitored(found, taken)
    if metrics_to is not None:
        write_openmetrics(openmetrics(found), metrics_to)
    write_json(found.to_json(), json_to)
    if found.fallen or not found.judged:
        raise typer.Exit(FALLEN)


def _check(min_icc: float, target: float | None, targets: tuple[float | None, ...]) -> None:
    """Refuse numbers that no ICC can be, and two targets at once."""
    for name, value in (("--min-icc", min_icc), ("--target", target)):
        if value is not None and not (math.isfinite(value) and value <= 1):
            raise typer.BadParameter(f"{value} is no ICC: at most 1", param_hint=name)
    if target == 1:
        raise typer.BadParameter("1 leaves no room to fall below", param_hint="--target")
    if sum(one is not None for one in targets) > 1:
        raise typer.BadParameter("give one of --baseline, --baseline-report and --target")


def _day(since: str | None) -> date | None:
    if since is None:
        return None
    try:
        return date.fromisoformat(since)
    except ValueError as error:
        raise typer.BadParameter(
            f"{since!r} is no day; write it as 2026-03-01", param_hint="--since"
        ) from error

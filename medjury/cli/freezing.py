"""`medjury calibrate --freeze`: keep a calibration as it is, to monitor against later."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from sqlalchemy import Engine

from calibration.values import AnalysisOptions
from medjury.services.frozen_reports import FreezeQuestion, keep_report

if TYPE_CHECKING:
    import pandas as pd

    from medjury.cli.agreement import Asked

Freeze = Annotated[
    bool, typer.Option("--freeze", help="Keep this calibration in the study, for `monitor`.")
]
Name = Annotated[str, typer.Option("--name", help="With --freeze: what to call it.")]


def named(frozen: bool, name: str) -> str | None:
    """Return the name of the report that is wanted, None where none is; refuse a name for none."""
    if name and not frozen:
        raise typer.BadParameter("belongs to --freeze", param_hint="--name")
    return name if frozen else None


def freeze_calibration(
    engine: Engine,
    asked: "Asked",
    body: Mapping[str, Any],
    jury: Sequence[str],
    ratings: "pd.DataFrame",
) -> Iterator[str]:
    """Freeze a calibration as a report where that is asked for; yield a line that says so.

    `asked.frozen` is what the user calls the report, None where none is wanted; the others are as
    in `keep_report`.
    """
    if asked.frozen is None:
        return
    options = AnalysisOptions(
        benchmark=asked.benchmark,
        criterion=asked.criterion,
        references="sound" if asked.references == "sound" else "all",
        min_shared=asked.min_shared,
        min_jurors=asked.min_jurors,
    )
    number = keep_report(engine, FreezeQuestion(options, asked.frozen), body, jury, ratings)
    called = f" ({asked.frozen})" if asked.frozen else ""
    yield f"frozen as report {number}{called}: `medjury monitor` shows it and what comes after it"

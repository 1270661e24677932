"""`medjury calibrate --freeze`: keep a calibration as it is, to monitor against later."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from sqlalchemy import Engine

from medjury.services.frozen_reports import keep_report

if TYPE_CHECKING:
    from medjury.services.calibrate import Calibration

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
    engine: Engine, found: "Calibration", called: str | None, body: Mapping[str, Any]
) -> Iterator[str]:
    """Freeze a calibration as a report where that is asked for; yield a line that says so.

    `called` is what the user calls the report, None where none is wanted; the others are as in
    `keep_report`.
    """
    if called is None:
        return
    number = keep_report(engine, found, called, body)
    named = f" ({called})" if called else ""
    yield f"frozen as report {number}{named}: `medjury monitor` shows it and what comes after it"

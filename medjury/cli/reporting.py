"""`medjury analyse calibrate --html F --markdown F --csv F --latex F --freeze`: reports, and keeping one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from sqlalchemy import Engine

from medjury.cli.output import say
from medjury.cli.places import write_files, writes_to
from medjury.services.frozen_reports import keep_report

if TYPE_CHECKING:
    from medjury.services.calibrate import Calibration

Html = Annotated[
    Path | None,
    typer.Option(
        "--html", metavar="FILE", help="Write a report to read and print.", callback=writes_to
    ),
]
Markdown = Annotated[
    Path | None,
    typer.Option(
        "--markdown", metavar="FILE", help="Write the table as Markdown.", callback=writes_to
    ),
]
Csv = Annotated[
    Path | None,
    typer.Option("--csv", metavar="FILE", help="Write the table as CSV.", callback=writes_to),
]
Latex = Annotated[
    Path | None,
    typer.Option("--latex", metavar="FILE", help="Write the table for LaTeX.", callback=writes_to),
]
Freeze = Annotated[
    bool, typer.Option("--freeze", help="Keep this calibration in the study, for `monitor`.")
]
Name = Annotated[str, typer.Option("--name", help="With --freeze: what to call it.")]


@dataclass(frozen=True, slots=True)
class Places:
    """Where reports go; None where one is not asked for."""

    html: Path | None = None
    markdown: Path | None = None
    csv: Path | None = None
    latex: Path | None = None

    def named(self) -> Iterator[tuple[str, Path]]:
        """Yield the option and the file of every report that is asked for."""
        for one in fields(self):
            if (to := getattr(self, one.name)) is not None:
                yield f"--{one.name}", to


NOWHERE = Places()


def write_reports(
    engine: "Engine", places: Places, found: "Calibration", json_to: Path | None
) -> None:
    """Write every report that is asked for, all or none."""
    write_files({name: (to, _text(engine, name, found)) for name, to in places.named()})
    for name, to in places.named():
        say(f"{name.removeprefix('--')} report: {to}", json_to)


def _text(engine: "Engine", name: str, found: "Calibration") -> str:
    from medjury.services.reports import report_text

    return report_text(engine, found, name.removeprefix("--"))


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
    yield f"frozen as report {number}{named}: `medjury analyse monitor` shows it and what comes after it"

"""`medjury calibrate --html F --markdown F --csv F --latex F`: a report for readers elsewhere."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medjury.cli.output import say
from medjury.cli.places import write_files, writes_to

if TYPE_CHECKING:
    from sqlalchemy import Engine

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

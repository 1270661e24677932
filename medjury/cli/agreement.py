"""`medjury analyse calibrate`: the agreement of jury, jurors and metrics with clinicians, and its reports."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from medjury.cli.files import write_files, writes_to
from medjury.cli.output import say
from medjury.services.frozen_reports import keep_report

if TYPE_CHECKING:
    from medjury.services.calibrate import Calibration
import sys
from typing import TYPE_CHECKING

from calibration.values import AnalysisOptions
from medjury.cli.files import write_json
from medjury.cli.options import (
    METHODS,
    BenchmarkOption,
    Criterion,
    Db,
    Json,
    Jurors,
    MinJurors,
    NoReps,
    NoSeed,
    PanelOption,
    either,
    named_jurors,
    study_of,
)
from medjury.cli.options import Method as MethodOption
from medjury.cli.output import progress
from medjury.services.scores import panel_families

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from medjury.cli.agreement_show import Shown
    from medjury.services.calibrate import CalibrationQuestion

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
    bool,
    typer.Option("--freeze", help="Keep this calibration in the study, for `analyse monitor`."),
]
Name = Annotated[str, typer.Option("--name", help="With --freeze: what to call it.")]
REFERENCES: tuple[Literal["all"], Literal["sound"]] = ("all", "sound")
READINGS: tuple[Literal["independent"], Literal["adjudicated"]] = ("independent", "adjudicated")


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """Where reports go; None where one is not asked for."""

    html: Path | None = None
    markdown: Path | None = None
    csv: Path | None = None
    latex: Path | None = None

    def named(self) -> Iterator[tuple[str, Path]]:
        """Yield the option and the file of every report that is asked for."""
        for field in fields(self):
            if (to := getattr(self, field.name)) is not None:
                yield f"--{field.name}", to


NOWHERE = ReportFiles()


def write_reports(
    engine: "Engine", places: ReportFiles, calibration: "Calibration", json_to: Path | None
) -> None:
    """Write every report that is asked for, all or none."""
    write_files({name: (to, _text(engine, name, calibration)) for name, to in places.named()})
    for name, to in places.named():
        say(f"{name.removeprefix('--')} report: {to}", json_to)


def _text(engine: "Engine", name: str, calibration: "Calibration") -> str:
    from medjury.services.reports import report_text

    return report_text(engine, calibration, name.removeprefix("--"))


def named(frozen: bool, name: str) -> str | None:
    """Return the name of the report that is wanted, None where none is; refuse a name for none."""
    if name and not frozen:
        raise typer.BadParameter("belongs to --freeze", param_hint="--name")
    return name if frozen else None


def freeze_calibration(
    engine: "Engine", calibration: "Calibration", name: str | None, body: Mapping[str, Any]
) -> Iterator[str]:
    """Freeze a calibration as a report where that is asked for; yield a line that says so.

    `name` is what the user calls the report, None where none is wanted; the others are as in
    `keep_report`.
    """
    if name is None:
        return
    number = keep_report(engine, calibration, name, body)
    named = f" ({name})" if name else ""
    yield f"frozen as report {number}{named}: `medjury analyse monitor` shows it and what comes after it"


def calibrate(
    context: typer.Context,
    panel: PanelOption = None,
    jurors: Jurors = None,
    method: MethodOption = "paper",
    benchmark: BenchmarkOption = None,
    criterion: Criterion = None,
    reps: NoReps = 2000,
    seed: NoSeed = 0,
    min_shared: Annotated[
        int, typer.Option(min=2, help="Smallest number of responses two clinicians must share.")
    ] = 2,
    min_jurors: MinJurors = None,
    group: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Analyse this subgrouping only; repeatable."),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Leave out a clinician's ratings; repeatable."),
    ] = None,
    references: Annotated[
        str,
        typer.Option(
            "--references",
            metavar="[all|sound]",
            help="Instances to use: all, or those whose reference the jurors found sound.",
        ),
    ] = "all",
    reading: Annotated[
        str,
        typer.Option(
            metavar="[independent|adjudicated]",
            help="Clinicians' own ratings, or those after adjudication.",
        ),
    ] = "independent",
    more: Annotated[
        bool,
        typer.Option(
            "--details", help="Print more tables: differences, influence, each juror, and others."
        ),
    ] = False,
    by_benchmark: Annotated[
        bool, typer.Option("--by-benchmark", help="Print a table for each benchmark as well.")
    ] = False,
    notes: Annotated[
        bool, typer.Option("--notes", help="Print all notes below the tables.")
    ] = False,
    pairs: Annotated[
        bool,
        typer.Option(
            "--pairs", help="Add to --json each criterion and the mean scores of each response."
        ),
    ] = False,
    html: Html = None,
    markdown: Markdown = None,
    csv: Csv = None,
    latex: Latex = None,
    freeze: Freeze = False,
    name: Name = "",
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Compare the jury, its jurors and metrics with the clinicians: the agreement table."""
    options = AnalysisOptions(
        jurors=named_jurors(panel, jurors),
        min_jurors=min_jurors,
        benchmark=benchmark,
        criterion=criterion,
        method=either(method, METHODS, "--method"),
        references=either(references, REFERENCES, "--references"),
        min_shared=min_shared,
        reps=reps,
        seed=seed,
        groups=tuple(group or ()),
        without=tuple(dict.fromkeys(without or ())),
        reading=either(reading, READINGS, "--reading"),
    )
    if freeze and reading == "adjudicated":
        raise typer.BadParameter("freezes independent readings alone", param_hint="--freeze")
    from medjury.cli.agreement_show import Shown
    from medjury.services.calibrate import CalibrationQuestion

    engine = study_of(context, db)
    page = html is not None or pairs
    further = notes or more or freeze or any((html, markdown, csv, latex, json_to))
    families = tuple(panel_families(panel).items())
    print_agreement(
        engine,
        CalibrationQuestion(
            options,
            details=more,
            page=page,
            further=further,
            reference=freeze or json_to is not None,
            families=families,
            check=True,
        ),
        Output(
            Shown(by_benchmark, notes, more),
            json_to,
            ReportFiles(html, markdown, csv, latex),
            named(freeze, name),
            pairs,
        ),
    )


@dataclass(frozen=True, slots=True)
class Output:
    """Where a calibration goes, and how much of it.

    `frozen` is what the user calls the report that is kept, None where none is; `on` is where
    Dask computes.
    """

    shown: "Shown"
    json_to: Path | None = None
    places: ReportFiles = NOWHERE
    frozen: str | None = None
    pairs: bool = False


def print_agreement(engine: "Engine", question: "CalibrationQuestion", output: Output) -> None:
    """Compute the agreement table, print it, and write it as JSON and reports where asked."""
    from medjury.cli.agreement_show import (
        show_calibration,
        show_details,
        show_subgroups,
        show_unsafe,
    )
    from medjury.services.calibrate import calibrate

    to = output.json_to
    with progress("resampling", 1.0) as at:
        calibration = calibrate(engine, question, tick=at)
    for warning in calibration.warnings:
        print(f"medjury: {warning}", file=sys.stderr)
    show_calibration(calibration, output.shown, to)
    show_unsafe(calibration, to, details=question.details)
    show_subgroups(calibration, to, details=question.details)
    for line in calibration.told:
        say(line, to)
    if question.details:
        show_details(calibration, to)
    write_reports(engine, output.places, calibration, to)
    if to is None and output.frozen is None:
        return
    from medjury.services.reports import as_json

    body = as_json(engine, calibration, pairs=output.pairs)
    write_json(body, to)
    for line in freeze_calibration(engine, calibration, output.frozen, body):
        say(line, to)

"""`medjury calibrate --html F --markdown F --csv F --latex F`: a report for readers elsewhere."""

import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from sqlalchemy import Engine

from data.errors import NoStudy
from data.queries.ledger import tried
from data.schema import now
from data.store.ledger import remember
from medjury.cli.output import say
from medjury.cli.places import write_files, writes_to
from medjury.cli.report_study import study_of_report

if TYPE_CHECKING:
    from calibration.report.content import Study
    from calibration.report.evidence import Paired
    from calibration.scope import Asked as Options
    from calibration.scopes import Sitting
    from calibration.scores import Scores
    from medjury.services.ledger import Looked

Row = Mapping[str, Any]
SOFTWARE = ("medjury", "numpy", "pandas", "scipy", "statsmodels")
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


@dataclass(frozen=True, eq=False)
class Beyond:
    """What the page shows beyond the table and its details: each criterion, each pair of means."""

    criteria: Sequence[Row] = ()
    paired: "Mapping[str, Paired]" = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Told:
    """What a report is made from, as the command has it.

    `body` is what `--json` holds, `found` the details, `lines` what every report must say.
    """

    looked: "Looked"
    options: "Options"
    scores: "Scores"
    body: Mapping[str, Any]
    found: Mapping[str, Sequence[Row]]
    beyond: Beyond
    silent: Sequence[str]
    lines: Sequence[str]


def look_beyond(
    engine: Engine, looked: "Looked", scores: "Scores", sitting: "Sitting", options: "Options"
) -> Beyond:
    """Return what only the page shows; every criterion looked at is noted in the ledger."""
    from calibration.report.evidence import criterion_rows, paired_means

    rows = [asdict(row) for row in criterion_rows(scores, sitting, options)]
    if rows:
        _remember(engine, looked, rows)
    return Beyond(rows, {one.benchmark: one for one in paired_means(scores, sitting, options)})


def write_reports(engine: Engine, places: Places, told: Told, json_to: Path | None) -> None:
    """Write every report that is asked for, all or none."""
    write_files({name: (to, _text(engine, name, told)) for name, to in places.named()})
    for name, to in places.named():
        say(f"{name.removeprefix('--')} report: {to}", json_to)


def _remember(engine: Engine, looked: "Looked", rows: Sequence[Row]) -> None:
    """Note the jury on every criterion in the ledger, with the ratings' hash the table has left."""
    hashes = {one.key: one.fingerprint for one in tried(engine)}
    entries = [
        replace(
            replace(looked, criterion=row["criterion"]).entry(row["benchmark"]),
            fingerprint=hashes.get(looked.entry(row["benchmark"]).key, ""),
            n_responses=row["n_responses"],
            icc=row["icc"],
        )
        for row in rows
    ]
    try:
        remember(engine, entries)
    except NoStudy as error:
        print(f"medjury: not noted in the ledger of juries tried: {error}", file=sys.stderr)


def _text(engine: Engine, name: str, told: Told) -> str:
    from calibration.report import table_formats

    rows, options = told.body["rows"], told.options
    how = {"method": options.method, "reps": options.reps, "seed": options.seed}
    what = f", criterion {options.criterion}" if options.criterion else ""
    words = (
        f"Method {options.method}{what}; bootstrap over instances, {options.reps} resamples, "
        f"seed {options.seed}"
    )
    if name == "--csv":
        return table_formats.table_csv(rows, how)
    if name == "--markdown":
        return table_formats.markdown(rows, words)
    return table_formats.latex(rows, words) if name == "--latex" else _page(engine, told)


def facts_of(engine: Engine, told: Told) -> "Study":
    """Return the facts that every page owes its reader."""
    study = study_of_report(engine, told.looked, told.options, told.scores)
    return replace(
        study,
        made=f"{now():%Y-%m-%d %H:%M} UTC",
        silent=tuple(told.silent),
        told=tuple(told.lines),
        versions={"Python": platform.python_version()} | {one: version(one) for one in SOFTWARE},
    )


def _page(engine: Engine, told: Told) -> str:
    from calibration.report.content import Content
    from calibration.report.page import page

    facts, beyond = facts_of(engine, told), told.beyond
    return page(Content(told.body["rows"], told.found, beyond.criteria, beyond.paired, facts))

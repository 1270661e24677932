"""`medjury share`: the study as files, a validated rubric for another tool, a reporting guideline filled in."""

from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Engine

from calibration.values import RESAMPLES
from data.errors import BadFile, BadInput
from data.files import refuse_full
from data.guidelines import GUIDELINES, guideline
from data.record import HEAD_ENDING
from data.rubric import Rubric, read_rubric
from data.study.calls import juror_profiles
from data.study.export import write_folder
from data.study.package import write_package
from data.study.settings import unblind as lift_blind
from data.study.standing import benchmarks
from data.study.verify import present_head
from jury.exports.bundle import write_folder as write_export
from jury.panel import Panel, read_panel
from jury.panel import shipped as shipped_panels
from medjury.cli.files import write_files, writes_to
from medjury.cli.options import NoReps, PanelOption, Reason, Study, Who, rubric_named
from medjury.cli.output import counted, emit, hint, progress, say, warn
from medjury.cli.record import write_head
from medjury.services.redcap import open_readings, write_redcap
from medjury.services.rubric_export import (
    EXPORT_FORMATS,
    RubricExport,
    exported_rubric,
    refuse_other,
    tools,
)


def export(
    study: Study,
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="FOLDER", help="Folder for the CSV files; new or empty."),
    ] = None,
    package: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.zip", help="Write the study as one file, which `study import` reads."
        ),
    ] = None,
    redcap: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write forms and records for rating in REDCap."),
    ] = None,
    unblind: Annotated[
        bool, typer.Option("--unblind", help="Include the authors of responses; recorded.")
    ] = False,
    authors_only: Annotated[
        bool,
        typer.Option("--authors-only", help="Write the authors of responses only; recorded."),
    ] = False,
    reason: Reason = "",
    who: Who = "coordinator",
) -> None:
    """Write the study as CSV with a data dictionary; authors only on request.

    Example:
    medjury share export study_files
    """
    authors = _authors(unblind, authors_only, reason)
    if not any([folder, package]) and (redcap is None or authors != "without"):
        raise BadInput("export what? give a FOLDER, --package or --redcap")
    engine = study.open()
    _check_package(package)
    if redcap is not None:
        unrated = open_readings(engine)
        _make(redcap)
        emit(*write_redcap(engine, redcap, unrated))
    if folder is not None:
        _make(folder)
    who_wrote = [] if authors == "without" else lift_blind(engine, who, reason)
    written = {} if folder is None else write_folder(engine, folder, authors, who_wrote)
    emit(*(f"{name}: {counted(rows, 'row')}" for name, rows in written.items()))
    packed = 0 if package is None else _pack(engine, package, authors, who_wrote)
    places = {"folder": folder, "package": package, "redcap": redcap}
    named = {name: str(to) if to is not None else None for name, to in places.items()}
    study.write({"authors": authors, **named, "rows": written, "package_rows": packed})


def _authors(unblinded: bool, only: bool, reason: str) -> str:
    """Return "with", "without" or "only", as the options say together."""
    if unblinded and only:
        raise BadInput("--unblind and --authors-only: give one of them")
    lifts = unblinded or only
    if lifts != bool(reason.strip()):
        named = "--authors-only" if only else "--unblind"
        raise BadInput(f"{named} needs a --reason, which stays in the record, and only it does")
    return "only" if only else "with" if unblinded else "without"


def _pack(engine: Engine, path: Path, authors: str, who_wrote: list[tuple[str, str]]) -> int:
    """Write the package and its head; return the number of rows."""
    rows = sum(write_package(engine, path, authors, who_wrote).values())
    head = path.with_suffix(HEAD_ENDING)
    if write_head(head, present_head(engine)):
        say(f"{head}: the head of the record; sign it, and send it by another way")
    into = "an empty study"
    if authors == "only":
        into = "the study it belongs to, where that came without authors"
    named = {"without": "no author named", "with": "authors named", "only": "only authors"}
    say(
        f"{path}: {counted(rows, 'row')}, {named[authors]}; `medjury study import` reads it into {into}"
    )
    return rows


def _check_package(package: Path | None) -> None:
    """Refuse a place that a package cannot be written to, before any work is done."""
    if package is None:
        return
    if package.suffix.lower() != ".zip" or not package.parent.is_dir():
        raise BadFile(f"--package {package}: not a .zip in a folder that exists")
    for path in (package, package.with_suffix(HEAD_ENDING)):
        if path.exists():
            raise BadFile(f"--package {package}: {path.name} is there already; name another file")


def _make(folder: Path) -> None:
    """Make the folder, or refuse one that holds something."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise BadFile(f"{folder}: holds files already; name a new folder")
    except OSError as error:
        raise BadFile(f"{folder}: {error.strerror}") from error


def rubric(
    study: Study,
    name: Annotated[str, typer.Argument(metavar="NAME|FOLDER", help="A rubric of the study.")],
    to: Annotated[
        str,
        typer.Option("--to", metavar=f"[{'|'.join(EXPORT_FORMATS)}]", help="Tool to write for."),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder to write; new or empty.")],
    panel: PanelOption = None,
    reps: Annotated[int, typer.Option(min=1, max=100_000, hidden=True)] = RESAMPLES,
) -> None:
    """Write a rubric, its jury and its validation for the tool that runs evaluations.

    Example:
    medjury share rubric generic --to medjury --out bundle --panel simulated
    """
    if to not in tools():
        raise typer.BadParameter(f"{to!r} is none of {', '.join(tools())}", param_hint="--to")
    engine = study.open()
    chosen = _rubric_of(engine, name)
    jury = read_panel(panel) if panel else _own_panel(engine)
    refuse_other(jury, chosen)
    refuse_full(out, f"--out {out}")
    with progress("resampling") as at:
        exported = exported_rubric(engine, RubricExport(chosen.to_json(), jury, to, reps), at)
    warn(exported.unnoted)
    write_export(out, exported.files)
    files = sorted(exported.files)
    say(f"{chosen.name} for {to}: {', '.join(files)} in {out}")
    say("VALIDATED" if exported.validated else "NOT VALIDATED")
    emit(*(f"- {line}" for line in (*exported.reasons, *exported.caveats)))
    body = {"rubric": chosen.name, "to": to, "out": str(out), "files": files}
    reasons = {"reasons": list(exported.reasons), "caveats": list(exported.caveats)}
    study.write(body | {"validated": exported.validated} | reasons)


def _own_panel(engine: Engine) -> Panel:
    """Return the shipped panel whose jurors, as they are now, have all rated in the study."""
    for panel in map(read_panel, sorted(shipped_panels(), key=lambda name: name == "simulated")):
        profiles = juror_profiles(engine, [juror.name for juror in panel.juror])
        if all(profiles.get(juror.name) == juror.profile() for juror in panel.juror):
            return panel
    raise BadInput(
        "whose jury is to be exported? No panel that ships with medjury has rated in this study: "
        "give --panel PANEL"
    )


def _rubric_of(engine: Engine, name: str) -> Rubric:
    """Return the rubric that the study's benchmarks use by that name, else a shipped or own one.

    Raises
    ------
    BadInput
        If benchmarks use several rubrics of that name.
    """
    used = {
        benchmark.rubric.sha256: benchmark.rubric
        for benchmark in benchmarks(engine)
        if benchmark.rubric.name == name
    }
    if len(used) > 1:
        raise BadInput(f"rubric {name}: the study uses several of that name: give a folder")
    return next(iter(used.values()), None) or rubric_named(engine, name) or read_rubric(name)


def dossier(
    study: Study,
    to: Annotated[str, typer.Option("--to", metavar="|".join(GUIDELINES), help="Which guideline.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html|.md", help="Write the dossier there.", callback=writes_to),
    ] = None,
    reps: NoReps = RESAMPLES,
) -> None:
    """Fill in a reporting guideline from the study: a methods section, and each item with its evidence.

    Example:
    medjury share dossier --to tripod-llm --out dossier.html
    """
    from calibration.dossier import (
        STATUS,
        decision_lines,
        dossier_html,
        dossier_markdown,
        head_lines,
        to_json,
    )
    from medjury.services.dossier import dossier as filled_in

    guideline(to)
    writers = {".html": dossier_html, ".md": dossier_markdown}
    if out is not None and out.suffix.lower() not in writers:
        raise BadFile(f"--out {out}: the name must end in .html or .md")
    engine = study.open()
    with progress("filling in") as tick:
        made = filled_in(engine, to, tick, reps=reps)
    warn(*made.warnings)
    emit(*head_lines(made), *decision_lines(made), "")
    emit(*(f"{one.item.number}  {STATUS[one.status]}: {one.item.about}" for one in made.items))
    if out is None:
        hint("give --out FILE.html or FILE.md to write it with its methods section")
    else:
        write_files({"--out": (out, writers[out.suffix.lower()](made))})
        say(f"{out}: read it before you use it")
    study.write({**to_json(made), "file": str(out) if out else None})

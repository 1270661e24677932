"""`medjury study taxonomy`: the categories of tasks, the benchmarks in them, and a study's own."""

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from data import STUDY_VARIABLE
from data.errors import BadInput, NoStudy
from data.taxonomy import Taxonomy, read_taxonomy, shipped_taxonomy
from medjury.cli.files import write_files, write_json, writes_to
from medjury.cli.options import Db, Json, Who, study_of
from medjury.cli.output import fitting, hint, say, show_table

if TYPE_CHECKING:
    from medjury.services.taxonomy import StudyTaxonomy

TaxonomyFile = Annotated[Path, typer.Argument(metavar="FILE", help="A taxonomy in TOML.")]
NO_STUDY = "no study is open: shown is MedHELM's taxonomy alone"


def show_(
    context: typer.Context,
    tasks: Annotated[bool, typer.Option("--tasks", help="Also show the lines of tasks.")] = False,
    benchmarks: Annotated[
        bool, typer.Option("--benchmarks", help="Also show the catalogue of benchmarks.")
    ] = False,
    svg: Annotated[
        Path | None,
        typer.Option(
            "--svg", metavar="FILE", help="Write the coverage as a picture.", callback=writes_to
        ),
    ] = None,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Show the taxonomy of tasks, and how many benchmarks stand in each part of it."""
    known = _known(context, db, json_to)
    _show(known, json_to)
    if tasks:
        _show_tasks(known.taxonomy, json_to)
    if benchmarks:
        _show_catalogue(known.taxonomy, json_to)
    if svg is not None:
        write_files({"--svg": (svg, _picture(known))})
        say(f"{svg}: written", json_to)
    from medjury.services.taxonomy import to_json

    write_json(to_json(known), json_to)


def check(
    file: TaxonomyFile,
    json_to: Json = None,
) -> None:
    """Check a taxonomy of your own: a TOML file of categories, as deep as you like."""
    from calibration.tables.taxonomy import counts_in_words
    from medjury.services.taxonomy import StudyTaxonomy, coverage, to_json

    taxonomy = read_taxonomy(file)
    say(f"{file.name}: sound. {taxonomy.name}: {counts_in_words(taxonomy)}", json_to)
    write_json(to_json(StudyTaxonomy(taxonomy, coverage(taxonomy))), json_to)


def use(
    context: typer.Context,
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="A taxonomy in TOML.")] = None,
    shipped: Annotated[
        bool, typer.Option("--shipped", help="Use MedHELM's again, instead of a file.")
    ] = False,
    who: Who = "coordinator",
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Have the study use a taxonomy of its own, from a file."""
    from data.store.taxonomy import use_taxonomy

    if (file is None) != shipped:
        raise BadInput("give a taxonomy's file, or --shipped for MedHELM's: one of the two")
    taxonomy = None if file is None else read_taxonomy(file)
    engine = study_of(context, db)
    changed = use_taxonomy(engine, taxonomy, who)
    name = (taxonomy or shipped_taxonomy()).name
    say(f"taxonomy {name}: in use" if changed else f"taxonomy {name}: nothing changed", json_to)
    body = {"name": name, "sha256": (taxonomy or shipped_taxonomy()).sha256, "changed": changed}
    write_json(body, json_to)


def _known(context: typer.Context, db: str | None, json_to: Path | None) -> "StudyTaxonomy":
    """Return the study's taxonomy; MedHELM's alone where nobody named a study and there is none."""
    from medjury.services.taxonomy import StudyTaxonomy, coverage, study_coverage

    try:
        return study_coverage(study_of(context, db))
    except NoStudy:
        if db is not None or context.obj is not None or os.environ.get(STUDY_VARIABLE):
            raise
    hint(NO_STUDY, json_to)
    return StudyTaxonomy(shipped_taxonomy(), coverage(shipped_taxonomy()))


def _show(known: "StudyTaxonomy", json_to: Path | None) -> None:
    from calibration.tables.taxonomy import counts_in_words, coverage_table

    taxonomy = known.taxonomy
    name = f"{taxonomy.name} {taxonomy.version}".strip()
    say(f"{name}: {counts_in_words(taxonomy)}", json_to)
    if taxonomy.source:
        say(taxonomy.source, json_to)
    for category in taxonomy.categories:
        if category.definition:
            counts = f"; counts when {category.counts_when}" if category.counts_when else ""
            by = f"; done by {category.performer}" if category.performer else ""
            say(f"  {category.name}: {category.definition}{counts}{by}", json_to)
    is_medhelm = taxonomy.sha256 == shipped_taxonomy().sha256
    of_study = bool(known.benchmarks)
    say("", json_to)
    show_table(coverage_table(known.coverage, of_study, is_medhelm=is_medhelm), json_to)


def _show_tasks(taxonomy: Taxonomy, json_to: Path | None) -> None:
    from calibration.tables.taxonomy import tasks_table

    show_table(tasks_table(taxonomy), json_to)


def _show_catalogue(taxonomy: Taxonomy, json_to: Path | None) -> None:
    from calibration.tables.taxonomy import catalogue_table

    if not taxonomy.benchmarks:
        say("this taxonomy describes no benchmarks", json_to)
        return
    is_medhelm = taxonomy.sha256 == shipped_taxonomy().sha256
    entries, places = taxonomy.benchmarks, taxonomy.place_of()
    lay_out = partial(catalogue_table, entries, places, is_medhelm=is_medhelm)
    show_table(fitting(lay_out, json_to), json_to)


def _picture(known: "StudyTaxonomy") -> str:
    from calibration.report.chart_style import svg
    from calibration.report.chart_taxonomy import chart_coverage
    from medjury.services.taxonomy import picture_rows

    name, rows = picture_rows(known.coverage)
    return svg(chart_coverage(rows, f"Benchmarks listed by {name}"), "coverage", "Coverage")

"""`medjury study taxonomy`: MedHELM's categories of tasks, and the benchmarks that stand in them."""

import os

import typer

from data import STUDY_VARIABLE
from data.errors import NoStudy
from data.study.standing import PlacedBenchmark, placed_benchmarks
from data.taxonomy import medhelm_taxonomy
from medjury.cli.files import write_json
from medjury.cli.options import Db, Json, study_of
from medjury.cli.output import hint, say, show_table

NO_STUDY = "no study is open: shown is MedHELM's taxonomy alone"


def taxonomy(context: typer.Context, json_to: Json = None, db: Db = None) -> None:
    """Show the taxonomy of tasks, and how many benchmarks stand in each part of it."""
    from calibration.tables.taxonomy import coverage_table
    from medjury.services.taxonomy import counts, coverage, to_json

    benchmarks: list[PlacedBenchmark] = []
    try:
        benchmarks = placed_benchmarks(study_of(context, db))
    except NoStudy:
        if db is not None or context.obj is not None or os.environ.get(STUDY_VARIABLE):
            raise
        hint(NO_STUDY, json_to)
    known, number = medhelm_taxonomy(), counts()
    say(
        f"{known.name} {known.version}: {number['categories']} categories, {number['leaves']} "
        f"subcategories, {number['task_lines']} lines of tasks that name {number['single_tasks']} "
        f"single ones; its source counts {known.published['tasks']} tasks",
        json_to,
    )
    for one in known.categories:
        by = f"counts when {one.counts_when}; done by {one.performer}"
        say(f"  {one.name}: {one.definition}; {by}", json_to)
    say("", json_to)
    show_table(coverage_table(coverage(benchmarks), bool(benchmarks)), json_to)
    write_json(to_json(benchmarks), json_to)

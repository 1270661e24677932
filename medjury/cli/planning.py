"""`medjury study plan`: how many responses and clinicians a study needs, and what it can show."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calibration.values import AnalysisOptions, PlanOptions
from data.errors import BadInput
from medjury.cli.files import write_json
from medjury.cli.options import (
    BenchmarkOption,
    Db,
    Json,
    Jurors,
    PanelOption,
    Seed,
    finite,
    named_jurors,
    study_of,
)
from medjury.cli.output import progress, say, say_unnoted, show_table

if TYPE_CHECKING:
    from medjury.services.planning import StudyPlan


def plan(
    context: typer.Context,
    icc: Annotated[
        float | None,
        typer.Option(min=0, max=0.99, help="Expected ICC(C,2), as in the agreement table."),
    ] = None,
    single_icc: Annotated[
        float | None,
        typer.Option(min=0, max=0.99, help="Expected ICC of a single rater, instead of --icc."),
    ] = None,
    pilot: Annotated[
        bool,
        typer.Option(
            "--pilot", help="Estimate the ICC from the ratings of this study, instead of --icc."
        ),
    ] = False,
    width: Annotated[
        float,
        typer.Option(min=0.01, max=2, help="Wanted width of the 95 % interval."),
    ] = 0.3,
    per_response: Annotated[
        int, typer.Option(min=1, help="Number of clinicians who rate each response.")
    ] = 2,
    assurance: Annotated[
        float,
        typer.Option(min=0.5, max=0.99, help="Probability that a study reaches the width."),
    ] = 0.8,
    clinicians: Annotated[
        int | None,
        typer.Option(min=1, help="Number of clinicians available, for the load of each."),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            "--minutes-per-response",
            min=0.01,
            help="Minutes per reading; with --pilot, by default measured.",
            callback=finite,
        ),
    ] = None,
    responses: Annotated[
        int | None,
        typer.Option(min=4, help="Number of responses you can afford; shows the width they give."),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            max=0.99,
            help="Non-inferiority margin: how much worse than a clinician the jury may be.",
        ),
    ] = None,
    ceiling: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=0.95,
            help="Share of scores at the top of the scale, for --margin; by default the pilot's, else none and 0.7.",
        ),
    ] = None,
    panel: PanelOption = None,
    jurors: Jurors = None,
    benchmark: BenchmarkOption = None,
    seed: Seed = 0,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Plan the size of a study: responses and clinicians for a given precision."""
    of_pilot = {"--db": db, "--panel": panel, "--jurors": jurors, "--benchmark": benchmark}
    _check_source(icc, single_icc, pilot, of_pilot)
    options = PlanOptions(
        width, per_response, assurance, clinicians, minutes, responses, seed, margin,
        ceiling,
    )  # fmt: skip
    _check(options)
    from medjury.services.planning import plan_from_assumption, plan_from_pilot, to_json

    with progress("planning", None):
        if pilot:
            analysis = AnalysisOptions(
                jurors=named_jurors(panel, jurors), benchmark=benchmark, seed=seed
            )
            planned = plan_from_pilot(study_of(context, db), analysis, options)
        else:
            planned = plan_from_assumption(options, icc, single_icc)
    _show(planned, json_to)
    write_json(to_json(planned), json_to)


def _check_source(
    icc: float | None, single: float | None, pilot: bool, of_pilot: Mapping[str, str | None]
) -> None:
    """Refuse an ICC from two sources, or from none, and a pilot's options without a pilot."""
    if sum([icc is not None, single is not None, pilot]) != 1:
        raise BadInput(
            "give one of --icc (ICC(C,2), as in the agreement table), --single-icc (of one rater) "
            "and --pilot (both from the ratings of this study)"
        )
    for option, value in of_pilot.items():
        if value is not None and not pilot:
            raise BadInput(f"{option} names a pilot's ratings: give --pilot with it")


def _check(options: PlanOptions) -> None:
    if options.clinicians is not None and options.clinicians < options.per_response:
        raise BadInput(
            f"--clinicians {options.clinicians}: {options.per_response} different ones rate a response "
            "(--per-response)"
        )
    if options.ceiling is not None and options.margin is None:
        raise BadInput("--ceiling says how scores lie for --margin: give that too")
    if options.margin is not None and options.per_response < 2:
        raise BadInput("--margin compares the jury with a clinician: --per-response 2 or more")


def _show(plan: "StudyPlan", json_to: Path | None) -> None:
    """Print the tables of a plan, then its sentences, which tell the tables' notes too."""
    from calibration.tables.planning import panel_size_table, plan_tables

    say_unnoted(plan.unnoted)
    for table in plan_tables(plan.rows, plan.options):
        show_table(table, json_to, notes=False)
        say("", json_to)
    show_table(panel_size_table(plan.reliability), json_to)
    say("", json_to)
    for line in plan.told:
        say(line, json_to)

"""`medjury study survey`: clinicians place the parts of a taxonomy, and what they said."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medjury.cli.files import write_files, write_json, writes_to
from medjury.cli.options import Db, Json, Reps, Seed, Who, study_of
from medjury.cli.output import counted, hint, say, show_table

if TYPE_CHECKING:
    from medjury.services.surveys import SurveyResults

NO_ROUND = "no round of a survey was opened yet: `medjury study survey open`"


def open_(
    context: typer.Context,
    items: Annotated[
        str, typer.Option(metavar="[subcategories|tasks]", help="What clinicians place.")
    ] = "subcategories",
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the order of the cards, another for each clinician.")
    ] = 0,
    who: Who = "coordinator",
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Open a round of a survey on the study's taxonomy as it is now."""
    from data.queries.taxonomy import study_taxonomy
    from data.store.surveys import open_survey

    engine = study_of(context, db)
    number = open_survey(engine, study_taxonomy(engine), items, seed, who)
    say(f"round {number}: open", json_to)
    hint("next: medjury study survey invite", json_to)
    write_json({"round": number, "items": items, "seed": seed}, json_to)


def invite(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Clinicians; by default all who can sign in."),
    ] = None,
    who: Who = "coordinator",
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Ask clinicians in the round that is open; they find it when they sign in."""
    from data.store.surveys import ask_clinicians

    asked = ask_clinicians(study_of(context, db), names or (), who)
    say(f"{counted(len(asked), 'clinician')} asked: {', '.join(asked) or 'none new'}", json_to)
    write_json({"asked": asked}, json_to)


def close(
    context: typer.Context, who: Who = "coordinator", json_to: Json = None, db: Db = None
) -> None:
    """Close the round that is open: no answer is taken from then on."""
    from data.store.surveys import close_survey

    number = close_survey(study_of(context, db), who)
    say(f"round {number}: closed", json_to)
    write_json({"round": number}, json_to)


def results(
    context: typer.Context,
    reps: Reps = 2000,
    seed: Seed = 0,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write them as a page.", callback=writes_to),
    ] = None,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Show how clinicians placed the taxonomy's parts, how they agree, and what they said."""
    from calibration.tables.numbers import TERMINAL
    from medjury.services.surveys import survey_results, tables_of, to_json

    found = survey_results(study_of(context, db), reps, seed)
    if not found.rounds:
        say(NO_ROUND, json_to)
    for table in tables_of(found, TERMINAL):
        show_table(table, json_to)
    if html is not None:
        write_files({"--html": (html, _page(found))})
        say(f"{html}: written", json_to)
    write_json(to_json(found), json_to)


def _page(found: "SurveyResults") -> str:
    from calibration.report.survey_page import survey_page
    from medjury.services.surveys import tables_of

    return survey_page(tables_of(found))

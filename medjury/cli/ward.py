"""`medjury rate next` and `medjury analyse transport`: what to rate, when to stop, and for which notes."""

from pathlib import Path
from typing import Annotated

import typer

from data.errors import BadInput
from data.person import OPERATOR
from medjury.cli.files import write_json
from medjury.cli.options import Db, Json, Jurors, PanelOption, finite, named_jurors, study_of
from medjury.cli.output import progress, say, show_table


def next_(
    context: typer.Context,
    icc: Annotated[
        float | None,
        typer.Option(
            help="The goal is a jury's ICC over this, not the protocol's.", callback=finite
        ),
    ] = None,
    planned: Annotated[
        int | None,
        typer.Option(min=2, help="Responses to be rated at most; the first look fixes it."),
    ] = None,
    number: Annotated[int, typer.Option(min=0, help="How many responses to list.")] = 20,
    seed: Annotated[int, typer.Option(help="Of the order in which responses are drawn.")] = 0,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Say whether to go on rating, with an interval that holds under stopping, and what to rate next."""
    from calibration.tables.stopping import headline, look_lines
    from medjury.services.stopping import NextQuestion, next_to_rate, to_json

    if icc is not None and not -1 < icc < 1:
        raise BadInput(f"--icc {icc:g}: give an ICC between -1 and 1, such as 0.6")
    engine = study_of(context, db)
    with progress("looking", None):
        result = next_to_rate(OPERATOR, engine, NextQuestion(icc, planned, number, seed))
    say(headline(result.look, result.found, simulated=bool(result.simulated)), json_to)
    for line in look_lines(result.goal, result.look, result.found, len(result.looks)):
        say(line, json_to)
    if result.responses:
        say("", json_to)
        say("to rate next, drawn at random within benchmarks:", json_to)
    for response in result.responses:
        say(f"  {response.response}  {response.benchmark}", json_to)
    write_json(to_json(result), json_to)


def transport(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]", help="New responses; without it those that no clinician has rated."
        ),
    ] = None,
    panel: PanelOption = None,
    jurors: Jurors = None,
    texts: Annotated[
        bool, typer.Option("--texts/--no-texts", help="Compare embeddings of the texts too.")
    ] = True,
    seed: Annotated[int, typer.Option(help="Of the permutations.")] = 0,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Say whether notes look like those the jury was validated on, group by group."""
    from calibration.tables.transport import groups_table, headline, properties_table
    from medjury.services.transport import TransportQuestion, to_json
    from medjury.services.transport import transport as compared

    question = TransportQuestion(file, named_jurors(panel, jurors), texts, seed)
    engine = study_of(context, db)
    with progress("comparing", None):
        result = compared(engine, question)
    say(headline(result.found, simulated=bool(result.simulated)), json_to)
    say(f"validated on {result.rated} rated responses, compared with {result.new}", json_to)
    if not result.texts:
        say("texts are not compared: no encoder (extra bertscore), or --no-texts", json_to)
    say("", json_to)
    show_table(groups_table(result.found), json_to)
    show_table(properties_table(result.found), json_to)
    write_json(to_json(result), json_to)

"""`medjury rate training`: expert scores in, and how clinicians stand against them."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Engine

from data.errors import BadInput
from data.importers.ratings import ExpertFile
from data.importers.table import TableFile
from data.queries.rating_room import Trainee, trainees
from data.store.training import ExpertsAdded, import_experts, let_through
from data.training import MOST_ROUNDS, RoundOutcome
from medjury.cli.options import Db, Json, study_of, table_format
from medjury.cli.output import say, show
from medjury.cli.places import write_json


def training(
    context: typer.Context,
    path: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Expert scores: CSV or JSON Lines.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", metavar="[csv|jsonl]", help="By default from the name."),
    ] = None,
    let: Annotated[
        str | None, typer.Option(metavar="NAME", help="Let a clinician begin who has not passed.")
    ] = None,
    reason: Annotated[str, typer.Option(help="Why; stays in the record.")] = "",
    who: Annotated[
        str, typer.Option(metavar="NAME", help="Who lets them; stays in the record.")
    ] = "coordinator",
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Import expert scores for the training round, or show how clinicians stand in it."""
    engine = study_of(context, db)
    if path is not None and let is not None:
        raise BadInput("give either a file of expert scores or --let, not both")
    if path is not None:
        table = TableFile(path, table_format(form))
        _say_added(table, import_experts(engine, ExpertFile(table)), json_to)
    elif let is not None:
        let_through(engine, let, reason, who)
        say(f"{let} may begin; the reason is in the record", json_to)
    else:
        _show(engine, json_to)


def _say_added(table: TableFile, added: ExpertsAdded, json_to: Path | None) -> None:
    say(
        f"{table.path.name}: {added.added} expert scores imported, {added.changed} changed, "
        f"{added.unchanged} were there already ({table.encoding})",
        json_to,
    )
    if not (added.added or added.changed):
        say("nothing changed", json_to)
    say(
        f"{added.responses} responses are for training: every clinician rates them first, "
        "`medjury rate assign` and `medjury analyse calibrate` leave them out",
        json_to,
    )
    write_json(asdict(added), json_to)


def _show(engine: Engine, json_to: Path | None) -> None:
    """Print how every clinician stands, a column a round."""
    found = trainees(engine)
    if not found:
        say("no training: no expert scores, or no clinician who can sign in", json_to)
    else:
        rows = [
            [one.name, *(_round(one, number) for number in range(MOST_ROUNDS)), _stands(one)]
            for one in found
        ]
        rounds = [f"round {number + 1}" for number in range(MOST_ROUNDS)]
        title = f"Mean distance from the experts over {found[0].total} responses, in points"
        show(title, ["clinician", *rounds, "may begin"], rows, json_to)
    write_json({"clinicians": [_json(one) for one in found]}, json_to)


def _round(one: Trainee, number: int) -> str:
    """Return one round's cell: the distance and whether it was passed, or how far it is."""
    if number < len(one.rounds):
        outcome = one.rounds[number]
        return f"{outcome.distance:.2f} {'passed' if outcome.passed else 'not passed'}"
    if number == len(one.rounds) and one.answered:
        return f"{one.answered} of {one.total} answered"
    return ""


def _stands(one: Trainee) -> str:
    """Return whether a clinician may begin, and why."""
    if one.ended:
        return f"yes, {one.ended}"
    return f'no: --let "{one.name}" --reason "..."' if one.halted else "not yet"


def _json(one: Trainee) -> dict[str, object]:
    rounds = [_outcome(outcome) for outcome in one.rounds]
    kept = {"name": one.name, "answered": one.answered, "total": one.total, "ended": one.ended}
    return kept | {"halted": one.halted, "rounds": rounds}


def _outcome(one: RoundOutcome) -> dict[str, object]:
    return {"distance": one.distance, "gap": one.gap, "passed": one.passed}

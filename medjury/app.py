"""The table of commands, and the one place where errors become messages."""

import sys
from collections.abc import Sequence
from typing import NoReturn

import typer

from data.errors import MedjuryError
from medjury import (
    INTERRUPTED,
    agreement,
    backup,
    blinding,
    demo,
    export,
    juries,
    jury,
    jury_references,
    metrics,
    models,
    monitor,
    moving,
    people,
    planning,
    predict,
    reading,
    record,
    rubric_export,
    rubrics,
    study,
    training,
)
from medjury.options import Db, worked_on

USER_ERROR = 2

app = typer.Typer(
    name="medjury",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Blinded clinician ratings, LLM juries, and how well they agree.",
)


@app.callback()
def every_command(context: typer.Context, db: Db = None) -> None:
    """Blinded clinician ratings, LLM juries, and how well they agree."""
    context.obj = db


app.command("demo")(demo.demo)
app.command("import")(study.import_)
app.command("ratings")(study.ratings)
app.command("training")(training.training)
app.command("assign")(reading.assign)
app.command("serve")(reading.serve)
jury.jury.command("references")(jury_references.check)
app.add_typer(jury.jury, name="jury")
app.command("measure")(metrics.measure)
app.command("plan")(planning.plan)
app.command("calibrate")(agreement.calibrate)
app.command("juries")(juries.juries)
app.command("monitor")(monitor.monitor)
app.command("models")(models.models)
app.command("predict")(predict.predict)
rubrics.rubric.command("export")(rubric_export.export)
app.add_typer(rubrics.rubric, name="rubric")
app.add_typer(people.people, name="people")
app.command("blind")(blinding.blind)
app.command("unblind")(record.unblind)
app.command("settings")(record.settings)
app.command("lock")(record.lock)
app.command("verify")(record.verify)
app.command("export")(export.export)
app.command("backup")(backup.backup)
app.command("move")(moving.move)


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command; the user's errors end it with one message and exit code 2."""
    worked_on.clear()
    try:
        app(args=None if arguments is None else list(arguments))
    except MedjuryError as error:
        print(f"medjury: {error}", file=sys.stderr)
        sys.exit(USER_ERROR)
    except SystemExit as ended:
        if ended.code == INTERRUPTED:  # what typer makes of Ctrl-C, without a word
            print("medjury: stopped; what was stored stays", file=sys.stderr)
        elif ended.code != USER_ERROR and worked_on:
            print(f"study {worked_on[0]}", file=sys.stderr)
        raise
    sys.exit(0)

"""The table of commands, each loaded when it is called, and where errors become messages."""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any, NamedTuple, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from data.errors import MedjuryError
from medjury.cli.options import Db, worked_on

USER_ERROR = 2
INTERRUPTED = 130
ABOUT = "Blinded clinician ratings, LLM juries, and how well they agree."


class Entry(NamedTuple):
    """A command: where it is ("module:name" under `medjury.cli`), and the first line of its help."""

    place: str
    about: str


COMMANDS = {
    "demo": Entry(
        "demo:demo",
        "Make a demo study, let simulated raters rate it, print the agreement, serve the page.",
    ),
    "import": Entry(
        "study:import_",
        "Bring responses in, with the instances they answer; twice changes nothing.",
    ),
    "ratings": Entry(
        "study:ratings",
        "Bring in ratings made elsewhere: clinicians', jurors' or metrics'; REDCap's, MedHELM's files.",
    ),
    "training": Entry(
        "training:training",
        "Bring in expert scores to train clinicians on; without a file, show how training goes.",
    ),
    "assign": Entry(
        "reading:assign",
        "Give every response to its clinicians, and each new clinician a code to sign in with.",
    ),
    "study": Entry("describe:study", "The study as a whole: describe it to its clinicians."),
    "adjudicate": Entry(
        "adjudication:adjudicate",
        "List where clinicians differ by what the study says is much; have the differences settled.",
    ),
    "flags": Entry(
        "adjudication:flags",
        "List what clinicians flagged, and answer a flag; its clinician sees the answer.",
    ),
    "remind": Entry(
        "reminding:remind",
        "List who has had work open for days and ended none, with a reminder to copy or to send.",
    ),
    "serve": Entry(
        "reading:serve",
        "Serve the pages on which clinicians rate and those who steer a study work.",
    ),
    "jury": Entry("jury:jury", "Juries: run a panel, probe its jurors."),
    "measure": Entry(
        "metrics:measure", "Score every response against its reference with ROUGE-L and BERTScore."
    ),
    "plan": Entry(
        "planning:plan",
        "Plan a study: responses and clinicians for an interval, and the difference it can show.",
    ),
    "protocol": Entry(
        "protocol:protocol",
        "What the study is to show, fixed before it is rated: set, show, check.",
    ),
    "calibrate": Entry(
        "agreement:calibrate",
        "Compare jury, jurors and metrics with the clinicians: the agreement table.",
    ),
    "juries": Entry(
        "juries:juries",
        "Rank every jury of the jurors already heard, without the luck of choosing; no calls.",
    ),
    "monitor": Entry(
        "monitor:monitor",
        "Follow how far the jury agrees with clinicians; exit 1 when it has fallen.",
    ),
    "models": Entry(
        "models:models",
        "Compare the models: win rates, macro-averages, detectable differences, cost. Unblinds.",
    ),
    "predict": Entry(
        "predict:predict",
        "Predict what clinicians would say of responses they did not rate, from a validated jury.",
    ),
    "rubric": Entry("rubrics:rubric", "Rubrics: list, show, add, import."),
    "people": Entry("people:people", "Who may sign in, and how."),
    "blind": Entry(
        "blinding:blind",
        "List what may name a response's author and is not masked; mask it, or leave it for good.",
    ),
    "unblind": Entry(
        "record:unblind", "Say who wrote which response; recorded, and told in every later report."
    ),
    "settings": Entry(
        "record:settings",
        "Show what the study decides for all who work on it, or set one thing of it.",
    ),
    "lock": Entry(
        "record:lock",
        "Freeze the study: nobody rates, imports or assigns until it is reopened with a reason.",
    ),
    "verify": Entry(
        "record:verify",
        "Check that nothing was changed behind the record's back, or in a bundle; exit 1 if so.",
    ),
    "export": Entry(
        "export:export", "Write the study as CSV with a data dictionary; no author unless asked."
    ),
    "backup": Entry(
        "moving:backup",
        "Write the whole study into a new file, as it stands at one moment, and check it.",
    ),
    "move": Entry(
        "moving:move",
        "Copy a study into an empty database, SQLite or PostgreSQL; FROM stays as it is.",
    ),
}


class LazyGroup(TyperGroup):
    """The commands of `COMMANDS`: named with a line of help, imported only when one is called."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, entry in COMMANDS.items():
            self.add_command(TyperCommand(name, help=entry.about))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List every command with the whole of its line."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.about) for name, entry in COMMANDS.items()])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name, the command itself, and the words that are its own."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and loaded(str(name)), rest


def _print_version(wanted: bool) -> None:
    """Print which medjury this is, and end."""
    if wanted:
        from medjury.version import version

        print(f"medjury {version()}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option(
        "--version",
        help="Print the version and exit.",
        callback=_print_version,
        is_eager=True,
        expose_value=False,
    ),
]
app = typer.Typer(
    cls=LazyGroup,
    name="medjury",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich alone takes as long to load as the rest of the help
    help=ABOUT,
)


@app.callback(help=ABOUT)
def every_command(context: typer.Context, db: Db = None, version: Version = False) -> None:
    """Keep the study that is named before the command."""
    context.obj = db


def loaded(name: str) -> Any:
    """Return a command, or a group of them, from the module that has it."""
    module, _, attribute = COMMANDS[name].place.partition(":")
    found = getattr(import_module(f"medjury.cli.{module}"), attribute)
    return typer.main.get_command(found if isinstance(found, typer.Typer) else _alone(name, found))


def _alone(name: str, function: Callable[..., None]) -> typer.Typer:
    """Return an app of one command."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name)(function)
    return app


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

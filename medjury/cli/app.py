"""The command line as a whole: groups, each command loaded when called, errors as messages."""

import sys
from collections.abc import Sequence
from functools import cache
from pkgutil import resolve_name
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_install_completion_arguments

from data.errors import MedjuryError
from data.files import keep_private
from medjury.cli.commands import BY_NAME, GROUPS, PROGRAM, Command, members
from medjury.cli.options import Db, be_quiet, begin, is_quiet, worked_on

USER_ERROR = 2
INTERRUPTED = 130
ABOUT = "Blinded clinician ratings, LLM juries, and how well they agree."
MORE = (
    f"\b\n{PROGRAM} COMMAND -h explains a command, with an example.\n"
    f"{PROGRAM} --install-completion lets the shell complete names."
)


class LazyGroup(TyperGroup):
    """A group of commands: named with a line of help, imported only when one is called."""

    def __init__(self, *, path: str = "", **attributes: Any) -> None:
        super().__init__(**attributes)
        self.path = path
        for name in members(path):
            own = f"{path} {name}".strip()
            self.add_command(
                LazyGroup(
                    path=own,
                    name=name,
                    help=GROUPS[own],
                    no_args_is_help=True,
                    rich_markup_mode=None,
                )
                if own in GROUPS
                else TyperCommand(name, help=BY_NAME[own].about)
            )

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List every command with the whole of its line."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.help) for name, command in self.commands.items()])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name, the command itself, and the words that are its own."""
        name, command, words = super().resolve_command(ctx, args)
        if isinstance(command, TyperCommand):
            command = loaded(f"{self.path} {name}".strip())
        return name, command, words


def _print_version(requested: bool) -> None:
    """Print which medjury this is, and end."""
    if requested:
        from medjury.version import version

        print(f"{PROGRAM} {version()}")
        raise typer.Exit


app = typer.Typer(
    cls=LazyGroup,
    name=PROGRAM,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich alone takes as long to load as the rest of the help
    context_settings={"help_option_names": ["-h", "--help"]},
    help=ABOUT,
    epilog=MORE,
)
Quiet = Annotated[
    bool,
    typer.Option(
        "-q",
        "--quiet",
        help="Print results, warnings and errors only.",
        callback=be_quiet,
        expose_value=False,
    ),
]
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


@app.callback(help=ABOUT)
def every_command(
    context: typer.Context, db: Db = None, quiet: Quiet = False, version: Version = False
) -> None:
    """Keep the study that is named before the command."""
    context.obj = db


@cache
def whole() -> TyperGroup:
    """Return the command line: every group and name, with the options that install completion."""
    command: Any = typer.main.get_command(app)
    for option in get_install_completion_arguments():
        option.hidden = True  # type: ignore[attr-defined]  # named below the list of commands
        command.params.append(option)
    group: TyperGroup = command
    return group


def loaded(name: str) -> TyperCommand:
    """Return the command of a name, from the module that has it."""
    row = BY_NAME[name]
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name.rpartition(" ")[2], epilog=_example(row))(
        resolve_name(f"medjury.cli.{row.place}")
    )
    command: Any = typer.main.get_command(single)
    command.params += [parameter for parameter in whole().params if parameter.name == "quiet"]
    one: TyperCommand = command
    return one


def _example(row: Command) -> str:
    """Return the end of a command's help."""
    return f"\b\nExample:\n  {PROGRAM} {row.name} {row.example}".rstrip()


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command; the user's errors end it with one message and exit code 2."""
    keep_private()
    begin()
    words = None if arguments is None else list(arguments)
    try:
        whole()(args=words, prog_name=PROGRAM)
    except MedjuryError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        sys.exit(USER_ERROR)
    except SystemExit as ended:
        if ended.code == INTERRUPTED:  # what typer makes of Ctrl-C, without a word
            print(f"{PROGRAM}: stopped; what was stored stays", file=sys.stderr)
        elif ended.code != USER_ERROR and worked_on and not is_quiet():
            print(f"study {worked_on[0]}", file=sys.stderr)
        raise
    sys.exit(0)

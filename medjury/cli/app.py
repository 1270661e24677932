"""The command line as a whole: groups, each command loaded when called, errors as messages."""

import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_install_completion_arguments

from data.errors import MedjuryError
from medjury.cli.commands import EVERY_NAME, FORMER_OPTIONS, PROGRAM, Command, group_about, members
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
        for name, listed in members(path):
            own = f"{path} {name}".strip()
            about = group_about(own)
            self.add_command(
                TyperCommand(name, help=EVERY_NAME[own].about, hidden=not listed)
                if about is None
                else LazyGroup(
                    path=own, name=name, help=about, hidden=not listed, no_args_is_help=True,
                    rich_markup_mode=None,
                )
            )  # fmt: skip

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List every command that is not hidden, with the whole of its line."""
        with formatter.section("Commands"):
            rows = [
                (name, command.help)
                for name, command in self.commands.items()
                if not command.hidden
            ]
            formatter.write_dl(rows)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name, the command itself, and the words that are its own."""
        name, command, words = super().resolve_command(ctx, args)
        if isinstance(command, TyperCommand):
            command = loaded(f"{self.path} {name}".strip())
        return name, command, words


class OneCommand(TyperCommand):
    """A command that takes the former names of its options too, without listing them."""

    former_options: Mapping[str, str] = MappingProxyType({})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words after the command's name, former names replaced."""
        parsed: list[str] = super().parse_args(ctx, [*map(self._present, args)])
        return parsed

    def _present(self, word: str) -> str:
        """Return a word with its option's present name, alone or before "=" and a value."""
        option, equals, value = word.partition("=")
        return f"{self.former_options.get(option, option)}{equals}{value}"


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
    """Return the command of a present or former name, from the module that has it."""
    row = EVERY_NAME[name]
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name.rpartition(" ")[2], cls=OneCommand, epilog=_example(row))(
        resolve_name(f"medjury.cli.{row.place}")
    )
    command: Any = typer.main.get_command(single)
    command.params += [parameter for parameter in whole().params if parameter.name == "quiet"]
    own: OneCommand = command
    own.former_options = FORMER_OPTIONS.get(row.name, {})
    return own


def _example(row: Command) -> str:
    """Return the end of a command's help."""
    return f"\b\nExample:\n  {PROGRAM} {row.name} {row.example}".rstrip()


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command; the user's errors end it with one message and exit code 2."""
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

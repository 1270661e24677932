"""The command line as a whole: groups, each command loaded when called, errors as messages."""

import re
import sys
from collections.abc import Iterator, Sequence
from errno import ENAMETOOLONG
from functools import cache
from inspect import cleandoc
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_install_completion_arguments

from data.errors import MedjuryError
from data.files import keep_private
from data.safe_text import short
from medjury.cli.commands import COMMANDS, GROUPS, PROGRAM, members
from medjury.cli.options import Db, be_quiet, begin, flat, is_quiet, worked_on

USER_ERROR = 2
INTERRUPTED = 130
ABOUT = "Blinded clinician ratings, LLM juries, and how well they agree."
MORE = (
    f"\b\n{PROGRAM} COMMAND -h explains a command, with an example.\n"
    "--db and --quiet may stand before a command or behind it.\n"
    f"{PROGRAM} --install-completion lets the shell complete names."
)


class LazyGroup(TyperGroup):
    """A group of commands: named with a line of help, imported only when one is called."""

    def __init__(self, *, path: str = "", **attributes: Any) -> None:
        super().__init__(**attributes)
        self.path = path
        for name in members(path):
            below = f"{path} {name}".strip()
            if below in GROUPS:
                group = {"no_args_is_help": True, "rich_markup_mode": None, "help": GROUPS[below]}
                self.add_command(LazyGroup(path=below, name=name, **group))
            else:
                self.add_command(TyperCommand(name))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List every command with the whole of its line."""
        with formatter.section("Commands"):
            formatter.write_dl(
                (name, command.help or summary(f"{self.path} {name}".strip()))
                for name, command in self.commands.items()
            )

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name, the command itself, and the words that are its own."""
        name, command, words = super().resolve_command(ctx, args)
        if isinstance(command, TyperCommand):
            command = loaded(f"{self.path} {name}".strip())
            words = list(_own_words(ctx, words))
        return name, command, words


def _own_words(context: Any, words: Sequence[str]) -> Iterator[str]:
    """Yield the words that are a command's own: `--db` and `--quiet` may stand behind it too."""
    rest = iter(words)
    for word in rest:
        option, _, value = word.partition("=")
        if option == "--db":
            context.obj = value if option != word else next(rest, None)
            if context.obj is None:
                raise typer.BadParameter("give the study's URL with it", param_hint="--db")
        elif word in ("-q", "--quiet"):
            be_quiet(True)
        else:
            yield word
        if word == "--":
            yield from rest


def summary(name: str) -> str:
    """Return the first line of a command's docstring; its module is read and not imported."""
    module, _, function = COMMANDS[name].partition(":")
    source = Path(__file__).with_name(f"{module}.py").read_text("utf-8")
    found = re.search(rf'^def {function}\(.*?^    """(.+?)(?:"""|\n)', source, re.M | re.S)
    return found[1] if found else ""


def _print_version(requested: bool) -> None:
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
    """Keep the study that is named before the command, where none is named behind it."""
    if context.obj is None:
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
    """Return the command of a name, from the module that has it.

    What follows "Example:" in its docstring ends its help, line by line as it stands there.
    """
    function = resolve_name(f"medjury.cli.{COMMANDS[name]}")
    about, _, example = cleandoc(function.__doc__ or "").partition("Example:")
    lines = "\n".join(f"  {line.strip()}" for line in example.strip().splitlines())
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name.rpartition(" ")[2], help=about.strip(), epilog=f"\b\nExample:\n{lines}")(
        flat(function)
    )
    command: Any = typer.main.get_command(single)
    one: TyperCommand = command
    return one


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
    except OSError as error:
        if error.errno != ENAMETOOLONG:
            raise
        name = short(str(error.filename))
        print(f"{PROGRAM}: {name}: is too long for the name of a file", file=sys.stderr)
        sys.exit(USER_ERROR)
    except SystemExit as ended:
        if ended.code == INTERRUPTED:  # what typer makes of Ctrl-C, without a word
            print(f"{PROGRAM}: stopped; what was stored stays", file=sys.stderr)
        elif ended.code != USER_ERROR and worked_on and not is_quiet():
            print(f"study {worked_on[0]}", file=sys.stderr)
        raise
    sys.exit(0)

"""How commands speak: words and tables to the screen, figures to JSON, progress to stderr."""

import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from data.errors import BadFile
from data.store.files import part_of

words = Console(highlight=False, markup=False, soft_wrap=True)
progress_console = Console(stderr=True)
STANDARD_OUTPUT = Path("-")
STREAMED = ("--json", "--openmetrics")  # options that take "-" for standard output
SQLITE = b"SQLite format 3\0"  # how such a file begins
BESIDE_SQLITE = ("-wal", "-shm", "-journal")
TAKEN = "medjury.output.taken"  # in a context: the real path that is written to -> its option
GAP = 3  # blanks between the columns of a table


def say(text: str, json_to: Path | None = None) -> None:
    """Print a line; to stderr where standard output is taken by JSON."""
    if json_to == STANDARD_OUTPUT:
        print(text, file=sys.stderr)
    else:
        words.print(text)


def show(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], json_to: Path | None = None
) -> None:
    """Print a table; to stderr where standard output is taken by JSON. No column is cut."""
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False
    )
    for number, name in enumerate(columns):
        first = number == 0
        table.add_column(
            name, justify="left" if first else "right", overflow="fold", no_wrap=not first
        )
    for row in rows:
        table.add_row(*row)
    _console(json_to).print(table)


def room(json_to: Path | None = None) -> int:
    """Return how many characters a line of the screen holds."""
    return _console(json_to).width


def width(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Return how wide `show` would print a table if it had the room."""
    cells = zip(columns, *rows, strict=True)
    longest = [max(len(line) for cell in one for line in cell.split("\n")) for one in cells]
    return sum(longest) + GAP * (len(columns) - 1)


def counted(number: int, thing: str) -> str:
    """Return a number with its noun, in the plural where it is not 1."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _console(json_to: Path | None) -> Console:
    return progress_console if json_to == STANDARD_OUTPUT else words


def writes_to(
    context: typer.Context, parameter: typer.CallbackParam, to: Path | None
) -> Path | None:
    """Check the file an option names while options are read: the callback of every such option.

    Raises
    ------
    BadFile
        As `check_place`, and where another option of the command names the same file.
    """
    if to is None or context.resilient_parsing:
        return to
    option = parameter.opts[0]
    check_place(option, to)
    taken: dict[Path, str] = context.meta.setdefault(TAKEN, {})
    real = to if to == STANDARD_OUTPUT else to.resolve()
    if other := taken.get(real):
        raise BadFile(f"{option} {to}: {other} is to be written there; name another file")
    taken[real] = option
    return to


def check_place(option: str, to: Path) -> None:
    """Refuse a folder, a file in a folder that is not there, and an SQLite file or its own."""
    if to == STANDARD_OUTPUT and option in STREAMED:
        return
    with _failing(option, to):
        writable = to != STANDARD_OUTPUT and not to.is_dir() and to.parent.is_dir()
        is_database = writable and any(map(_is_sqlite, _databases(to.resolve())))
    if not writable:
        raise BadFile(f"{option} {to}: not a file in a folder that exists; name another file")
    if is_database:
        raise BadFile(
            f"{option} {to}: is an SQLite database, such as a study, or a part of one, and is "
            "never written over; name another file"
        )


def _databases(to: Path) -> Iterator[Path]:
    """Yield the file itself, and the database that it would be a part of by its name."""
    yield to
    for ending in BESIDE_SQLITE:
        if to.name.endswith(ending) and to.name != ending:
            yield to.with_name(to.name.removesuffix(ending))


def _is_sqlite(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE


def check_json(to: Path | None) -> None:
    """Refuse a place that JSON cannot be written to, before any work is done."""
    if to is not None:
        check_place("--json", to)


def write_json(body: Mapping[str, Any], to: Path | None) -> None:
    """Write figures as JSON to a file or, for `-`, to standard output; NaN is not JSON."""
    if to is None:
        return
    text = json.dumps(body, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if to == STANDARD_OUTPUT:
        sys.stdout.write(text)
        return
    write_files({"--json": (to, text)})


def write_files(texts: Mapping[str, tuple[Path, str]]) -> None:
    """Write the text of each option to its file, all or none: a full disk leaves the old files.

    All are written beside their places first and then moved there, each in one step. What is
    no file, such as a pipe, is written to as it is.
    """
    parts: dict[str, tuple[Path, Path]] = {}
    try:
        for option, (to, text) in texts.items():
            with _failing(option, to):
                real = to.resolve()
                part = part_of(real)
                if real.is_file() or not real.exists():
                    parts[option] = part, real
                (part if option in parts else real).write_text(text, encoding="utf-8", newline="")
        for option, (part, real) in parts.items():
            with _failing(option, real):
                _move(part, real)
    finally:
        for part, _ in parts.values():
            part.unlink(missing_ok=True)


@contextmanager
def _failing(option: str, to: Path) -> Iterator[None]:
    """Name the option and its file where writing fails."""
    try:
        yield
    except OSError as error:
        raise BadFile(f"{option} {to}: {error.strerror}") from error


def _move(part: Path, to: Path) -> None:
    """Put a file in the place of another, which keeps who may read it."""
    if to.exists():
        shutil.copymode(to, part)
    part.replace(to)


class At(Protocol):
    """Say how far the work is, and optionally of what total and with what words."""

    def __call__(self, done: float, total: float | None = None, words: str = "") -> None:
        """Move the bar."""


@contextmanager
def progress(what: str, total: float | None) -> Iterator[At]:
    """Show a bar while the block runs if stderr is a terminal; yields what moves it."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}% {task.fields[words]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    nobody_looks = not progress_console.is_terminal
    with Progress(*columns, console=progress_console, transient=True, disable=nobody_looks) as bar:
        task = bar.add_task(what, total=total, words="")

        def at(done: float, total: float | None = total, words: str = "") -> None:
            bar.update(task, completed=done, total=total, words=words)

        yield at

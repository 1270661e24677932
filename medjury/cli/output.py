"""How commands speak: words and tables to the screen, progress to stderr."""

import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from medjury.cli.files import STANDARD_OUTPUT, is_streaming
from medjury.cli.options import is_quiet

if TYPE_CHECKING:
    from calibration.decision import Decision
    from calibration.notes import Noted
    from calibration.tables.spec import Table as Laid
    from calibration.tables.spec import TableSpec

console = Console(highlight=False, markup=False, soft_wrap=True)
progress_console = Console(stderr=True)
GAP = 3  # blanks between the columns of a table


def say(text: str, json_to: Path | None = None) -> None:
    """Print a line; to stderr where standard output is taken by JSON."""
    if json_to == STANDARD_OUTPUT or is_streaming():
        print(text, file=sys.stderr)
    else:
        console.print(text)


def hint(text: str, json_to: Path | None = None) -> None:
    """Print a line of advice, such as the next command; nothing with --quiet."""
    if not is_quiet():
        say(text, json_to)


def say_unnoted(why: str) -> None:
    """Tell why a jury that was looked at is not noted in the ledger, if there is a reason."""
    if why:
        print(f"medjury: {why}", file=sys.stderr)


def show(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    json_to: Path | None = None,
    *,
    words: Collection[str] = (),
) -> None:
    """Print a table; to stderr where standard output is taken by JSON. No column is cut.

    The first column and those of `words` stand left, figures right.
    """
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False
    )
    for number, name in enumerate(columns):
        first = number == 0
        table.add_column(
            name,
            justify="left" if first or name in words else "right",
            overflow="fold",
            no_wrap=not first,
        )
    for row in rows:
        table.add_row(*row)
    _console(json_to).print(table)


def show_table(table: "Laid", json_to: Path | None = None, *, notes: bool = True) -> None:
    """Print a table that is laid out, group by group, and its notes below it."""
    for group in table.groups:
        title = f"{group.heading}: {table.caption}" if group.heading else table.caption
        show(title, table.columns, group.rows, json_to, words=table.words)
    for note in table.notes if notes else ():
        say(f"  {note.text}", json_to)


def show_fitted(
    spec: "TableSpec", rows: "Sequence[Noted]", caption: str, json_to: Path | None = None
) -> None:
    """Print rows as a table, without its wide columns where they have no room."""
    from calibration.tables.numbers import TERMINAL
    from calibration.tables.spec import laid_out

    show_table(fitting(partial(laid_out, spec, rows, TERMINAL, caption=caption), json_to), json_to)


def fitting(lay_out: "Callable[..., Laid]", json_to: Path | None = None) -> "Laid":
    """Return a table as it is laid out, with `narrow=True` where it has no room otherwise."""
    table = lay_out()
    return table if table_width(table) <= room(json_to) else lay_out(narrow=True)


def seat_words(silent: Sequence[str], *, named: bool) -> str:
    """Return who was asked and gave no rating, and whether they sit on the jury: if it was named."""
    seat = "without a score from them" if named else "not in this jury"
    return f"asked, and gave no rating: {', '.join(silent)}; {seat}"


def show_decision(decision: "Decision", json_to: Path | None = None) -> None:
    """Print the answer: the decision, why, on how much it rests, and what to do next."""
    say(decision.headline, json_to)
    for line in decision.sentences:
        say(f"  {line}", json_to)
    if decision.basis:
        say(f"  Rests on: {decision.on}", json_to)
    if decision.next:
        say(f"  Next: {decision.action}", json_to)


def room(json_to: Path | None = None) -> int:
    """Return how many characters a line of the screen holds."""
    return _console(json_to).width


def width(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Return how wide `show` would print a table if it had the room."""
    cells = zip(columns, *rows, strict=True)
    longest = [max(len(line) for cell in column for line in cell.split("\n")) for column in cells]
    return sum(longest) + GAP * (len(columns) - 1)


def table_width(table: "Laid") -> int:
    """Return how wide `show_table` would print a table if it had the room."""
    return max(width(table.columns, group.rows) for group in table.groups)


def counted(number: int, thing: str) -> str:
    """Return a number with its noun, in the plural where it is not 1."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _console(json_to: Path | None) -> Console:
    taken = json_to == STANDARD_OUTPUT or is_streaming()
    return progress_console if taken else console


class At(Protocol):
    """Say how far the work is, and optionally of what total and with what words."""

    def __call__(self, done: float, total: float | None = None, words: str = "") -> None:
        """Move the bar."""


MINUTE = 60.0  # seconds


@contextmanager
def progress(task_name: str, total: float | None) -> Iterator[At]:
    """Show a bar while the block runs; yields what moves it.

    Where stderr is no terminal, a line a minute takes its place.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}% {task.fields[words]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    nobody_looks = is_quiet() or not progress_console.is_terminal
    with Progress(*columns, console=progress_console, transient=True, disable=nobody_looks) as bar:
        task = bar.add_task(task_name, total=total, words="")
        written = time.monotonic()

        def at(done: float, total: float | None = total, words: str = "") -> None:
            nonlocal written
            bar.update(task, completed=done, total=total, words=words)
            if nobody_looks and not is_quiet() and time.monotonic() - written >= MINUTE:
                written = time.monotonic()
                of = "" if total is None else f" of {total:g}"
                progress_console.print(f"{task_name}: {done:g}{of} {words}".rstrip(), markup=False)

        yield at

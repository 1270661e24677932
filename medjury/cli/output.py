"""How commands speak: words and tables to the screen, progress to stderr."""

import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from medjury.cli.files import is_streaming
from medjury.cli.options import is_quiet

if TYPE_CHECKING:
    from calibration.decision import Decision
    from calibration.tables.spec import Table as Laid
    from calibration.tables.spec import TableSpec

console = Console(highlight=False, markup=False, soft_wrap=True)
progress_console = Console(stderr=True)
GAP = 3  # blanks between the columns of a table
MINUTE = 60.0  # seconds


def emit(*parts: "str | Laid", notes: bool = True) -> None:
    """Print lines and tables in turn; to stderr where standard output is taken by JSON.

    A table is printed group by group, its notes below it if wanted.
    """
    for part in parts:
        if isinstance(part, str):
            say(part)
            continue
        for group in part.groups:
            title = f"{group.heading}: {part.caption}" if group.heading else part.caption
            show(title, part.columns, group.rows, words=part.words)
        for note in part.notes if notes else ():
            say(f"  {note.text}")


def say(text: str) -> None:
    """Print a line; to stderr where standard output is taken by JSON."""
    if is_streaming():
        print(text, file=sys.stderr)
    else:
        console.print(text)


def hint(text: str) -> None:
    """Print a line of advice, such as the next command; nothing with --quiet."""
    if not is_quiet():
        say(text)


def warn(*lines: str) -> None:
    """Print what is not as it should be to stderr; empty lines are left out."""
    for line in filter(None, lines):
        print(f"medjury: {line}", file=sys.stderr)


def show(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    words: Collection[str] = (),
    or_lines: bool = False,
) -> None:
    """Print a table; to stderr where standard output is taken by JSON. No column is cut.

    The first column and those of `words` stand left, figures right. With `or_lines` a row becomes
    a line where the screen is too narrow for the table.
    """
    cells = [[str(cell) for cell in row] for row in rows]
    if or_lines and width(columns, cells) > room():
        for first, *others in cells:
            named = (f"{name} {cell}" for name, cell in zip(columns[1:], others, strict=True))
            say(f"{first}: {', '.join(named)}")
        return
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False
    )
    for number, name in enumerate(columns):
        first_one = number == 0
        table.add_column(
            name,
            justify="left" if first_one or name in words else "right",
            overflow="fold",
            no_wrap=not first_one,
        )
    for row in cells:
        table.add_row(*row)
    (progress_console if is_streaming() else console).print(table)


def fitted(spec: "TableSpec", rows: Sequence[Any], caption: str) -> "Laid":
    """Return rows as a table without as few of its wide columns, from the last on, as have no room."""
    from calibration.tables.numbers import TERMINAL
    from calibration.tables.spec import laid_out

    table = laid_out(spec, rows, TERMINAL, caption=caption)
    wide = [column for column in spec.columns if column.wide]
    while wide and table_width(table) > room():
        columns = tuple(column for column in spec.columns if column is not wide[-1])
        spec, wide = replace(spec, columns=columns), wide[:-1]
        table = laid_out(spec, rows, TERMINAL, caption=caption)
    return table


def fitting(lay_out: "Callable[..., Laid]", *values: Any) -> "Laid":
    """Return a table as it is laid out, with `narrow=True` where it has no room otherwise."""
    table = lay_out(*values)
    return table if table_width(table) <= room() else lay_out(*values, narrow=True)


def seat_words(silent: Sequence[str], *, named: bool) -> list[str]:
    """Return a line on who was asked and gave no rating, and whether they sit on the jury: if named."""
    seat = "without a score from them" if named else "not in this jury"
    return [f"asked, and gave no rating: {', '.join(silent)}; {seat}"] if silent else []


def show_decision(decision: "Decision") -> None:
    """Print the answer: the decision, why, on how much it rests, and what to do next."""
    emit(decision.headline, *(f"  {line}" for line in decision.sentences))
    if decision.basis:
        say(f"  Rests on: {decision.on}")
    if decision.next:
        say(f"  Next: {decision.action}")


def room() -> int:
    """Return how many characters a line of the screen holds."""
    return (progress_console if is_streaming() else console).width


def width(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Return how wide `show` would print a table if it had the room."""
    cells = zip(columns, *rows, strict=True)
    longest = [max(len(line) for cell in column for line in cell.split("\n")) for column in cells]
    return sum(longest) + GAP * (len(columns) - 1)


def table_width(table: "Laid") -> int:
    """Return how wide a table would be printed if it had the room; 0 of one without rows."""
    return max((width(table.columns, group.rows) for group in table.groups), default=0)


def counted(number: int, thing: str) -> str:
    """Return a number with its noun, in the plural where it is not 1."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


class At(Protocol):
    """Say how far the work is, and optionally of what total and with what words."""

    def __call__(self, done: float, total: float | None = None, words: str = "") -> None:
        """Move the bar."""


@contextmanager
def progress(task_name: str, total: float | None = 1.0) -> Iterator[At]:
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

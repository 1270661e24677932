"""`medjury export`: the study as files that spreadsheets and statistics packages read."""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from data.errors import BadFile, BadInput
from data.queries import export as rows_of
from data.store.record import unblind
from medjury.options import Db, study_of
from medjury.output import say
from medjury.record import AUTHORS, Reason, Who, write_csv

FORMULA = ("=", "+", "-", "@", "\t", "\r")
FREE_TEXT = {"comment", "remark", "text", "note", "actor"}


def export(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="New, or empty.")],
    unblinded: Annotated[
        bool, typer.Option("--unblind", help="Write authors.csv too; recorded.")
    ] = False,
    reason: Reason = "",
    who: Who = "coordinator",
    db: Db = None,
) -> None:
    """Write ratings.csv, readings.csv, spans.csv and events.csv; no author unless asked."""
    if unblinded != bool(reason.strip()):
        raise BadInput("--unblind needs a --reason, which stays in the record, and only it does")
    engine = study_of(context, db)
    _make(folder)
    if unblinded:
        write_csv(folder / "authors.csv", AUTHORS, unblind(engine, who, reason))
    files: dict[str, tuple[tuple[str, ...], Iterator[rows_of.Cells]]] = {
        "ratings.csv": (rows_of.RATINGS, rows_of.rating_rows(engine)),
        "readings.csv": (rows_of.READINGS, rows_of.reading_rows(engine)),
        "spans.csv": (rows_of.SPANS, rows_of.span_rows(engine)),
        "events.csv": (rows_of.EVENTS, rows_of.event_rows(engine)),
    }
    for name, (columns, rows) in files.items():
        written = write_csv(folder / name, columns, cells(columns, rows))
        say(f"{name}: {written} rows")


def cells(columns: Iterable[str], rows: Iterable[rows_of.Cells]) -> Iterator[list[object]]:
    """Yield rows as a file has them; free text can be no formula in a spreadsheet."""
    free = [name in FREE_TEXT for name in columns]
    for row in rows:
        yield [
            _harmless(value) if text and isinstance(value, str) else _cell(value)
            for text, value in zip(free, row, strict=True)
        ]


def _harmless(text: str) -> str:
    return "'" + text if text.startswith(FORMULA) else text


def _cell(value: Any) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    return "" if value is None else value


def _make(folder: Path) -> None:
    """Make the folder, or refuse one that holds something."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise BadFile(f"{folder}: holds files already; name a new folder")
    except OSError as error:
        raise BadFile(f"{folder}: {error.strerror}") from error

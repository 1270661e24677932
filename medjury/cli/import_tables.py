"""Options and a first look that imports share: which files are meant, maps of columns, scales."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, islice
from pathlib import Path
from typing import Annotated

import typer

from data.errors import BadFile, BadInput
from data.importers.columns import (
    What,
    as_named,
    guess,
    mapped,
    read_map,
    toml_of,
)
from data.importers.grades import Grades, grades_named
from data.importers.medhelm_ratings import MedhelmFile
from data.importers.ratings import RatingFile
from data.importers.readers import NAMED, RUNS, Reader, opening_of, reader_of, rows_of, within
from data.importers.responses import ResponseFile
from data.importers.rows import RatingRow, ResponseRow
from data.importers.source import PIPE, Source
from data.importers.table import TableFile
from medjury.cli.options import table_format
from medjury.cli.output import counted, say

FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="By default from the content; csv, jsonl, redcap, medhelm or a tool's reader.",
    ),
]
SourceOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="By default from the content; csv, jsonl, helm, inspect, package or a tool's reader.",
    ),
]
PathsArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH...",
        help="Rows (CSV, Excel, Parquet, JSON, also .gz, - for standard input); a tool's files; folders of HELM runs; logs of Inspect; or a package.",
    ),
]
FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="PATH",
        help="Rows (CSV, Excel, Parquet, JSON, also .gz, - for standard input) or a tool's file.",
    ),
]

SHOWN, LOOKED_AT, LONGEST_SHOWN = 3, 500, 200
PLAIN = ("csv", "jsonl")
MapOption = Annotated[
    Path | None,
    typer.Option("--map", metavar="FILE", help="TOML that names columns: theirs = ours."),
]
GuessOption = Annotated[
    bool,
    typer.Option(
        "--guess", help="Print the map it would use and three rows as stored; store nothing."
    ),
]
ScaleOption = Annotated[
    str | None,
    typer.Option(
        "--scale",
        metavar="0-10|WORD,WORD",
        help="The scale of grades, words from worst to best.",
    ),
]
EncodingOption = Annotated[
    str, typer.Option("--encoding", metavar="NAME", help="Of a text that is not UTF-8.")
]


def scale_named(scale: str | None) -> Grades | None:
    """Return the scale that a user names, None where none is."""
    return None if scale is None else grades_named(scale)


def run_format(paths: Sequence[Path], form: str | None, encoding: str = "") -> str | None:
    """Return "package", "helm" or "inspect" where paths are stored as a whole, else None."""
    if form is not None:
        return form if form in {reader.name for reader in RUNS} else None
    for path in paths:
        if str(path) != PIPE and (path.is_dir() or path.is_file()):
            opening = opening_of(path if path.is_dir() else source_of(path, encoding))
            reader = reader_of(opening)
            if reader in RUNS:
                return reader.name if reader else None
    return None


def source_of(path: Path, encoding: str) -> Source:
    """Return a file's bytes, the same for all that looks at it in a command: it is read once."""
    if not path.is_file():
        return Source(path, encoding=encoding)
    state = path.stat()
    return _source(path, encoding, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4)
def _source(path: Path, encoding: str, *_: int) -> Source:
    return Source(path, encoding=encoding)


def checked_format(form: str | None, others: Iterable[str] = ()) -> None:
    """Refuse a format that is no reader's."""
    formats = (*PLAIN, *NAMED, *others)
    if form is not None and form not in formats:
        raise typer.BadParameter(f"{form!r} is none of {', '.join(formats)}", param_hint="--format")


def opened(
    paths: Sequence[Path],
    kind: What,
    form: str | None,
    map_path: Path | None,
    benchmark: str | None,
    encoding: str = "",
) -> tuple[TableFile, Reader | None]:
    """Return the rows that paths name; a folder's are those of a tool's files in it."""
    column_map = None if map_path is None else read_map(map_path, kind)
    return rows_of(_sources(paths, encoding), kind, form, column_map, benchmark)


def _sources(paths: Sequence[Path], encoding: str) -> list[Source]:
    sources: list[Source] = []
    for path in paths:
        if path.is_dir():
            own = within(path)
            if own is None:
                raise BadFile(
                    f"{path}: a folder without a finished run or a tool's files; name a file"
                )
            sources += [source_of(file, encoding) for file in own[1]]
        else:
            sources.append(source_of(path, encoding))
    return sources


def show_guess(
    paths: Sequence[Path],
    kind: What,
    form: str | None,
    map_path: Path | None,
    benchmark: str | None,
    encoding: str = "",
) -> None:
    """Print the map that a file would be read with, and its first rows as they would be stored."""
    column_map = None if map_path is None else read_map(map_path, kind)
    source = _sources(paths, encoding)[0]
    table, reader = (
        rows_of([source], kind, form, None, benchmark) if column_map is None else (None, None)
    )
    if reader is not None and table is not None:
        say(f"{source.path.name}: {reader.title}; it needs no map of columns")
        _show_rows(table, kind, benchmark)
        return
    raw = TableFile(source, table_format(form), column_map.sheet if column_map else None)
    chosen = column_map or guess(
        [record for _, record in raw.first(LOOKED_AT)], kind, benchmark or raw.path.stem
    )
    say(toml_of(chosen, raw.columns))
    own = chosen if chosen.columns else as_named(raw.columns, chosen, kind)
    _show_rows(mapped(raw, own, kind), kind, benchmark)


def _show_rows(table: TableFile, kind: What, benchmark: str | None) -> None:
    """Print the first rows as they would be stored, or what keeps them from being so."""
    try:
        if kind == "responses":
            _show_some(_told_response(row) for row in ResponseFile(table, benchmark))
        else:
            _show_some(_told_rating(row) for row in RatingFile(table))
    except BadInput as error:
        say(f"as it stands this would be refused: {error}")
    say("nothing was stored; save the map, change it where it is wrong, and give it with --map")


def _show_some(rows: Iterator[str]) -> None:
    for number, text in enumerate(islice(rows, SHOWN), start=1):
        say(f"row {number}\n{text}")


def _told_response(row: ResponseRow) -> str:
    names = ("instance_id", "benchmark", "response_id", "model", "context", "prompt")
    values = [(name, getattr(row, name)) for name in (*names, "reference", "checklist", "response")]
    values += [(f"group:{name}", value) for name, value in row.groups]
    return _lines(values)


def _told_rating(row: RatingRow) -> str:
    names = ("response_id", "rater", "kind", "criterion", "score", "comment", "rated_at")
    return _lines((name, getattr(row, name)) for name in names)


def _lines(values: Iterable[tuple[str, object]]) -> str:
    return "\n".join(
        f"  {name}: {_short(value)}" for name, value in values if value not in (None, "")
    )


def _short(value: object) -> str:
    text = repr(str(value))
    if len(text) <= LONGEST_SHOWN:
        return text
    return f"{text[:LONGEST_SHOWN]}... ({counted(len(str(value)), 'character')})"


def say_left_out(table: TableFile) -> None:
    """Say what of a file was no row, or not taken."""
    for reason, number in table.left_out.items():
        if number:
            say(f"not taken: {reason}: {number:,}")


def say_medhelm_left(rows: MedhelmFile) -> None:
    """Tell what of a file was not taken."""
    say("usernames were replaced by pseudonyms, and are not in the study")
    if rows.unmatched:
        say(
            f"left out, as their response is not in the study: {counted(len(rows.unmatched), 'row')} "
            f"({_ranges(rows.unmatched)})"
        )
    if rows.ignored:
        say(f"columns not taken: {', '.join(rows.ignored)}")


def _ranges(numbers: list[int]) -> str:
    """Return ascending numbers with runs of them shortened: 2-5, 9."""
    runs = []
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        own = [number for _, number in run]
        runs.append(str(own[0]) if len(own) == 1 else f"{own[0]}-{own[-1]}")
    return ", ".join(runs)

"""Rows of text files: CSV, JSON Lines and JSON arrays, in the encodings hospitals use.

CSV and JSON Lines are read line by line, and no row may be larger than `MOST_ROW`, so that they need
little memory whatever is in them.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from data.errors import BadFile
from data.importers.encodings import encoding_of
from data.importers.safe import Unsafe, read_json
from data.importers.source import CHUNK, START, Form, Source

MOST_JSON = 1 << 30  # bytes of an array, which is read whole
MOST_ROW = 16 << 20  # characters of a row
MOST_BRACKETS = 200_000  # of a row in JSON: each asks for memory
MOST_COLUMNS = 16_384  # as in Excel
ENDS = ("\n", "\r", '"')  # of a whole line, or of its last cell
SEPARATORS = ",;\t|"
SEPARATOR_LINE = re.compile(r'"?sep=(.)"?')  # which Excel reads and hides
LOOKED_AT = 50  # rows that tell what separates cells
Record = tuple[int, Mapping[str, Any]]
csv.field_size_limit(MOST_ROW)


@dataclass(frozen=True)
class Rows:
    """A file of rows, whatever its format; `records` begins anew at each call.

    Attributes
    ----------
    columns
        Names in the header; of JSON, the keys of the first object.
    encoding
        What the file was read as.
    records
        Gives each row's number as a spreadsheet counts, and its values by column.
    cut_off
        Whether its last line has no end, as one that was cut off.
    decimal_comma
        Whether its numbers may have a comma, as where a semicolon separates cells.
    """

    form: Form
    columns: tuple[str, ...]
    encoding: str
    records: Callable[[], Iterator[Record]]
    cut_off: bool = False
    decimal_comma: bool = False


def wrong(source: Source, why: str) -> BadFile:
    """Return the error that says what is wrong with a file as a whole."""
    return BadFile(f"{source.path}: {why}; nothing was imported")


def text_rows(source: Source, form: Form) -> Rows:
    """Return the rows of a text file."""
    encoding = encoding_of(source)
    if form in ("json", "object"):
        return (_array if form == "json" else _object_row)(source, encoding)
    return (_Csv if form == "csv" else _Lines)(source, encoding).rows()


@contextmanager
def _lines(source: Source, encoding: str) -> Iterator[io.TextIOWrapper]:
    """Open a text; refuse one that does not keep to the encoding of its mark."""
    try:
        with source.open() as file, io.TextIOWrapper(file, encoding, newline="") as text:
            yield text
    except UnicodeDecodeError as error:
        name = encoding.removesuffix("-sig").upper()
        why = f"begins as {name} and does not go on so; it is cut off or damaged: save it as UTF-8"
        raise wrong(source, why) from error


def _rows_of_lines(
    source: Source, text: io.TextIOWrapper, rows_in: Callable[[Iterator[str]], Iterator[Any]]
) -> Iterator[Any]:
    """Yield what is made of lines, and refuse what asks for more than `MOST_ROW` of them."""
    taken = 0

    def lines() -> Iterator[str]:
        nonlocal taken
        while line := text.readline(MOST_ROW + 1):
            taken += len(line)
            if taken > MOST_ROW:
                why = f"a row is over {MOST_ROW:,} characters; is a quotation mark missing?"
                raise wrong(source, why)
            yield line

    for row in rows_in(lines()):
        taken = 0
        yield row


class _Csv:
    """A CSV file; a first line sep=X says what separates its cells, else it is found outside quotes.

    Columns without a name, which a spreadsheet leaves at the end, are none if their cells are empty;
    last cells that are missing, as Excel leaves them out, are empty.
    """

    def __init__(self, source: Source, encoding: str) -> None:
        self.source, self.encoding = source, encoding
        with _lines(source, encoding) as text:
            start = text.read(START)
        first, _, _ = start.partition("\n")
        named = SEPARATOR_LINE.fullmatch(first.rstrip("\r").lstrip("\ufeff"))
        self.has_line = named is not None
        self.delimiter = named[1] if named else _separator(start)

    def rows(self) -> Rows:
        with _lines(self.source, self.encoding) as text:
            columns, _ = self._header(self._reader(text))
        comma = self.delimiter in ";\t"
        return Rows("csv", columns, self.encoding, self._records, self._cut_off(), comma)

    def _reader(self, text: io.TextIOWrapper) -> Iterator[list[str]]:
        if self.has_line:
            text.readline()
        return _rows_of_lines(
            self.source,
            text,
            lambda lines: csv.reader(lines, delimiter=self.delimiter, strict=True),
        )

    def _records(self) -> Iterator[Record]:
        with _lines(self.source, self.encoding) as text:
            rows = self._reader(text)
            (columns, places), number = self._header(rows), 1
            try:
                for number, cells in enumerate(rows, start=2):
                    if any(cells):
                        yield number, self._row(number, columns, places, cells)
            except csv.Error as error:
                raise wrong(self.source, f"row {number + 1} is not CSV ({error})") from error

    def _row(
        self, number: int, columns: tuple[str, ...], places: Collection[int], cells: list[str]
    ) -> dict[str, str]:
        width = len(places)
        own = [cell for place, cell in enumerate(cells) if place in places]
        if any(cell for place, cell in enumerate(cells) if place not in places):
            why = f"row {number} has {len(cells)} cells, the header {width}"
            raise wrong(self.source, f"{why}; is a quotation mark or a separator missing?")
        if 2 * len(own) < width:
            why = f"row {number} has {len(own)} cells, the header {width}"
            raise wrong(self.source, f"{why}; is a line break or a separator in the wrong place?")
        return dict(zip(columns, [*own, *[""] * (width - len(own))], strict=True))

    def _header(self, rows: Iterator[list[str]]) -> tuple[tuple[str, ...], Collection[int]]:
        """Return the names of columns, and the places of those that have one."""
        try:
            names = next(rows, [])
        except csv.Error as error:
            raise wrong(self.source, f"not a CSV file ({error})") from error
        places = {place: name for place, name in enumerate(names) if name.strip()}
        return header(self.source, [*places.values()] or names), places.keys()

    def _cut_off(self) -> bool:
        """Tell whether the last line has no end; packed files check that they are complete."""
        if self.source.packed:
            return False
        with self.source.raw() as file:
            mark = file.read(2) if self.encoding == "utf-16" else b""
            file.seek(-(len(mark) or 1), io.SEEK_END)
            last = (mark + file.read()).decode(self.encoding if mark else "latin-1", "replace")
        return last not in ENDS


def _separator(start: str) -> str:
    """Return what separates the cells of a text: it makes most columns, the same in each row."""

    def fit(separator: str) -> tuple[float, int]:
        try:
            rows = [row for row in csv.reader(io.StringIO(start), delimiter=separator) if row]
        except csv.Error:
            return 0.0, 0
        rows = rows[:LOOKED_AT] if len(rows) > 1 else rows
        width = len(rows[0]) if rows else 0
        alike = sum(len(row) == width for row in rows[:-1] or rows)
        return (alike / len(rows[:-1] or rows) if width > 1 else 0.0), width

    return max(SEPARATORS, key=fit)


def header(source: Source, names: list[str]) -> tuple[str, ...]:
    """Return the names of columns, each once, or refuse the file."""
    if len(names) > MOST_COLUMNS:
        raise wrong(source, f"its header has over {MOST_COLUMNS:,} columns")
    columns = tuple(name.strip() for name in names)
    repeated = sorted(name for name, times in Counter(columns).items() if times > 1)
    if repeated:
        from data.importers.rows import UNNAMED, is_name  # loads the tables of a study

        shown = repr(repeated[0]) if is_name(repeated[0]) else UNNAMED
        raise wrong(source, f"column {shown} stands twice in the header")
    return columns


class _Lines:
    """JSON Lines: an object a line."""

    def __init__(self, source: Source, encoding: str) -> None:
        self.source, self.encoding = source, encoding

    def rows(self) -> Rows:
        first = next((tuple(cells) for _, cells in self._records()), ())
        return Rows("jsonl", first, self.encoding, self._records)

    def _records(self) -> Iterator[Record]:
        with _lines(self.source, self.encoding) as text:
            for number, line in enumerate(_rows_of_lines(self.source, text, iter), start=1):
                if line.strip():
                    if line.count("[") + line.count("{") > MOST_BRACKETS:
                        raise wrong(
                            self.source, f"row {number} has over {MOST_BRACKETS:,} brackets"
                        )
                    try:
                        yield number, _json_row(read_json(line))
                    except Unsafe as error:
                        raise wrong(self.source, f"row {number} {error}") from error


def _json_row(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Unsafe(f"is {type(value).__name__}, not a JSON object")
    return value


def _array(source: Source, encoding: str) -> Rows:
    """Return the objects of a JSON array."""
    items = json_document(source, encoding)
    if not isinstance(items, list):
        raise wrong(source, "JSON, and not an array of rows")
    if not items:
        raise wrong(source, "the JSON array is empty")
    for number, item in enumerate(items, start=1):
        try:
            _json_row(item)
        except Unsafe as error:
            raise wrong(source, f"row {number} {error}") from error
    return Rows("json", tuple(items[0]), encoding, lambda: iter(enumerate(items, start=1)))


def _object_row(source: Source, encoding: str) -> Rows:
    """Return one JSON object as one row."""
    keys = json_document(source, encoding)
    if not isinstance(keys, dict):
        raise wrong(source, "not a JSON object")
    return Rows("object", tuple(keys), encoding, lambda: iter([(1, keys)]))


def json_document(source: Source, encoding: str) -> Any:
    """Return the content of a JSON file."""
    if source.size > MOST_JSON:
        raise wrong(source, "over 1 GiB of JSON; save it as JSON Lines")
    with _lines(source, encoding) as text:
        body = "".join(iter(partial(text.read, CHUNK), ""))
    try:
        return read_json(body)
    except Unsafe as error:
        raise wrong(source, f"{error}; copy or save it again") from error

"""Rows of text files: CSV, JSON Lines and JSON arrays, in the encodings hospitals use."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from data.errors import BadFile
from data.importers.encodings import encoding_of
from data.importers.rows import UNNAMED, is_name
from data.importers.source import START, Form, Source

MOST_JSON = 1 << 30  # bytes of an array, which is read whole
ENDS = ("\n", "\r", '"')  # of a whole line, or of its last cell
SEPARATORS = ",;\t|"
SEPARATOR_LINE = re.compile(r'"?sep=(.)"?')  # which Excel reads and hides
LOOKED_AT = 50  # rows that tell what separates cells
Record = tuple[int, Mapping[str, Any]]
csv.field_size_limit(1 << 30)


@dataclass(frozen=True)
class Rows:
    """A file of rows, whatever its format; `records` begins anew at each call.

    Attributes
    ----------
    columns
        Names in the header; of JSON, the keys of the first object.
    records
        Gives each row's number as a spreadsheet counts, and its values by column.
    encoding
        What the file was read as.
    cut_off
        Whether its last line has no end, as one that was cut off.
    decimal_comma
        Whether its numbers may have a comma, as where a semicolon separates cells.
    """

    form: Form
    columns: tuple[str, ...]
    records: Callable[[], Iterator[Record]]
    encoding: str
    cut_off: bool = False
    decimal_comma: bool = False


class NotARow(ValueError):
    """A line that is no row, with the reason, which quotes none of its text."""


class Pairs(list[tuple[str, Any]]):
    """A JSON object as pairs: a key may occur twice, with two values."""


def wrong(source: Source, why: str) -> BadFile:
    """Return the error that says what is wrong with a file as a whole."""
    return BadFile(f"{source.path}: {why}; nothing was imported")


def pairs_of(line: str) -> Pairs:
    """Return the keys and values of a JSON object in their order.

    Raises
    ------
    NotARow
        If it is no object, gives a key twice, or holds what no database can.
    """
    record = _parse_json(line)
    if not isinstance(record, Pairs):
        raise NotARow(f"is {type(record).__name__}, not a JSON object")
    return _each_once(record)


def text_rows(source: Source, form: Form) -> Rows:
    """Return the rows of a text file."""
    encoding = encoding_of(source)
    if form == "json":
        return _array(source, encoding)
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
        return Rows("csv", columns, self._records, self.encoding, self._cut_off(), comma)

    def _reader(self, text: io.TextIOWrapper) -> Iterator[list[str]]:
        if self.has_line:
            text.readline()
        return csv.reader(text, delimiter=self.delimiter, strict=True)

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
    columns = tuple(name.strip() for name in names)
    repeated = sorted(name for name, times in Counter(columns).items() if times > 1)
    if repeated:
        shown = repr(repeated[0]) if is_name(repeated[0]) else UNNAMED
        raise wrong(source, f"column {shown} stands twice in the header")
    return columns


class _Lines:
    """JSON Lines: an object a line."""

    def __init__(self, source: Source, encoding: str) -> None:
        self.source, self.encoding = source, encoding

    def rows(self) -> Rows:
        first = next((tuple(cells) for _, cells in self._records()), ())
        return Rows("jsonl", first, self._records, self.encoding)

    def _records(self) -> Iterator[Record]:
        with _lines(self.source, self.encoding) as text:
            for number, line in enumerate(text, start=1):
                if line.strip():
                    try:
                        yield number, dict(pairs_of(line))
                    except NotARow as error:
                        raise wrong(self.source, f"row {number} {error}") from error


def _array(source: Source, encoding: str) -> Rows:
    """Return the objects of a JSON array."""
    items = json_text(source, encoding)
    if not isinstance(items, list) or isinstance(items, Pairs):
        raise wrong(source, "JSON, and not an array of rows")
    if not items:
        raise wrong(source, "the JSON array is empty")
    records: list[Record] = []
    for number, item in enumerate(items, start=1):
        if not isinstance(item, Pairs):
            raise wrong(source, f"row {number} is {type(item).__name__}, not a JSON object")
        try:
            records.append((number, dict(_each_once(item))))
        except NotARow as error:
            raise wrong(source, f"row {number} {error}") from error
    return Rows("json", tuple(records[0][1]), lambda: iter(records), encoding)


def json_text(source: Source, encoding: str | None = None) -> Any:
    """Return the content of a JSON file, objects as `Pairs`."""
    with _lines(source, encoding or encoding_of(source)) as text:
        body = text.read(MOST_JSON + 1)
    if len(body) > MOST_JSON:
        raise wrong(source, "over 1 GiB of JSON; save it as JSON Lines")
    try:
        return _parse_json(body, "whole JSON")
    except NotARow as error:
        raise wrong(source, f"{error}; copy or save it again") from error


def json_object(source: Source) -> Mapping[str, Any]:
    """Return the one JSON object of a file, with nested objects as dictionaries."""
    body = json_text(source)
    if not isinstance(body, Pairs):
        raise wrong(source, "not a JSON object")
    plainly = plain(body)
    return plainly if isinstance(plainly, dict) else {}


def object_row(source: Source) -> Rows:
    """Return one JSON object as one row."""
    keys = json_object(source)
    return Rows("object", tuple(keys), lambda: iter([(1, keys)]), encoding_of(source))


def plain(value: Any) -> Any:
    """Return JSON with objects as dictionaries; of a repeated key the last value."""
    if isinstance(value, Pairs):
        return {key: plain(item) for key, item in value}
    return [plain(item) for item in value] if isinstance(value, list) else value


def _each_once(pairs: Pairs) -> Pairs:
    if len(pairs) > len({key for key, _ in pairs}):
        raise NotARow("gives a value twice, under the same key")
    return pairs


def _parse_json(text: str, name: str = "JSON") -> Any:
    """Return JSON, or raise `NotARow` with what is wrong; bare NaN is allowed."""
    try:
        value = json.loads(text, strict=False, object_pairs_hook=Pairs)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        position = f"at {error.colno}" if error.lineno == 1 else f"in line {error.lineno}"
        raise NotARow(f"is not {name} ({error.msg} {position})") from error
    except UnicodeEncodeError as error:
        raise NotARow("holds half a surrogate pair, which is no text") from error
    except RecursionError as error:
        raise NotARow("is nested too deep") from error
    except ValueError as error:  # of int(), which takes no number of any length
        raise NotARow("has a number that is too long") from error
    return value

"""Rows of text files: CSV, JSON Lines and JSON arrays, in the encodings hospitals use."""

import codecs
import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from data.errors import BadFile
from data.importers.rows import UNNAMED, is_name
from data.importers.source import CHUNK, Form, Source, bom_of

MOST_JSON = 1 << 30  # bytes of an array, which is read whole
ENDS = ("\n", "\r", '"')  # of a whole line, or of its last cell
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
    """

    form: Form
    columns: tuple[str, ...]
    records: Callable[[], Iterator[Record]]
    encoding: str
    cut_off: bool = False


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


def encoding_of(source: Source) -> str:
    """Return the encoding: by its mark, else UTF-8 if the whole file is, else Windows-1252."""
    if marked := bom_of(source.start()[:4]):
        return marked
    for name in ("utf-8", "cp1252"):
        if _is_encoded_as(source, name):
            return name
    raise BadFile(f"{source.path}: neither UTF-8, UTF-16 nor Windows-1252; save it as UTF-8")


def _is_encoded_as(source: Source, name: str) -> bool:
    """Tell whether a whole file is in an encoding, read in pieces."""
    decoder = codecs.getincrementaldecoder(name)()
    with source.open() as file:
        try:
            while piece := file.read(CHUNK):
                decoder.decode(piece)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


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
    """A CSV file with commas, semicolons or tabs; columns without name and cells are none."""

    def __init__(self, source: Source, encoding: str) -> None:
        self.source, self.encoding = source, encoding
        with _lines(source, encoding) as text:
            first = text.readline()
        self.delimiter = max(",;\t", key=first.count)

    def rows(self) -> Rows:
        with _lines(self.source, self.encoding) as text:
            columns = self._header(csv.reader(text, delimiter=self.delimiter))
        return Rows("csv", columns, self._records, self.encoding, self._cut_off())

    def _records(self) -> Iterator[Record]:
        with _lines(self.source, self.encoding) as text:
            rows = csv.reader(text, delimiter=self.delimiter, strict=True)
            columns, number = self._header(rows), 1
            try:
                for number, cells in enumerate(rows, start=2):
                    if not any(cells):
                        continue
                    if len(cells) != len(columns):
                        raise wrong(
                            self.source,
                            f"row {number} has {len(cells)} cells, the header {len(columns)}; "
                            "is a quotation mark or a separator missing?",
                        )
                    yield number, dict(zip(columns, cells, strict=True))
            except csv.Error as error:
                raise wrong(self.source, f"row {number + 1} is not CSV ({error})") from error

    def _header(self, rows: Iterator[list[str]]) -> tuple[str, ...]:
        try:
            return header(self.source, next(rows, []))
        except csv.Error as error:
            raise wrong(self.source, f"not a CSV file ({error})") from error

    def _cut_off(self) -> bool:
        """Tell whether the last line has no end; packed files check that they are complete."""
        if self.source.packed:
            return False
        with self.source.raw() as file:
            mark = file.read(2) if self.encoding == "utf-16" else b""
            file.seek(-(len(mark) or 1), io.SEEK_END)
            last = (mark + file.read()).decode(self.encoding if mark else "latin-1", "replace")
        return last not in ENDS


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

"""Files of rows: CSV (comma, semicolon or tab) and JSON Lines, in the encodings hospitals use."""

import codecs
import csv
import io
import json
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal

from data.errors import BadFile
from data.importers.rows import UNNAMED, Origin, is_name

BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
CHUNK = 1 << 20
Format = Literal["csv", "jsonl"]
Cells = Mapping[str, str]
SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
WORKBOOKS = {".xlsx", ".xlsm", ".xlsb", ".xls"}
BINARY = {
    b"PK\x03\x04": "an Excel workbook or a zip",
    b"\xd0\xcf\x11\xe0": "an Excel workbook or another file of Office",
    b"%PDF": "a PDF",
    b"SQLite format 3": "a database",
}
ENDS = ("\n", "\r", '"')  # of a whole line, or of its last cell
LONGEST_HEADER = 300  # characters of a header in a message
csv.field_size_limit(1 << 30)


def encoding_of(path: Path) -> str:
    """Return the encoding by its mark, else UTF-8 if all of the file is, else Windows-1252."""
    with path.open("rb") as file:
        start = file.read(4)
        for mark, name in BOMS:
            if start.startswith(mark):
                return name
    for name in ("utf-8", "cp1252"):
        if _decodes(path, name):
            return name
    raise BadFile(f"{path}: neither UTF-8, UTF-16 nor Windows-1252; save it as UTF-8")


def last_sign(path: Path, encoding: str) -> str:
    """Return a file's last byte as text; in UTF-16 its last two, read as its mark says."""
    with path.open("rb") as file:
        mark = file.read(2) if encoding == "utf-16" else b""
        file.seek(-(len(mark) or 1), io.SEEK_END)
        return (mark + file.read()).decode(encoding if mark else "latin-1", "replace")


def _decodes(path: Path, encoding: str) -> bool:
    """Tell whether all of a file is in an encoding, reading it in pieces."""
    decoder = codecs.getincrementaldecoder(encoding)()
    with path.open("rb") as file:
        try:
            while piece := file.read(CHUNK):
                decoder.decode(piece)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


class NotARow(ValueError):
    """A line that is no row, with the reason; none of its text is quoted."""


class Pairs(list[tuple[str, Any]]):
    """A JSON object as it stands: a key may be there twice, with two values."""


def pairs_of(line: str) -> Pairs:
    """Return the keys and values of a JSON object in their order.

    Raises
    ------
    NotARow
        If it is no object, gives a key twice, or holds what no database can.
    """
    try:
        found = json.loads(line, strict=False, object_pairs_hook=Pairs)
        if "\\u" in line:
            json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise NotARow(f"is not JSON ({error.msg} at {error.colno})") from error
    except UnicodeEncodeError as error:
        raise NotARow("holds half a surrogate pair, which is no text") from error
    except RecursionError as error:
        raise NotARow("is nested too deep") from error
    except ValueError as error:  # of int(), which takes no number of any length
        raise NotARow("has a number that is too long") from error
    if not isinstance(found, Pairs):
        raise NotARow(f"is {type(found).__name__}, not a JSON object")
    if len(found) > len({key for key, _ in found}):
        raise NotARow("gives a value twice, under the same key")
    return found


class TableFile:
    """A file of rows, read as it is iterated: memory holds one row, whatever the file's length.

    Iterating gives (origin, cells); every cell is text, an absent or null one is "".

    Attributes
    ----------
    columns
        Names in the header; for JSON Lines, the keys of the first object.
    encoding
        What the file was read as: UTF-8, UTF-16 by its mark, or else Windows-1252.
    read_bytes, size_bytes
        How far reading has come, for a progress bar.

    Raises
    ------
    BadFile
        If the file is absent, empty, binary, or not of the format.
    """

    def __init__(self, path: Path, form: Format | None = None) -> None:
        self.path = path
        self.size_bytes = _size(path)
        _refuse_binary(path)
        self.form = form or _form(path)
        self.encoding = encoding_of(path)
        self._raw: BinaryIO | None = None
        self.columns = self._columns()

    @property
    def read_bytes(self) -> int:
        """Bytes read so far."""
        return self._raw.tell() if self._raw and not self._raw.closed else self.size_bytes

    def __iter__(self) -> Iterator[tuple[Origin, Cells]]:
        empty = True
        with self._decoding(), self.path.open("rb") as self._raw:
            lines = io.TextIOWrapper(self._raw, encoding=self.encoding, newline="")
            for row in self._csv(lines) if self.form == "csv" else self._jsonl(lines):
                empty = False
                yield row
        if empty:
            raise self.wrong("the file has a header and no rows")

    @property
    def doubt(self) -> str:
        """Return what to say of a table whose last line has no end, as one that was cut off."""
        if self.form != "csv" or last_sign(self.path, self.encoding) in ENDS:
            return ""
        return (
            f"the last line of {self.path.name} has no end: if the file was cut off there, so is "
            "its last cell"
        )

    @property
    def header(self) -> str:
        """Return the columns' names for a message, unless they look like a row of texts."""
        if not any(self.columns):
            return "this file has none"
        if not all(map(is_name, self.columns)):
            return "the first row of this file is no header"
        listed = ", ".join(self.columns)
        if len(listed) > LONGEST_HEADER:
            return f"this file has {len(self.columns)} others, such as {self.columns[0]}"
        return f"this file has {listed}"

    def refuse_new_keys(self, origin: Origin, cells: Cells, known: Container[str]) -> None:
        """Refuse a row of JSON Lines with a criterion that the first one lacks: it would be lost."""
        for name in cells.keys() - set(self.columns):
            if name not in known:
                raise origin.wrong(
                    name, cells[name], "the first row has no such key; give it there too, or null"
                )

    def wrong(self, why: str) -> BadFile:
        """Return the error that says what is wrong with the file as a whole."""
        return BadFile(f"{self.path}: {why}; nothing was imported")

    def _columns(self) -> tuple[str, ...]:
        with self._decoding(), self.path.open(encoding=self.encoding, newline="") as lines:
            if self.form == "csv":
                return self._header(csv.reader(lines, delimiter=self._delimiter()))
            return next((tuple(cells) for _, cells in self._jsonl(lines)), ())

    @contextmanager
    def _decoding(self) -> Iterator[None]:
        """Refuse a file whose first signs say an encoding that the rest of it is not in."""
        try:
            yield
        except UnicodeDecodeError as error:
            name = "UTF-16" if self.encoding == "utf-16" else "UTF-8"
            raise self.wrong(
                f"begins as {name} and does not go on so; it is cut off or damaged: save it as UTF-8"
            ) from error

    def _delimiter(self) -> str:
        """Return the sign that splits the header into most columns."""
        with self.path.open(encoding=self.encoding, newline="") as lines:
            header = lines.readline()
        return max(",;\t", key=header.count)

    def _header(self, rows: Iterator[list[str]]) -> tuple[str, ...]:
        try:
            columns = tuple(name.strip() for name in next(rows, []))
        except csv.Error as error:
            raise self.wrong(f"not a CSV file ({error})") from error
        repeated = sorted(name for name, times in Counter(columns).items() if times > 1)
        if repeated:
            shown = repr(repeated[0]) if is_name(repeated[0]) else UNNAMED
            raise self.wrong(f"column {shown} stands twice in the header")
        return columns

    def _csv(self, lines: io.TextIOWrapper) -> Iterator[tuple[Origin, Cells]]:
        rows = csv.reader(lines, delimiter=self._delimiter(), strict=True)
        columns = self._header(rows)
        number = 1
        try:
            for number, cells in enumerate(rows, start=2):
                if not any(cells):
                    continue
                if len(cells) != len(columns):
                    raise self.wrong(
                        f"row {number} has {len(cells)} cells, the header {len(columns)}; "
                        "is a quotation mark or a separator missing?"
                    )
                yield Origin(self.path.name, number), dict(zip(columns, cells, strict=True))
        except csv.Error as error:
            raise self.wrong(f"row {number + 1} is not CSV ({error})") from error

    def _jsonl(self, lines: io.TextIOWrapper) -> Iterator[tuple[Origin, Cells]]:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                origin = Origin(self.path.name, number)
                yield origin, {key: _cell(origin, key, v) for key, v in self._pairs(number, line)}

    def _pairs(self, number: int, line: str) -> Pairs:
        try:
            return pairs_of(line)
        except NotARow as error:
            raise self.wrong(f"row {number} {error}") from error


def _cell(origin: Origin, column: str, value: object) -> str:
    """Return a JSON value as text; a list or an object is not a cell."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | list):
        raise origin.wrong(column, value, "must be text or a number")
    return str(value)


def _form(path: Path) -> Format:
    """Return the format by the file's ending."""
    found = SUFFIXES.get(path.suffix.lower())
    if found is None:
        endings = " ".join(SUFFIXES)
        raise BadFile(f"{path}: cannot tell its format; name it {endings} or give --format")
    return found


def _size(path: Path) -> int:
    """Return the size in bytes of a file that can be read and is not empty."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, io.SEEK_END)
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror}") from error
    if size == 0:
        raise BadFile(f"{path}: the file is empty")
    return size


def _refuse_binary(path: Path) -> None:
    """Refuse what is plainly not text, saying what it is."""
    with path.open("rb") as file:
        start = file.read(16)
    for mark, kind in BINARY.items():
        if start.startswith(mark):
            what = "an Excel workbook" if path.suffix.lower() in WORKBOOKS else kind
            raise BadFile(f"{path}: this is {what}; save the rows as CSV or JSON Lines")

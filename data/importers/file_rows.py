"""Rows of a file of any form, which is read here or in a process of its own.

Plain CSV and JSON Lines are read here, line by line: no row may be larger than `MOST_ROW`, so that they
need little memory whatever is in them. What must be unpacked or read whole (Excel, Parquet, JSON
arrays and objects, gzip) is read by a child; the rows of a small file are kept, so that it is read once.
Of a workbook one sheet with a header and no merged cells is read. Nested columns of Parquet are lists
and dictionaries, as in JSON.

What a hospital's file was saved in is nowhere written. A text that is not UTF-8 is taken for
Windows-1252 only if its words are such as Western languages have; that a file can be decoded so shows
nothing, since nearly all bytes can. Stored texts are never changed, so that what is in doubt is
refused, with two words of it, until somebody says which encoding it is.
"""

import codecs
import csv
import io
import math
import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from functools import partial
from itertools import chain, islice, repeat
from typing import Any
from weakref import WeakKeyDictionary

from data.errors import BadFile
from data.importers.safe import (
    BROKEN,
    Unsafe,
    in_child,
    read_json,
    refuse_declarations,
    wrong,
    zip_parts,
)
from data.importers.source import CHUNK, START, Form, Source, bom_of

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


def _csv(source: Source, encoding: str) -> Rows:
    """Return the rows of a CSV file; a first line sep=X says what separates cells, else it is found.

    Columns without a name, which a spreadsheet leaves at the end, are none if their cells are empty;
    last cells that are missing, as Excel leaves them out, are empty.
    """
    with _lines(source, encoding) as text:
        start = text.read(START)
    named = SEPARATOR_LINE.fullmatch(start.partition("\n")[0].rstrip("\r").lstrip("\ufeff"))
    delimiter = named[1] if named else _separator(start)

    def rows() -> Iterator[list[str]]:
        number, read = 0, partial(csv.reader, delimiter=delimiter, strict=True)
        with _lines(source, encoding) as text:
            if named:
                text.readline()
            try:
                for cells in _rows_of_lines(source, text, read):
                    number += 1
                    yield cells
            except csv.Error as error:
                why = f"row {number + 1} is not CSV" if number else "not a CSV file"
                raise wrong(source, f"{why} ({error})") from error

    def records() -> Iterator[Record]:
        every = rows()
        width = len(next(every, ()))
        for number, cells in enumerate(every, start=2):
            if len(cells) == width == len(columns):
                if any(cells):
                    yield number, dict(zip(columns, cells, strict=True))
            elif any(cells):
                yield (
                    number,
                    dict(zip(columns, _fitted(source, number, cells, places), strict=True)),
                )

    names = next(rows(), [])
    places = {place: name for place, name in enumerate(names) if name.strip()}
    columns = header(source, [*places.values()] or names)
    return Rows(
        "csv", columns, encoding, records, _is_cut_off(source, encoding), delimiter in ";\t"
    )


def _fitted(
    source: Source, number: int, cells: list[str], places: Collection[int]
) -> Iterator[str]:
    """Return the cells of the columns that have a name; refuse others, and a row of less than half."""
    width, own = len(places), [cell for place, cell in enumerate(cells) if place in places]
    why = f"row {number} has {len(cells)} cells, the header {width}; is"
    if any(cell for place, cell in enumerate(cells) if place not in places):
        raise wrong(source, f"{why} a quotation mark or a separator missing?")
    if 2 * len(own) < width:
        raise wrong(source, f"{why} a line break or a separator in the wrong place?")
    return islice(chain(own, repeat("")), width)


def _is_cut_off(source: Source, encoding: str) -> bool:
    """Tell whether the last line has no end; packed files check that they are complete."""
    if source.packed:
        return False
    with source.raw() as file:
        mark = file.read(2) if encoding == "utf-16" else b""
        file.seek(-(len(mark) or 1), io.SEEK_END)
        last = (mark + file.read()).decode(encoding if mark else "latin-1", "replace")
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


def _json_lines(source: Source, encoding: str) -> Rows:
    """Return the rows of JSON Lines: an object a line."""

    def records() -> Iterator[Record]:
        with _lines(source, encoding) as text:
            for number, line in enumerate(_rows_of_lines(source, text, iter), start=1):
                if not line.strip():
                    continue
                if line.count("[") + line.count("{") > MOST_BRACKETS:
                    raise wrong(source, f"row {number} has over {MOST_BRACKETS:,} brackets")
                try:
                    row = read_json(line)
                except Unsafe as error:
                    raise wrong(source, f"row {number} {error}") from error
                yield number, _json_row(source, number, row)

    first = next((tuple(cells) for _, cells in records()), ())
    return Rows("jsonl", first, encoding, records)


def _json_row(source: Source, number: int, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise wrong(source, f"row {number} is {type(value).__name__}, not a JSON object")
    return value


def _document(source: Source, form: Form, encoding: str) -> Rows:
    """Return the objects of a JSON array, or one JSON object as one row."""
    if source.size > MOST_JSON:
        raise wrong(source, "over 1 GiB of JSON; save it as JSON Lines")
    with _lines(source, encoding) as text:
        body = "".join(iter(partial(text.read, CHUNK), ""))
    try:
        items = read_json(body)
    except Unsafe as error:
        raise wrong(source, f"{error}; copy or save it again") from error
    if form == "object":
        if not isinstance(items, dict):
            raise wrong(source, "not a JSON object")
        items = [items]
    if not isinstance(items, list):
        raise wrong(source, "JSON, and not an array of rows")
    if not items:
        raise wrong(source, "the JSON array is empty")
    rows = [(number, _json_row(source, number, item)) for number, item in enumerate(items, 1)]
    return Rows(form, tuple(items[0]), encoding, lambda: iter(rows))


KEPT = 500  # rows, and characters of them, that are kept of a file
KEPT_CHARACTERS = 4_000_000
_kept: WeakKeyDictionary[Source, dict[tuple[Form, str | None], Rows]] = WeakKeyDictionary()


def file_rows(source: Source, form: Form, sheet: str | None = None) -> Rows:
    """Return the rows of a file; of a workbook those of a sheet.

    Raises
    ------
    BadFile
        If it is damaged, or needs more than the limits of `safe.py`.
    """
    if form in ("csv", "jsonl") and not source.packed:
        return _read(source, form, sheet)
    known = _kept.setdefault(source, {})
    if (form, sheet) not in known:
        known[form, sheet] = _read_by_child(source, form, sheet)
    return known[form, sheet]


def _read_by_child(source: Source, form: Form, sheet: str | None) -> Rows:
    """Return rows that a child reads: those of a small file at once, others when they are asked for."""

    def read() -> Iterator[Any]:
        return in_child(_items, source, form, sheet, name=source.path, size=source.size)

    items = read()
    rows: Rows = next(items)
    first: list[Record] = []
    characters = 0
    for record in items:
        first.append(record)
        characters += sum(len(str(value)) for value in record[1].values())
        if len(first) > KEPT or characters > KEPT_CHARACTERS:
            return replace(rows, records=lambda: islice(read(), 1, None))
    return replace(rows, records=lambda: iter(first))


def _items(source: Source, form: Form, sheet: str | None) -> Iterator[Any]:
    """Yield what is known of a file's rows, and then each of them."""
    rows = _read(source, form, sheet)
    yield replace(rows, records=no_records)
    yield from rows.records()


def _read(source: Source, form: Form, sheet: str | None) -> Rows:
    """Return the rows of a file, which are read in this process."""
    if form == "xlsx":
        return workbook_rows(source, sheet)
    if form == "parquet":
        return parquet_rows(source)
    encoding = encoding_of(source)
    if form in ("json", "object"):
        return _document(source, form, encoding)
    return _csv(source, encoding) if form == "csv" else _json_lines(source, encoding)


def no_records() -> Iterator[Record]:
    """Return none: of a head that is handed over, the records follow by themselves."""
    return iter(())


LONGEST = 200  # characters of a word that are looked at
# UTF-8 that was read as Windows-1252 or Latin-1, and saved so.
GARBLED = re.compile(
    "[\u00c3\u00c5][\u0080-\u00bf\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u2013-\u2122]"
    "|\u00e2(\u20ac|\u0080)|\u00c2[\u00a0-\u00bf]"
)
LETTER = "[^\\W\\d_]"
ODD = (  # what no word of a Western language has
    re.compile("[^\\W\\d_\x00-\x7f]{3}"),  # three letters beyond ASCII in a row
    re.compile(f"{LETTER}[^\\w\\s\x00-\x7f\u2019\u2018\u00b7\u2013\u2014\u2026\u00ad]{LETTER}"),
    re.compile(
        f"{LETTER}[\u00b9\u00b2\u00b3\u00aa\u00ba]{LETTER}|[\u00bc-\u00be]{LETTER}"
    ),  # digits, halves
    re.compile(
        "[a-z\u00df-\u00ff][\u00c0-\u00de\u0160\u017d\u0178]"
    ),  # a capital after a small letter
    re.compile(
        "[\u0160\u0161\u017d\u017e\u00f0\u00de\u00fe\u00fd\u00dd]"
    ),  # of the Baltic, Czech, Turkish
    re.compile("[\u00f5\u00fb].*[\u00f6\u00fc]|[\u00f6\u00fc].*[\u00f5\u00fb]"),  # Hungarian
)
SHOWN, SHORT = 2, 40  # words in a message, and characters of one
HOW = "save it as UTF-8, or name its encoding with --encoding (such as cp1250, cp1251 or mac_roman)"
DOUBTS = {  # an encoding that fits -> what is in doubt of its words, and what to do
    "utf-8": (
        "its text looks garbled: it was read in a wrong encoding and saved so",
        "export it anew, or give --encoding utf-8 if it is meant so",
    ),
    "cp1252": ("it is not UTF-8, and cannot be told to be Windows-1252", HOW),
}


def encoding_of(source: Source) -> str:
    """Return the encoding: as it is named, by its mark, else UTF-8, else Windows-1252.

    Raises
    ------
    BadFile
        If it may be another, if two are mixed, or if the text was garbled before it was saved.
    """
    if source.encoding:
        try:
            name = codecs.lookup(source.encoding).name
            _doubtful(source, name, ())
        except LookupError as error:
            why = f"--encoding {source.encoding}: no encoding that is known here"
            raise BadFile(why) from error
        except UnicodeDecodeError as error:
            raise wrong(source, f"is not in {source.encoding}") from error
        return name
    if marked := bom_of(source.start()[:4]):
        return marked
    for name in ("utf-8", "cp1252"):
        try:
            found = _doubtful(source, name, (*ODD, GARBLED) if name == "cp1252" else (GARBLED,))
        except UnicodeDecodeError:
            continue
        if not found:
            return name
        words = " and ".join(map(repr, found))
        why, to_do = DOUBTS[name]
        raise wrong(source, f"{why} (it would read {words}); {to_do}")
    raise BadFile(f"{source}: neither UTF-8, UTF-16 nor Windows-1252; {HOW}")


def _doubtful(source: Source, name: str, odd: Sequence[re.Pattern[str]]) -> list[str]:
    """Decode a whole file, piece by piece; return two of its words that are odd, if some are.

    Raises
    ------
    UnicodeDecodeError
        If it is not in that encoding.
    """
    decoder, found = codecs.getincrementaldecoder(name)(), set[str]()
    with source.open() as file:
        while piece := file.read(CHUNK):
            text = decoder.decode(piece)
            if text.isascii() or len(found) >= SHOWN:
                continue
            words = {word[:LONGEST] for word in text.split() if not word.isascii()}
            found |= {word[:SHORT] for word in words if any(one.search(word) for one in odd)}
        decoder.decode(b"", final=True)
    return sorted(found)[:SHOWN]


MOST_UNPACKED, MOST_PARTS, MOST_RATIO = 1 << 30, 5_000, 200
MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s+ref="([A-Z0-9:]+)"')
FORMULA = re.compile(rb"<(?:\w+:)?f[ >/]")
BATCH = 256
MOST_PARQUET, MOST_PARQUET_RATIO, FREE_PARQUET = 8 << 30, 1_000, 64 << 20


def workbook_rows(source: Source, sheet: str | None = None) -> Rows:
    """Return the rows of the named sheet, or of the only sheet with rows."""
    _refuse_unsafe(source)
    with _opened(source) as book:
        name = _sheet(source, book, sheet)
        first = next(book[name].iter_rows(values_only=True), ())
    indices = tuple(index for index, title in enumerate(first) if _text(title).strip())
    if not indices:
        raise wrong(source, "the first row of its sheet is no header: it is empty")
    columns = header(source, [_text(first[index]) for index in indices])
    with source.raw() as file, zipfile.ZipFile(file) as archive:  # what no stream of rows shows
        sheets = [part for part in archive.namelist() if part.startswith("xl/worksheets/sheet")]
        parts = [archive.read(part) for part in sheets]
    if merged := next((cells for part in parts if (cells := MERGED.search(part))), None):
        where = merged[1].decode("ascii")
        why = f"cells {where} are merged; unmerge them and write the value in every row"
        raise wrong(source, f"{why} (sheet {name})" if len(parts) == 1 else why)

    has_formulas = any(map(FORMULA.search, parts))

    def records() -> Iterator[Record]:
        uncomputed = _formula_cells(source, name) if has_formulas else frozenset()
        with _opened(source) as book:
            for number, cells in enumerate(book[name].iter_rows(min_row=2), start=2):
                values = [cell.value for cell in cells]
                places = ((number, index) for index in range(len(cells)))
                if all(value in (None, "") for value in values) and uncomputed.isdisjoint(places):
                    continue
                _refuse_bad_cells(source, number, cells, indices, uncomputed)
                row = (values[index] if index < len(values) else None for index in indices)
                yield number, {key: _text(value) for key, value in zip(columns, row, strict=True)}

    return Rows("xlsx", columns, f"sheet {name}", records)


def _refuse_bad_cells(
    source: Source,
    number: int,
    cells: Sequence[Any],
    indices: Sequence[int],
    uncomputed: frozenset[tuple[int, int]],
) -> None:
    """Refuse an error, a formula without its value, and a value outside the columns."""
    for index, cell in enumerate(cells):
        if cell.value is None and (number, index) not in uncomputed:
            continue
        if index not in indices:
            raise wrong(source, f"row {number} has a value beyond the header's columns")
        if cell.data_type == "e":
            raise wrong(source, f"row {number} has an error of Excel in column {index + 1}")
        if (number, index) in uncomputed and cell.value is None:
            why = "a formula that Excel has not computed yet; open it in Excel and save it"
            raise wrong(source, f"row {number} has {why}")


def _formula_cells(source: Source, name: str) -> frozenset[tuple[int, int]]:
    """Return row and index of the cells that hold a formula."""
    with _opened(source, values=False) as book:
        return frozenset(
            (number, index)
            for number, cells in enumerate(book[name].iter_rows(), start=1)
            for index, cell in enumerate(cells)
            if cell.data_type == "f"
        )


def _sheet(source: Source, book: Any, named: str | None) -> str:
    """Return the name of the sheet to be read."""
    names = [sheet.title for sheet in book.worksheets]
    if named is not None:
        if named not in names:
            raise wrong(source, f"no sheet {named!r}; there are {', '.join(names)}")
        return named
    filled = [sheet.title for sheet in book.worksheets if next(sheet.iter_rows(min_row=2), None)]
    filled = filled or [sheet.title for sheet in book.worksheets if next(sheet.iter_rows(), None)]
    if len(filled) > 1:
        why = f'has several sheets with rows: {", ".join(filled)}; say sheet = "NAME" in a map'
        raise wrong(source, f"{why}, or save the one that is meant by itself")
    if not filled:
        raise wrong(source, "no sheet of it has rows")
    return str(filled[0])


def _text(value: Any) -> str:
    """Return a cell as text."""
    plain = _plain(value)
    if isinstance(plain, bool):
        return str(plain).lower()
    return "" if plain is None else str(plain)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: NaN is missing, times are ISO 8601, whole floats are whole."""
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return int(value) if value.is_integer() and abs(value) < 1e15 else value
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


@contextmanager
def _opened(source: Source, values: bool = True) -> Iterator[Any]:
    """Open a workbook as a stream; refuse one that openpyxl cannot read."""
    import openpyxl  # slow to load

    with source.raw() as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of styles and extensions that hold no rows
        try:
            book = openpyxl.load_workbook(file, read_only=True, data_only=values)
        except (*BROKEN, KeyError, TypeError, AttributeError, SyntaxError) as error:
            raise wrong(source, "an Excel workbook that is damaged; save it anew") from error
        try:
            yield book
        finally:
            book.close()


def _refuse_unsafe(source: Source) -> None:
    """Refuse a workbook that unpacks to too much, or declares XML entities."""
    try:
        with source.raw() as file:
            parts = zip_parts(file, MOST_RATIO, MOST_PARTS, MOST_UNPACKED)
            with zipfile.ZipFile(file) as archive:
                for part in parts.values():
                    with archive.open(part) as stream:
                        refuse_declarations(stream)
    except Unsafe as error:
        raise wrong(source, str(error)) from error
    except BROKEN as error:
        raise wrong(source, "an Excel workbook that is damaged; save it anew") from error


def parquet_rows(source: Source) -> Rows:
    """Return the rows of a Parquet file."""
    with _opened_parquet(source) as file:
        columns = header(source, list(file.schema_arrow.names))
        meta = file.metadata
        size = sum(meta.row_group(group).total_byte_size for group in range(meta.num_row_groups))
    if size > MOST_PARQUET or size > max(FREE_PARQUET, MOST_PARQUET_RATIO * source.size):
        raise wrong(source, "it would unpack to more than any file of rows")

    def records() -> Iterator[Record]:
        with _opened_parquet(source) as parts:
            batches = parts.iter_batches(batch_size=BATCH)
            rows = chain.from_iterable(batch.to_pylist() for batch in batches)
            for number, row in enumerate(rows, start=2):
                yield number, {key.strip(): _plain(value) for key, value in row.items()}

    return Rows("parquet", columns, "Parquet", records)


@contextmanager
def _opened_parquet(source: Source) -> Iterator[Any]:
    """Open the file; what Arrow cannot read is refused."""
    import pyarrow  # type: ignore[import-untyped]  # slow to load
    from pyarrow import parquet

    with source.raw() as raw:
        try:
            with parquet.ParquetFile(raw) as file:
                yield file
        except (pyarrow.ArrowException, OSError, EOFError) as error:
            raise wrong(source, "a Parquet file that is damaged or cut short") from error

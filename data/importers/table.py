"""Tables: files of rows of any format, read as rows of text."""

import re
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from copy import copy
from itertools import islice
from pathlib import Path
from typing import Any

from data.errors import BadFile
from data.importers.file_rows import Rows, file_rows
from data.importers.rows import UNNAMED, Origin, is_name
from data.importers.safe import wrong
from data.importers.source import Form, Source, form_of

Cells = Mapping[str, str]
LONGEST_HEADER = 300  # characters of a header in a message
EXCEL_LONGEST = 32_767  # characters of a cell
EXCEL_ERRORS = (
    *("#NAME?", "#REF!", "#VALUE!", "#DIV/0!", "#N/A", "#NUM!", "#NULL!", "#SPILL!", "#CALC!"),
)
MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
EXCEL_ID = re.compile(rf"\d(?:[.,]\d+)?E\+\d+|(?:{MONTHS})-\d\d|\d\d?-(?:{MONTHS})")


class TableFile:
    """A file of rows, read as it is iterated: memory holds one row, but of a JSON array all.

    Iterating gives (origin, cells); every cell is text, an absent or null one is "".

    Parameters
    ----------
    path
        The file; or a source, where its bytes are in memory.
    form
        How it is read, whatever it looks like.
    sheet
        Of a workbook, the sheet that is read; by default the one that has rows.

    Attributes
    ----------
    columns
        Names in the header; of JSON, the keys of the first object.
    encoding
        What the file was read as: UTF-8, UTF-16 by its mark, or else Windows-1252; or a sheet.
    read_bytes, size_bytes
        How far reading has come, for a progress bar.
    left_out
        What of the file is no row -> how many; of a tool's own file only.

    Raises
    ------
    BadFile
        If the file is absent, empty, or nothing that is read.
    """

    def __init__(
        self, path: Path | Source, form: Form | None = None, sheet: str | None = None
    ) -> None:
        self.source = path if isinstance(path, Source) else Source(path)
        self.path, self.size_bytes = self.source.path, self.source.size
        self._done, self.left_out = 0, Counter[str]()
        self._long, self._changed = list[Origin](), set[str]()
        rows = self._rows = _rows(self.source, form, sheet)
        self.form, self.encoding, self.columns = rows.form, rows.encoding, rows.columns
        self.decimal_comma = rows.decimal_comma
        self._made: Callable[[], Iterator[tuple[Origin, Cells]]] | None = None

    @property
    def read_bytes(self) -> int:
        """Bytes read so far, by the share of the rows."""
        return min(self._done, self.size_bytes)

    def __iter__(self) -> Iterator[tuple[Origin, Cells]]:
        self.left_out.clear()
        for origin, cells in (self._made or self._own_cells)():
            self._done += sum(map(len, cells.values()))
            yield origin, cells

    def derived(
        self,
        columns: tuple[str, ...],
        cells: Callable[[], Iterator[tuple[Origin, Cells]]],
        left_out: Counter[str] | None = None,
    ) -> "TableFile":
        """Return rows that are made of this file, in columns of ours.

        Parameters
        ----------
        cells
            Gives the rows anew, each time it is called.
        left_out
            Filled by `cells`: what of the file is no row -> how many.
        """
        made = copy(self)  # what is found out of the file while it is read stays shared
        made.columns, made._made = columns, cells
        made.left_out = Counter() if left_out is None else left_out
        return made

    def _own_cells(self) -> Iterator[tuple[Origin, Cells]]:
        is_text, origin = self.form == "csv", None
        for origin, row in self.records():
            yield origin, row if is_text else {key: _cell(origin, key, row[key]) for key in row}
        if origin is None:
            raise self.wrong("the file has a header and no rows")

    def records(self) -> Iterator[tuple[Origin, Mapping[str, Any]]]:
        """Yield rows as the file has them: of JSON and Parquet, values may be lists and objects.

        They are looked at for what spreadsheets do to them.
        """
        self._long.clear()
        self._changed.clear()
        for number, row in self._rows.records():
            origin = Origin(self.path.name, number)
            self._look_for_excel(origin, row)
            yield origin, row

    def first(self, rows: int) -> list[tuple[Origin, Mapping[str, Any]]]:
        """Return the first rows."""
        return list(islice(self.records(), rows))

    def _look_for_excel(self, origin: Origin, row: Mapping[str, Any]) -> None:
        """Refuse an error of Excel; note cells as long as it allows, and ids that it writes anew."""
        for column, cell in row.items():
            if not isinstance(cell, str):
                continue
            if "\0" in cell:
                why = "holds the sign U+0000, which no database can keep"
                raise origin.wrong(column, cell, why)
            if cell in EXCEL_ERRORS:
                why = f"is an error of Excel ({cell}): correct it there, or leave the cell empty"
                named = column if is_name(column) else UNNAMED
                raise BadFile(f"{origin}, column {named}: {why}; nothing was imported")
            if len(cell) == EXCEL_LONGEST:
                self._long.append(origin)
            if column.endswith("id") and EXCEL_ID.fullmatch(cell):
                self._changed.add(cell)

    @property
    def doubts(self) -> list[str]:
        """Return warnings of what may have been lost before, of the rows that were read."""
        name, doubts = self.path.name, []
        if self._rows.cut_off:
            why = "has no end: if the file was cut off there, so is its last cell"
            doubts.append(f"the last line of {name} {why}")
        if self._long:
            why = f"exactly {EXCEL_LONGEST:,} characters, the most that Excel keeps"
            doubts.append(f"{len(self._long)} cells of {name} have {why}: they may be cut")
        if self._changed:
            why = "looks like an id that Excel has changed into a number or a date"
            doubts.append(f"{sorted(self._changed)[0]} in {name} {why}")
        return doubts

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
                why = "the first row has no such key; give it there too, or null"
                raise origin.wrong(name, cells[name], why)

    def wrong(self, why: str) -> BadFile:
        """Return the error that says what is wrong with the file as a whole."""
        return wrong(self.source, why)


def _rows(source: Source, form: Form | None, sheet: str | None) -> Rows:
    """Return the rows of a file by its form; for a text, CSV or JSON Lines may be given."""
    known = form_of(source)
    if known in ("inspect", "package"):
        title = "a log of Inspect" if known == "inspect" else "a package of medjury"
        why = "import it as a whole, not as rows (`medjury study import`)"
        raise BadFile(f"{source}: this is {title}: {why}")
    if form is None and known == "object":
        why = "not rows; save its rows as a JSON array or JSON Lines"
        raise wrong(source, f"this is one JSON object of no tool known here, {why}")
    return file_rows(source, known if known in ("xlsx", "parquet") else form or known, sheet)


def _cell(origin: Origin, column: str, value: object) -> str:
    """Return a JSON value as text; a list or an object is not a cell."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | list | dict):
        why = "must be text or a number; a map takes parts of lists and objects"
        raise origin.wrong(column, value, why)
    return str(value)

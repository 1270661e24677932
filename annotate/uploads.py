"""A file that was uploaded: what was chosen for it, its map of columns, and its rows."""

import hashlib
import tomllib
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from data.errors import BadFile
from data.importers.columns import (
    ColumnMap,
    What,
    flat,
    guess,
    map_of,
    taken,
    toml_of,
)
from data.importers.ratings import RatingFile
from data.importers.readers import Reader, opening_of, reader_of, rows_of
from data.importers.rows import RatingRow
from data.importers.source import Source
from data.importers.table import TableFile

LOOKED_AT = 500  # rows, to guess what its columns are
UNNAMED = "upload.csv"


@dataclass(frozen=True, slots=True)
class Upload:
    """A file in memory, and what was chosen for it; "" leaves it to the file.

    `columns` is a map of columns in TOML.
    """

    name: str
    content: bytes
    rubric: str
    benchmark: str
    columns: str = ""

    @property
    def key(self) -> str:
        """What tells this upload with these choices from any other."""
        parts = (self.name, self.rubric, self.benchmark, self.columns)
        return "\0".join((*parts, hashlib.sha256(self.content).hexdigest()))

    @property
    def source(self) -> Source:
        """Its bytes under its own name; nothing of it is written to disk."""
        return Source(Path(Path(self.name).name or UNNAMED), self.content)


def rows_in(upload: Upload, content: What) -> tuple[TableFile, Reader | None]:
    """Return an upload's rows, and the reader of the tool that wrote it, if one did.

    Raises
    ------
    BadFile
        If it is nothing that is read, or its map is none.
    """
    column_map = _map(upload, content)
    return rows_of([upload.source], content, None, column_map, upload.benchmark or None)


def _map(upload: Upload, content: What) -> ColumnMap | None:
    if not upload.columns.strip():
        return None
    try:
        body = tomllib.loads(upload.columns)
    except tomllib.TOMLDecodeError as error:
        raise BadFile(f"The map of columns: {error}") from error
    return map_of(body, content, "The map of columns")


def map_needed(upload: Upload, content: What) -> str:
    """Return the map that an upload's columns suggest, "" where they are ours or a tool's."""
    source = upload.source
    if reader_of(opening_of(source)) is not None:
        return ""
    table = TableFile(source)
    if taken(table.columns, content):
        return ""
    rows = [record for _, record in table.first(LOOKED_AT)]
    chosen = guess(rows, content, upload.benchmark or source.path.stem)
    return toml_of(chosen, tuple(flat(rows[0])) if rows else table.columns)


def first_ratings(upload: Upload, rows: int) -> list[RatingRow]:
    """Return the first ratings of an upload as they would be stored."""
    table, _ = rows_in(upload, "ratings")
    return list(islice(RatingFile(table), rows))

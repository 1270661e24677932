"""A study in one file, as `medjury share export --package` writes it; it may come from a stranger.

Nothing is unpacked: parts are read out of the file as streams, by names that we know. Everything
is checked before a study is opened: kind, version, sizes, digests, and every cell of every row.

Its tables are CSV that can be read back to the last bit. A text that begins with a sign a
spreadsheet would run (`= + - @`, a tab, a carriage return) or with `'` gets one `'` in front, which
is taken away when it is read. An empty cell is a value that is missing; an empty text where one
could be missing is a lone `'`.
"""

import csv
import hashlib
import io
import json
import math
import stat
import types
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, Union, get_args, get_origin

from data import schema
from data.database import HEAD
from data.errors import BadFile
from data.importers.source import BROKEN
from data.safe_text import FORMULA

VERSION = 1
FORMAT = "medjury-package"
GUARDED = (*FORMULA, "'")
WHOLE = 2**63
TABLES: dict[str, type[schema.Table]] = {  # in an order in which rows can refer to earlier ones
    "rubric": schema.RubricText,
    "study_text": schema.StudyText,
    "rater": schema.Rater,
    "benchmark": schema.Benchmark,
    "instance": schema.Instance,
    "point_set": schema.PointSet,
    "response": schema.Response,
    "subgroup": schema.Subgroup,
    "rating": schema.Rating,
    "assignment": schema.Assignment,
    "remark": schema.Remark,
    "span": schema.Span,
    "submission": schema.Submission,
    "review": schema.Review,
    "expert": schema.Expert,
    "drill": schema.Drill,
    "attempt": schema.Attempt,
    "composition": schema.Composition,
    "report": schema.Report,
    "setting": schema.Setting,
    "event": schema.Event,
}
AUTHORS: dict[str, type[schema.Table]] = {"authorship": schema.Authorship, "mask": schema.Mask}
EVERY = TABLES | AUTHORS
# What a package has instead of, or beside, the columns of a table: name, type, can it be missing.
OWN: dict[str, dict[str, tuple[type, bool]]] = {
    "response": {"text": (str, False), "masked": (bool, False)},
    "authorship": {"original": (str, True), "original_salt": (str, True)},
}
# What the authors of a study are called where they stayed behind.
WITHHELD = "(author withheld)"
LEFT_OUT = {"response": {"shown"}}
MANIFEST = "manifest.json"
MOST_PARTS = 100
MOST_BYTES = 4 << 30
MOST_MANIFEST = 1 << 20
MOST_RATIO = 200  # unpacked to packed; tables of ratings have 10 to 40
FREE_BYTES = 16 << 20  # below this a part may be as dense as it likes
CHUNK = 1 << 20
PARTS = {"with": (*TABLES, *AUTHORS), "without": tuple(TABLES), "only": tuple(AUTHORS)}


def columns(table: str) -> dict[str, tuple[type, bool]]:
    """Return a package table's columns: name -> type, and whether values can be missing."""
    fields = EVERY[table].model_fields
    kinds = {
        name: _column_type(column.annotation)
        for name, column in fields.items()
        if name not in LEFT_OUT.get(table, ())
    }
    if "id" in kinds:
        kinds["id"] = (int, False)
    return kinds | OWN.get(table, {})


def written(value: object, missing_allowed: bool) -> object:
    """Return a value as a cell of a package."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        guarded = value.startswith(GUARDED) or (missing_allowed and not value)
        return f"'{value}" if guarded else str(value)
    return value


def read(cell: str, kind: type, missing_allowed: bool) -> Any:
    """Return the value of a cell; a ValueError says what it is not, and never quotes it."""
    if not cell and missing_allowed:
        return None
    if kind is bool:
        return _one_of(cell, {"0": False, "1": True}, "0 or 1")
    if kind is int:
        return _whole_number(cell)
    if kind is float:
        return _number(cell)
    if kind is datetime:
        return _time(cell)
    if kind in (dict, list):
        return _json(cell, kind)
    if issubclass(kind, StrEnum):
        return _one_of(cell, {member.value: member for member in kind}, "one of " + ", ".join(kind))
    return cell.removeprefix("'")


def row(table: str, cells: Mapping[str, str], where: str) -> dict[str, Any]:
    """Return one row as values; `where` names file and row for the message."""
    values = {}
    for name, (kind, missing_allowed) in columns(table).items():
        try:
            values[name] = read(cells[name], kind, missing_allowed)
        except ValueError as error:
            raise BadFile(f"{where}, column {name}: not {error}; nothing was imported") from error
    return values


def _column_type(annotation: Any) -> tuple[type, bool]:
    """Return the type of a column and whether it can be missing, from its annotation."""
    parts = (
        get_args(annotation)
        if get_origin(annotation) in (types.UnionType, Union)
        else (annotation,)
    )
    kind = next(part for part in parts if part is not types.NoneType)
    return get_origin(kind) or kind, types.NoneType in parts


def _one_of(cell: str, choices: Mapping[str, Any], expected: str) -> Any:
    if cell not in choices:
        raise ValueError(expected)
    return choices[cell]


def _whole_number(cell: str) -> int:
    bare = cell.removeprefix("-")
    if not (bare.isascii() and bare.isdecimal() and len(bare) < 20 and int(bare) < WHOLE):
        raise ValueError("a whole number")
    return int(cell)


def _number(cell: str) -> float:
    try:
        number = float(cell)
    except ValueError as error:
        raise ValueError("a number") from error
    if not math.isfinite(number):
        raise ValueError("a finite number")
    return number


def _time(cell: str) -> datetime:
    try:
        time = datetime.fromisoformat(cell)
    except ValueError as error:
        raise ValueError("a time such as 2026-05-31T14:00:00+00:00") from error
    if time.tzinfo is None:
        raise ValueError("a time with its zone, such as 2026-05-31T14:00:00+00:00")
    try:
        return time.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("a time from year 1 to 9999") from error


def _json(cell: str, kind: type) -> Any:
    try:
        value = json.loads(cell)
    except (ValueError, RecursionError) as error:
        raise ValueError("JSON") from error
    if not isinstance(value, kind):
        raise ValueError("a JSON " + ("object" if kind is dict else "list"))
    return value


def _other_version(manifest: Mapping[str, Any]) -> str:
    """Return how the version of a package differs, and what to do."""
    version, tables = str(manifest.get("medjury", ""))[:20], str(manifest.get("tables", "?"))[:8]
    form = str(manifest.get("version", "?"))[:8]
    subject, theirs, ours = "tables of revision", tables, HEAD
    if form != str(VERSION):
        subject, theirs, ours = "a package's format", form, str(VERSION)
    newer = theirs.isdecimal() and ours.isdecimal() and int(theirs) > int(ours)
    to_do = "update medjury here" if newer else "import it with the medjury that wrote it"
    return f"was written by medjury {version or 'unnamed'} with {subject} {theirs}, here {ours}; {to_do}"


class Package:
    """A package with checked manifest, sizes and digests; `rows` reads a table of it.

    Attributes
    ----------
    manifest
        As its maker wrote it.
    sha256
        Of the whole file: what the record of the study calls it by.
    authors
        "with", "without" or "only".

    Raises
    ------
    BadFile
        If anything is not as it must be; says what and what to do.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._opened() as archive:
            self._check_parts(archive)
            self.manifest = self._read_manifest(archive)
            self._check_kind()
            self.authors: str = self.manifest["authors"]
            self._check_digests(archive)
        with path.open("rb") as raw:
            self.sha256 = _sha256(raw)
        for table in self.tables:
            self._check_rows(table)

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of its tables, in the order in which they refer to each other."""
        return PARTS[self.authors]

    def rows(self, table: str) -> Iterator[dict[str, Any]]:
        """Yield a table's rows as values, read from the file as they are asked for."""
        name = part(table)
        with self._opened() as archive, archive.open(name) as raw:
            lines = io.TextIOWrapper(raw, encoding="utf-8", newline="")
            yield from self._rows(csv.reader(lines, strict=True), table, name)

    def _check_rows(self, table: str) -> None:
        """Read every row of a table; refuse another number of them than the manifest says."""
        number = sum(1 for _ in self.rows(table))
        expected = self.manifest["files"][part(table)].get("rows")
        if expected != number:
            raise self.wrong(f"{part(table)} has {number} rows, and its {MANIFEST} says otherwise")

    def wrong(self, why: str) -> BadFile:
        """Return the error that says what is wrong with the package."""
        return BadFile(f"{self.path}: {why}; nothing was imported")

    def _rows(self, lines: Iterator[list[str]], table: str, name: str) -> Iterator[dict[str, Any]]:
        expected, number = tuple(columns(table)), 1
        try:
            header = tuple(next(lines, []))
            if header != expected:
                raise self.wrong(f"{name} has other columns than this medjury writes")
            for number, cells in enumerate(lines, start=2):
                if len(cells) != len(expected):
                    raise self.wrong(f"{name} row {number} has {len(cells)} cells")
                named = dict(zip(expected, cells, strict=True))
                yield row(table, named, f"{self.path}: {name} row {number}")
        except (csv.Error, UnicodeDecodeError) as error:
            raise self.wrong(f"{name} row {number + 1} is not CSV in UTF-8") from error

    @contextmanager
    def _opened(self) -> Iterator[zipfile.ZipFile]:
        """Open the zip; a broken one raises one message."""
        try:
            with zipfile.ZipFile(self.path) as archive:
                yield archive
        except FileNotFoundError as error:
            raise BadFile(f"{self.path}: {error.strerror}") from error
        except BROKEN as error:
            raise self.wrong(
                "cannot be read as a package: it is cut off, damaged, encrypted or no zip; "
                "copy it again from where it was made"
            ) from error

    def _check_parts(self, archive: zipfile.ZipFile) -> None:
        """Refuse paths out of the package, links, and files that unpack to too much."""
        parts = archive.infolist()
        if len(parts) > MOST_PARTS:
            raise self.wrong(f"holds {len(parts)} files, and a package has at most {MOST_PARTS}")
        names = [info.filename for info in parts]
        if len(set(names)) < len(names):
            raise self.wrong("holds two files of the same name")
        for info in parts:
            self._check_part(info)
        if sum(info.file_size for info in parts) > MOST_BYTES:
            raise self.wrong(f"would unpack to more than {MOST_BYTES >> 30} GiB")

    def _check_part(self, info: zipfile.ZipInfo) -> None:
        if ".." in info.filename or info.filename.startswith("/") or "\\" in info.filename:
            raise self.wrong("holds a file whose path leads out of the package")
        if stat.S_ISLNK(info.external_attr >> 16):
            raise self.wrong("holds a link, and a package has only files")
        dense = info.file_size > MOST_RATIO * max(info.compress_size, 1)
        if dense and info.file_size > FREE_BYTES:
            raise self.wrong(f"holds a file that unpacks to over {MOST_RATIO} times its size")

    def _read_manifest(self, archive: zipfile.ZipFile) -> Mapping[str, Any]:
        if MANIFEST not in archive.namelist():
            raise self.wrong(
                f"this zip is no medjury package (it has no {MANIFEST}); a study is put in one "
                "by `medjury share export --package FILE.zip`"
            )
        if archive.getinfo(MANIFEST).file_size > MOST_MANIFEST:
            raise self.wrong(f"its {MANIFEST} is too long to be one")
        try:
            manifest = json.loads(archive.read(MANIFEST))
        except (ValueError, RecursionError) as error:
            raise self.wrong(f"its {MANIFEST} is not JSON") from error
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise self.wrong(f"its {MANIFEST} is not that of a medjury package")
        return manifest

    def _check_kind(self) -> None:
        """Refuse a package of another version, naming the one that can read it."""
        manifest = self.manifest
        if manifest.get("version") != VERSION or manifest.get("tables") != HEAD:
            raise self.wrong(_other_version(manifest))
        if manifest.get("authors") not in PARTS or not isinstance(manifest.get("head"), str):
            raise self.wrong(f"its {MANIFEST} does not say what it holds")

    def _check_digests(self, archive: zipfile.ZipFile) -> None:
        """Refuse a package whose files are not exactly those of its manifest."""
        files = self.manifest.get("files")
        if not isinstance(files, dict) or not all(
            isinstance(entry, dict) for entry in files.values()
        ):
            raise self.wrong(f"its {MANIFEST} lists no files")
        present = {name for name in archive.namelist() if name != MANIFEST}
        needed = {part(table) for table in PARTS[self.manifest["authors"]]}
        for name in sorted(present ^ set(files)):
            raise self.wrong(
                f"{_short(name)} is {'not vouched for' if name in present else 'missing'}"
            )
        for name in sorted(needed - present):
            raise self.wrong(f"{name} is missing")
        for name in sorted(present):
            with archive.open(name) as raw:
                if _sha256(raw) != files[name].get("sha256"):
                    raise self.wrong(
                        f"{_short(name)} is not as it was when the package was made (SHA-256); "
                        "copy it again from where it was made"
                    )


def part(table: str) -> str:
    """Return the path of a table in a package."""
    return f"tables/{table}.csv"


def _short(name: str) -> str:
    return name if len(name) <= 60 and name.isprintable() else "a file"


def _sha256(raw: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while piece := raw.read(CHUNK):
        digest.update(piece)
    return digest.hexdigest()

"""The study as files: a folder of CSV files with a data dictionary, or one package of them."""

import csv
import hashlib
import io
import json
import zipfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from data.csv_files import FOR_SPREADSHEETS, cells, write_csv
from data.errors import BadFile, Conflict
from data.files import whole_file
from data.importers.package import MANIFEST, PARTS, columns, part
from data.person import OPERATOR
from data.queries import export as rows_of
from data.queries.export import HEADER, dictionary_markdown, dictionary_rows
from data.queries.package import about, head_of, table_rows
from data.study.reviews import REVIEWS, standing_reviews
from data.study.settings import CONSENTS, DESCRIPTIONS, consent_rows, described_rows

AUTHORS = ("response_id", "model")
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the same study gives the same package
EACH = 1000


@dataclass(frozen=True)
class File:
    """One file to be: its name in the export, its columns, its rows as they are asked for."""

    name: str
    columns: Sequence[str]
    rows: Iterable[Sequence[Any]]


def files_of(engine: Engine, authors: str, who_wrote: Sequence[tuple[str, str]]) -> list[File]:
    """Return the files of an export with, without, or only the authors."""
    files = [] if authors == "only" else _for_analysis(engine)
    if authors != "without":
        files.append(File("authors.csv", AUTHORS, cells(AUTHORS, who_wrote)))
    files += [
        File(part(table), tuple(columns(table)), table_rows(engine, table))
        for table in PARTS[authors]
    ]
    names = [file.name for file in files]
    return [*files, File("data_dictionary.csv", HEADER, dictionary_rows(names))]


def _for_analysis(engine: Engine) -> list[File]:
    tables: dict[str, tuple[tuple[str, ...], Iterator[rows_of.Cells]]] = {
        "ratings.csv": (rows_of.RATINGS, rows_of.rating_rows(engine)),
        "readings.csv": (rows_of.READINGS, rows_of.reading_rows(engine)),
        "spans.csv": (rows_of.SPANS, rows_of.span_rows(engine)),
        "submissions.csv": (rows_of.SUBMISSIONS, rows_of.submission_rows(engine)),
        "reviews.csv": (REVIEWS, standing_reviews(OPERATOR, engine)),
        "events.csv": (rows_of.EVENTS, rows_of.event_rows(engine)),
        "descriptions.csv": (DESCRIPTIONS, described_rows(engine)),
        "consents.csv": (CONSENTS, consent_rows(engine)),
    }
    return [File(name, names, cells(names, rows)) for name, (names, rows) in tables.items()]


def write_folder(folder: Path, files: Sequence[File]) -> Iterator[tuple[str, int]]:
    """Write the files into a folder that is there; yield each name with its number of rows."""
    with _released(files):
        for file in files:
            path = folder / file.name
            path.parent.mkdir(exist_ok=True)
            yield file.name, write_csv(path, file.columns, file.rows, FOR_SPREADSHEETS)
    _write_text(folder / "data_dictionary.md", _page(files))


@contextmanager
def _released(files: Sequence[File]) -> Iterator[None]:
    """Let go of the study in the end, also where a file was not written to its end."""
    try:
        yield
    finally:
        for file in files:
            if isinstance(file.rows, Generator):
                file.rows.close()


def write_package(engine: Engine, path: Path, authors: str, files: Sequence[File]) -> int:
    """Write the files with a manifest of their SHA-256 as one zip; return the number of rows.

    Raises
    ------
    Conflict
        If the study was written to meanwhile; no package is left then.
    """
    manifest = about(engine, authors, version("medjury"))
    listed: dict[str, dict[str, Any]] = {}
    try:
        with _released(files), whole_file(path) as part:
            with zipfile.ZipFile(part, "x", zipfile.ZIP_DEFLATED) as archive:
                for file in files:
                    listed[file.name] = _pack_file(archive, file)
                listed["data_dictionary.md"] = _put(archive, "data_dictionary.md", _page(files))
                _put(archive, MANIFEST, json.dumps(manifest | {"files": listed}, indent=1) + "\n")
            if head_of(engine) != manifest["head"]:
                raise Conflict("the study was written to while it was exported; export it again")
    except OSError as error:
        raise BadFile(f"--package {path}: {error.strerror}") from error
    return sum(entry.get("rows", 0) for entry in listed.values())


def _pack_file(archive: zipfile.ZipFile, file: File) -> dict[str, Any]:
    """Write one table into the archive as its rows come; return what the manifest says of it."""
    digest, size, rows = hashlib.sha256(), 0, 0
    with archive.open(_info(file.name), "w", force_zip64=True) as raw:
        for text, number in _chunks(file):
            piece = text.encode()
            raw.write(piece)
            digest.update(piece)
            size, rows = size + len(piece), rows + number
    return {"sha256": digest.hexdigest(), "bytes": size, "rows": rows}


def _chunks(file: File) -> Iterator[tuple[str, int]]:
    """Yield the file's text in pieces of some rows, the header first."""
    buffer, number = io.StringIO(newline=""), 0
    writer = csv.writer(buffer)
    writer.writerow(file.columns)
    for row in file.rows:
        writer.writerow(row)
        number += 1
        if number == EACH:
            yield buffer.getvalue(), number
            buffer.seek(0)
            buffer.truncate()
            number = 0
    yield buffer.getvalue(), number


def _put(archive: zipfile.ZipFile, name: str, text: str) -> dict[str, Any]:
    body = text.encode()
    archive.writestr(_info(name), body)
    return {"sha256": hashlib.sha256(body).hexdigest(), "bytes": len(body)}


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, LONG_AGO)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    return info


def _page(files: Sequence[File]) -> str:
    return dictionary_markdown(file.name for file in files if file.name != "data_dictionary.csv")


def _write_text(path: Path, text: str) -> None:
    try:
        with whole_file(path) as part:
            part.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror}") from error

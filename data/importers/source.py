"""The bytes of a file, and its kind by its first bytes rather than its name.

A source is a file, one packed with gzip, or memory (an upload, a pipe). It is opened anew for each
reading. Packed bytes are unpacked as they are read, never to disk and never beyond the limits here:
a file may come from a stranger.
"""

import codecs
import gzip
import io
import json
import lzma
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from data.errors import BadFile

Form = Literal["csv", "jsonl", "json", "object", "xlsx", "parquet", "inspect", "package"]
START = 1 << 16  # bytes that are looked at
GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"
BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
SAVE = "save the rows as CSV or JSON Lines"
STATISTICS = "save it as CSV or Parquet there"
UNPACK = "unpack it and name what was in it"
STATA = re.compile(rb"[\x69-\x73][\x01\x02]\x01\0")  # releases 105 to 115, before the XML-like head
MARKUP = re.compile(r"\s*<(!doctype html|html|\?xml)", re.IGNORECASE)
LINES = (".jsonl", ".ndjson")
OBJECT = re.compile(r"\s*\{\s*(?:\"|\}|$)")
VALUE = re.compile(r'\s*(?:\[|"|-?\d|true|false|null)')  # of JSON, and no object
ARRAY = re.compile(r"\s*\[\s*(?:[\[{\]]|$)")
BROKEN = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, ValueError),
    *(EOFError, OSError, NotImplementedError, RuntimeError),
)
PIPE = "-"
STANDARD_INPUT = Path("standard input")
MOST_PIPED = 1 << 30
MOST_UNPACKED, FREE_UNPACKED, MOST_RATIO = 8 << 30, 64 << 20, 200
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class FileKind:
    """The kind of a file.

    Attributes
    ----------
    form
        How it is read; None where it is not.
    what
        What it is called in a message, with its article.
    to_do
        What the user can do instead; "" where it is read.
    """

    form: Form | None
    what: str
    to_do: str = ""


READ: dict[Form, FileKind] = {
    "csv": FileKind("csv", "a CSV file"),
    "jsonl": FileKind("jsonl", "a file of JSON Lines"),
    "json": FileKind("json", "a JSON array"),
    "object": FileKind("object", "a JSON object"),
    "xlsx": FileKind("xlsx", "an Excel workbook"),
    "parquet": FileKind("parquet", "a Parquet file"),
    "inspect": FileKind("inspect", "a log of Inspect"),
    "package": FileKind("package", "a package of medjury"),
}
# First bytes -> what it is and what to do; the first that fits.
MAGIC: tuple[tuple[bytes, FileKind], ...] = (
    (b"PAR1", READ["parquet"]),
    (
        b"\xd0\xcf\x11\xe0",
        FileKind(
            None,
            "an Excel workbook of the old kind (.xls), one with a password, or another file of Office",
            "save it as .xlsx without a password",
        ),
    ),
    (b"%PDF", FileKind(None, "a PDF", SAVE)),
    (
        b"SQLite format 3",
        FileKind(None, "an SQLite database", "a study is opened with --db; of another one " + SAVE),
    ),
    (b"<stata_dta>", FileKind(None, "a Stata file (.dta)", f"{STATISTICS} (export delimited)")),
    (b"$FL2", FileKind(None, "an SPSS file (.sav)", f"{STATISTICS} (File, Save as)")),
    (b"$FL3", FileKind(None, "an SPSS file (.zsav)", f"{STATISTICS} (File, Save as)")),
    (b"\0" * 12 + b"\xc2\xea\x81\x60", FileKind(None, "a SAS file", f"{STATISTICS} (proc export)")),
    (
        b"HEADER RECORD*******",
        FileKind(None, "a SAS transport file", f"{STATISTICS} (proc export)"),
    ),
    (b"RDX", FileKind(None, "a file of R (.rda)", f"{STATISTICS} (write.csv)")),
    (b"X\n\0\0\0", FileKind(None, "a file of R (.rds)", f"{STATISTICS} (write.csv)")),
    (b"ARROW1", FileKind(None, "a Feather (Arrow) file", "save it as Parquet")),
    (b"\x89HDF", FileKind(None, "an HDF5 file", SAVE)),
    (b"\x93NUMPY", FileKind(None, "an array of NumPy", SAVE)),
    (
        b"\x80\x04\x95",
        FileKind(None, "a pickle of Python", f"it could run code, so it is not opened; {SAVE}"),
    ),
    (
        b"\x80\x05\x95",
        FileKind(None, "a pickle of Python", f"it could run code, so it is not opened; {SAVE}"),
    ),
    (b"BZh", FileKind(None, "a file packed with bzip2", UNPACK)),
    (b"\xfd7zXZ", FileKind(None, "a file packed with xz", UNPACK)),
    (b"\x28\xb5\x2f\xfd", FileKind(None, "a file packed with Zstandard", UNPACK)),
    (b"7z\xbc\xaf", FileKind(None, "a 7z archive", UNPACK)),
    (b"Rar!", FileKind(None, "a RAR archive", UNPACK)),
    (GZIP, FileKind(None, "a file packed twice with gzip", UNPACK)),
    (b"{\\rtf", FileKind(None, "an RTF document", SAVE)),
)
# A name in a zip -> what the zip is; the first that fits.
MEMBERS: tuple[tuple[str, FileKind], ...] = (
    ("xl/workbook.xml", READ["xlsx"]),
    (
        "xl/workbook.bin",
        FileKind(None, "an Excel workbook of the binary kind (.xlsb)", "save it as .xlsx"),
    ),
    ("header.json", READ["inspect"]),
    ("_journal/start.json", READ["inspect"]),
    ("manifest.json", READ["package"]),
    ("word/document.xml", FileKind(None, "a Word document", SAVE)),
    ("Index/Document.iwa", FileKind(None, "a Numbers document", "export it as .xlsx or CSV")),
    ("content.xml", FileKind(None, "an OpenDocument file", "save it as .xlsx or CSV")),
)


def kind_of(start: bytes, members: Collection[str] = (), name: str = "") -> FileKind:
    """Return the kind of a file.

    Parameters
    ----------
    start
        Its first bytes, at most `START` of them, unpacked where it is packed with gzip.
    members
        The names in it, where it is a zip.
    name
        Its own; the ending .jsonl or .ndjson decides where a text may be lines or one object.
    """
    if start.startswith(ZIP):
        return _kind_of_zip(members)
    known = next((kind for mark, kind in MAGIC if start.startswith(mark)), None)
    if known is not None:
        return known
    if STATA.match(start):
        return FileKind(None, "a Stata file (.dta)", f"{STATISTICS} (export delimited)")
    return _kind_of_text(start, name.lower().removesuffix(".gz"))


def bom_of(start: bytes) -> str | None:
    """Return the encoding that a file's mark names, None where it has none."""
    return next((name for mark, name in BOMS if start.startswith(mark)), None)


def _kind_of_zip(members: Collection[str]) -> FileKind:
    if not members:
        what = "an Excel workbook or another zip, cut short or damaged"
        return FileKind(None, what, "copy it again")
    found = next((kind for name, kind in MEMBERS if name in members), None)
    return found or FileKind(None, "a zip", UNPACK)


def _kind_of_text(start: bytes, name: str) -> FileKind:
    """Return the kind of a text: JSON by its beginning, else CSV."""
    encoding = bom_of(start)
    if encoding is None and b"\0" in start:
        return _kind_of_binary(start)
    text = start.decode(encoding or "utf-8", "replace").lstrip("\ufeff")
    if MARKUP.match(text):
        what = "a web page or XML"
        return FileKind(
            None, what, "if it was downloaded, you may not have been signed in there; " + SAVE
        )
    if ARRAY.match(text) or (name.endswith(".json") and VALUE.match(text)):
        return READ["json"]
    if name.endswith(LINES):
        return READ["jsonl"]
    return READ[_form_of_object(text, len(start), name) if OBJECT.match(text) else "csv"]


def _form_of_object(text: str, looked_at: int, name: str) -> Form:
    """Return whether a text is JSON Lines or one JSON object."""
    line, _, further = text.lstrip().partition("\n")
    alone = name.endswith(".json") and not further.strip()
    return "jsonl" if _is_whole_line(line, looked_at) and not alone else "object"


def _kind_of_binary(start: bytes) -> FileKind:
    """Return the kind of bytes with zeros: UTF-16 without its mark, or unknown."""
    pairs = max(1, len(start) // 2)
    if max(start[::2].count(0), start[1::2].count(0)) > 0.4 * pairs:
        name = "text in UTF-16 without the mark that says so"
        return FileKind(None, name, 'save it as UTF-8 ("CSV UTF-8" in Excel)')
    return FileKind(None, "a binary file of no kind known here", SAVE)


def _is_whole_line(line: str, looked_at: int) -> bool:
    """Tell whether a line is a whole object, or longer than the bytes that were read."""
    try:
        json.loads(line, strict=False)
    except json.JSONDecodeError:
        return looked_at >= START and len(line.encode()) > START // 2
    except (ValueError, RecursionError):
        return True  # an object with a number too long, or nested too deep: its row will be named
    return True


class Source:
    """A file's bytes under the name that messages give it.

    Parameters
    ----------
    path
        The file; "-" is standard input, which is read whole, as is any pipe.
    content
        The bytes, where they are in memory already.
    encoding
        That of a text, where somebody has named it.

    Attributes
    ----------
    packed
        Whether `open` unpacks it with gzip.
    size
        Bytes as they stand, packed or not.

    Raises
    ------
    BadFile
        If the file cannot be read, is empty, or a pipe gives more than 1 GiB.
    """

    def __init__(self, path: Path, content: bytes | None = None, encoding: str = "") -> None:
        self.path = STANDARD_INPUT if str(path) == PIPE else path
        self.encoding = encoding
        self._content = _pipe_content(path) if content is None else content
        self.size = _size(self.path) if self._content is None else len(self._content)
        if self.size == 0:
            raise BadFile(f"{self.path}: the file is empty")
        with self.raw() as file:
            self.packed = file.read(len(GZIP)) == GZIP

    def raw(self) -> BinaryIO:
        """Open the bytes as they stand."""
        return self.path.open("rb") if self._content is None else io.BytesIO(self._content)

    def open(self) -> BinaryIO:
        """Open the bytes, unpacked where they are packed; `tell` says how far the file is read."""
        return io.BufferedReader(_Unpacked(self)) if self.packed else self.raw()

    def start(self) -> bytes:
        """Return the first bytes, unpacked."""
        with self.open() as file:
            return file.read(START)

    def members(self) -> frozenset[str]:
        """Return the names in a zip; none if it is no zip or damaged."""
        with self.raw() as file:
            if file.read(len(ZIP)) != ZIP:
                return frozenset()
            try:
                with zipfile.ZipFile(file) as archive:
                    return frozenset(archive.namelist())
            except BROKEN:
                return frozenset()


class _Unpacked(io.RawIOBase):
    """The unpacked bytes of a source, up to the limits of this module."""

    def __init__(self, source: Source) -> None:
        self._source, self._given = source, 0
        self._file = source.raw()
        self._plain = gzip.GzipFile(fileobj=self._file)

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        """Return how many of the packed bytes were read."""
        return self._file.tell()

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        try:
            chunk = self._plain.read(len(view))
        except (OSError, EOFError, zlib.error) as error:
            why = "its gzip packing is damaged or cut short; copy it again"
            raise BadFile(f"{self._source.path}: {why}; nothing was imported") from error
        self._given += len(chunk)
        bound = max(FREE_UNPACKED, MOST_RATIO * self._source.size)
        if self._given > min(bound, MOST_UNPACKED):
            why = "it would unpack to more than any file of rows; unpack it yourself to see"
            raise BadFile(f"{self._source.path}: {why}; nothing was imported")
        view[: len(chunk)] = chunk
        return len(chunk)

    def close(self) -> None:
        if not self.closed:
            self._plain.close()
            self._file.close()
        super().close()


def _pipe_content(path: Path) -> bytes | None:
    """Return the content of a pipe, None for a file that can be read again."""
    try:
        if str(path) == PIPE:
            content = sys.stdin.buffer.read(MOST_PIPED + 1)
        elif path.is_file() or path.is_dir() or not path.exists():
            return None
        else:
            with path.open("rb") as file:
                content = file.read(MOST_PIPED + 1)
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror or error}") from error
    if len(content) > MOST_PIPED:
        raise BadFile(f"{path}: a pipe of over 1 GiB; save it as a file and name that")
    return content


def _size(path: Path) -> int:
    """Return the size in bytes of a file that can be read."""
    try:
        with path.open("rb") as file:
            return file.seek(0, io.SEEK_END)
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror or error}") from error

"""The bytes of a file, and its kind by its first bytes rather than its name.

A source is a file, one packed with gzip, or memory (an upload, a pipe). It is opened anew for each
reading. Packed bytes are unpacked as they are read, never to disk and never beyond the limits here:
a file may come from a stranger.
"""

import codecs
import gzip
import io
import json
import re
import sys
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal

from data.errors import BadFile
from data.importers.safe import BROKEN, Unsafe, in_child, read_json, wrong

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
MARKUP = re.compile(r"\s*<(!doctype html|html|\?xml)", re.IGNORECASE)
LINES = (".jsonl", ".ndjson")
OBJECT = re.compile(r"\s*\{\s*(?:\"|\}|$)")
VALUE = re.compile(r'\s*(?:\[|"|-?\d|true|false|null)')  # of JSON, and no object
ARRAY = re.compile(r"\s*\[\s*(?:[\[{\]]|$)")
PIPE = "-"
STANDARD_INPUT = Path("standard input")
MOST_PIPED = 1 << 30
MOST_UNPACKED, FREE_UNPACKED, MOST_RATIO = 8 << 30, 64 << 20, 200
CHUNK = 1 << 20
# First bytes of what is not read -> what it is and what to do; the first that fits.
REFUSED: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (
        re.compile(rb"\xd0\xcf\x11\xe0"),
        "an Excel workbook of the old kind (.xls), one with a password, or another file of Office; "
        "save it as .xlsx without a password",
    ),
    (re.compile(rb"%PDF|\{\\rtf"), f"a document (PDF or RTF); {SAVE}"),
    (
        re.compile(rb"SQLite format 3"),
        f"an SQLite database; a study is opened with --db; of another one {SAVE}",
    ),
    (
        re.compile(
            rb"<stata_dta>|[\x69-\x73][\x01\x02]\x01\0|\$FL[23]|\0{12}\xc2\xea\x81\x60"
            rb"|HEADER RECORD\*{7}|RDX|X\n\0\0\0"
        ),
        "a file of Stata, SPSS, SAS or R; save it as CSV or Parquet there",
    ),
    (
        re.compile(rb"BZh|\xfd7zXZ|\x28\xb5\x2f\xfd|7z\xbc\xaf|Rar!|\x1f\x8b"),
        "a file packed otherwise than once with gzip or zip; unpack it and name what was in it",
    ),
)
# A name in a zip -> what the zip is; the first that fits.
MEMBERS: Mapping[str, Form] = {
    "xl/workbook.xml": "xlsx",
    "header.json": "inspect",
    "_journal/start.json": "inspect",
    "manifest.json": "package",
}
OFFICE = {"xl/workbook.bin", "word/document.xml", "Index/Document.iwa", "content.xml"}
Kind = tuple[Form | None, str]


def form_of(source: "Source") -> Form:
    """Return how a file is read.

    Raises
    ------
    BadFile
        If it is not: it says what the file is and what to do.
    """
    form, refusal = kind_of(source.start(), source.members(), source.path.name)
    if form is None:
        raise BadFile(f"{source.path}: this is {refusal}")
    return form


def kind_of(start: bytes, members: Collection[str] = (), name: str = "") -> Kind:
    """Return how a file is read, or None with what it is and what to do.

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
        if not members:
            return None, "an Excel workbook or another zip, cut short or damaged; copy it again"
        if OFFICE & set(members):
            return None, "a document of Office, Numbers or OpenOffice; save it as .xlsx or CSV"
        form = next((form for part, form in MEMBERS.items() if part in members), None)
        return form, "a zip; unpack it and name what was in it"
    if start.startswith(b"PAR1"):
        return "parquet", ""
    known = next((refusal for mark, refusal in REFUSED if mark.match(start)), None)
    return (None, known) if known else _kind_of_text(start, name.lower().removesuffix(".gz"))


def bom_of(start: bytes) -> str | None:
    """Return the encoding that a file's mark names, None where it has none."""
    return next((name for mark, name in BOMS if start.startswith(mark)), None)


def _kind_of_text(start: bytes, name: str) -> Kind:
    """Return the kind of a text: JSON by its beginning, else CSV."""
    encoding = bom_of(start)
    if encoding is None and b"\0" in start:
        if max(start[::2].count(0), start[1::2].count(0)) > 0.2 * len(start):
            why = "text in UTF-16 without the mark that says so"
            return None, f'{why}; save it as UTF-8 ("CSV UTF-8" in Excel)'
        return None, f"a binary file of no kind known here; {SAVE}"
    text = start.decode(encoding or "utf-8", "replace").lstrip("\ufeff")
    if MARKUP.match(text):
        why = "if it was downloaded, you may not have been signed in there"
        return None, f"a web page or XML; {why}; {SAVE}"
    if ARRAY.match(text) or (name.endswith(".json") and VALUE.match(text)):
        return "json", ""
    if name.endswith(LINES):
        return "jsonl", ""
    if not OBJECT.match(text):
        return "csv", ""
    line, _, further = text.lstrip().partition("\n")
    alone = name.endswith(".json") and not further.strip()
    return ("jsonl" if _is_whole_line(line, len(start)) and not alone else "object"), ""


def _is_whole_line(line: str, looked_at: int) -> bool:
    """Tell whether a line is a whole object, or longer than the bytes that were read."""
    try:
        read_json(line)
    except Unsafe as error:
        if not isinstance(error.__cause__, json.JSONDecodeError):
            return True  # an object that is refused: its row will be named
        return looked_at >= START and len(line.encode()) > START // 2
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
        try:
            self._content = _pipe_content(path) if content is None else content
            with self.raw() as file:
                self.size = file.seek(0, io.SEEK_END)
        except OSError as error:
            raise BadFile(f"{self.path}: {error.strerror or error}") from error
        if self.size == 0:
            raise BadFile(f"{self.path}: the file is empty")
        self._members: frozenset[str] | None = None
        with self.raw() as file:
            self.packed = file.read(len(GZIP)) == GZIP

    def __str__(self) -> str:
        return str(self.path)

    def raw(self) -> BinaryIO:
        """Open the bytes as they stand."""
        return self.path.open("rb") if self._content is None else io.BytesIO(self._content)

    def open(self) -> BinaryIO:
        """Open the bytes, unpacked where they are packed."""
        return io.BufferedReader(_Unpacked(self)) if self.packed else self.raw()

    def start(self) -> bytes:
        """Return the first bytes, unpacked."""
        with self.open() as file:
            return file.read(START)

    def members(self) -> frozenset[str]:
        """Return the names in a zip; none if it is no zip or damaged."""
        if self._members is None:
            with self.raw() as file:
                is_zip = file.read(len(ZIP)) == ZIP
            names = in_child(_names, self, name=self.path, size=self.size) if is_zip else ()
            self._members = frozenset(names)
        return self._members


def _names(source: Source) -> Iterator[str]:
    """Yield the names in a zip by which it is known: its list alone can be larger than memory."""
    with source.raw() as file, suppress(*BROKEN), zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        yield from (name for name in names if name in MEMBERS or name in OFFICE)
        yield from names[:1]


class _Unpacked(io.RawIOBase):
    """The unpacked bytes of a source, up to the limits of this module."""

    def __init__(self, source: Source) -> None:
        self._source, self._given = source, 0
        self._file = source.raw()
        self._plain = gzip.GzipFile(fileobj=self._file)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        try:
            chunk = self._plain.read(len(view))
        except (OSError, EOFError, zlib.error) as error:
            why = "its gzip packing is damaged or cut short; copy it again"
            raise wrong(self._source, why) from error
        self._given += len(chunk)
        bound = max(FREE_UNPACKED, MOST_RATIO * self._source.size)
        if self._given > min(bound, MOST_UNPACKED):
            why = "it would unpack to more than any file of rows; unpack it yourself to see"
            raise wrong(self._source, why)
        view[: len(chunk)] = chunk
        return len(chunk)

    def close(self) -> None:
        if not self.closed:
            self._plain.close()
            self._file.close()
        super().close()


def _pipe_content(path: Path) -> bytes | None:
    """Return the content of a pipe, None for a file that can be read again."""
    if str(path) == PIPE:
        content = sys.stdin.buffer.read(MOST_PIPED + 1)
    elif path.is_file() or path.is_dir() or not path.exists():
        return None
    else:
        with path.open("rb") as file:
            content = file.read(MOST_PIPED + 1)
    if len(content) > MOST_PIPED:
        raise BadFile(f"{path}: a pipe of over 1 GiB; save it as a file and name that")
    return content

"""What a file is, told from its first bytes and not from its name.

`kind_of` is pure: bytes in, a `Kind` out. What cannot be read has one line that says what it is and
what to do.
"""

import codecs
import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

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


@dataclass(frozen=True, slots=True)
class Kind:
    """What a file is.

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


READ: dict[Form, Kind] = {
    "csv": Kind("csv", "a CSV file"),
    "jsonl": Kind("jsonl", "a file of JSON Lines"),
    "json": Kind("json", "a JSON array"),
    "object": Kind("object", "a JSON object"),
    "xlsx": Kind("xlsx", "an Excel workbook"),
    "parquet": Kind("parquet", "a Parquet file"),
    "inspect": Kind("inspect", "a log of Inspect"),
    "package": Kind("package", "a package of medjury"),
}
# First bytes -> what it is and what to do; the first that fits.
MAGIC: tuple[tuple[bytes, Kind], ...] = (
    (b"PAR1", READ["parquet"]),
    (
        b"\xd0\xcf\x11\xe0",
        Kind(
            None,
            "an Excel workbook of the old kind (.xls), one with a password, or another file of Office",
            "save it as .xlsx without a password",
        ),
    ),
    (b"%PDF", Kind(None, "a PDF", SAVE)),
    (
        b"SQLite format 3",
        Kind(None, "an SQLite database", "a study is opened with --db; of another one " + SAVE),
    ),
    (b"<stata_dta>", Kind(None, "a Stata file (.dta)", f"{STATISTICS} (export delimited)")),
    (b"$FL2", Kind(None, "an SPSS file (.sav)", f"{STATISTICS} (File, Save as)")),
    (b"$FL3", Kind(None, "an SPSS file (.zsav)", f"{STATISTICS} (File, Save as)")),
    (b"\0" * 12 + b"\xc2\xea\x81\x60", Kind(None, "a SAS file", f"{STATISTICS} (proc export)")),
    (b"HEADER RECORD*******", Kind(None, "a SAS transport file", f"{STATISTICS} (proc export)")),
    (b"RDX", Kind(None, "a file of R (.rda)", f"{STATISTICS} (write.csv)")),
    (b"X\n\0\0\0", Kind(None, "a file of R (.rds)", f"{STATISTICS} (write.csv)")),
    (b"ARROW1", Kind(None, "a Feather (Arrow) file", "save it as Parquet")),
    (b"\x89HDF", Kind(None, "an HDF5 file", SAVE)),
    (b"\x93NUMPY", Kind(None, "an array of NumPy", SAVE)),
    (
        b"\x80\x04\x95",
        Kind(None, "a pickle of Python", f"it could run code, so it is not opened; {SAVE}"),
    ),
    (
        b"\x80\x05\x95",
        Kind(None, "a pickle of Python", f"it could run code, so it is not opened; {SAVE}"),
    ),
    (b"BZh", Kind(None, "a file packed with bzip2", UNPACK)),
    (b"\xfd7zXZ", Kind(None, "a file packed with xz", UNPACK)),
    (b"\x28\xb5\x2f\xfd", Kind(None, "a file packed with Zstandard", UNPACK)),
    (b"7z\xbc\xaf", Kind(None, "a 7z archive", UNPACK)),
    (b"Rar!", Kind(None, "a RAR archive", UNPACK)),
    (GZIP, Kind(None, "a file packed twice with gzip", UNPACK)),
    (b"{\\rtf", Kind(None, "an RTF document", SAVE)),
)
STATA = re.compile(rb"[\x69-\x73][\x01\x02]\x01\0")  # releases 105 to 115, before the XML-like head
MARKUP = re.compile(r"\s*<(!doctype html|html|\?xml)", re.IGNORECASE)
# A name in a zip -> what the zip is; the first that fits.
MEMBERS: tuple[tuple[str, Kind], ...] = (
    ("xl/workbook.xml", READ["xlsx"]),
    (
        "xl/workbook.bin",
        Kind(None, "an Excel workbook of the binary kind (.xlsb)", "save it as .xlsx"),
    ),
    ("header.json", READ["inspect"]),
    ("_journal/start.json", READ["inspect"]),
    ("manifest.json", READ["package"]),
    ("word/document.xml", Kind(None, "a Word document", SAVE)),
    ("Index/Document.iwa", Kind(None, "a Numbers document", "export it as .xlsx or CSV")),
    ("content.xml", Kind(None, "an OpenDocument file", "save it as .xlsx or CSV")),
)
LINES = (".jsonl", ".ndjson")
OBJECT = re.compile(r"\s*\{\s*(?:\"|\}|$)")
VALUE = re.compile(r'\s*(?:\[|"|-?\d|true|false|null)')  # of JSON, and no object
ARRAY = re.compile(r"\s*\[\s*(?:[\[{\]]|$)")


def kind_of(start: bytes, members: Collection[str] = (), name: str = "") -> Kind:
    """Return what a file is.

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
        return _of_zip(members)
    known = next((kind for mark, kind in MAGIC if start.startswith(mark)), None)
    if known is not None:
        return known
    if STATA.match(start):
        return Kind(None, "a Stata file (.dta)", f"{STATISTICS} (export delimited)")
    return _of_text(start, name.lower().removesuffix(".gz"))


def bom_of(start: bytes) -> str | None:
    """Return the encoding that a file's mark names, None where it has none."""
    return next((name for mark, name in BOMS if start.startswith(mark)), None)


def _of_zip(members: Collection[str]) -> Kind:
    if not members:
        what = "an Excel workbook or another zip, cut short or damaged"
        return Kind(None, what, "copy it again")
    found = next((kind for name, kind in MEMBERS if name in members), None)
    return found or Kind(None, "a zip", UNPACK)


def _of_text(start: bytes, name: str) -> Kind:
    """Return what a text is: JSON by how it begins, else rows with a header."""
    encoding = bom_of(start)
    if encoding is None and b"\0" in start:
        return _of_zeros(start)
    text = start.decode(encoding or "utf-8", "replace").lstrip("\ufeff")
    if MARKUP.match(text):
        what = "a web page or XML"
        return Kind(
            None, what, "if it was downloaded, you may not have been signed in there; " + SAVE
        )
    if ARRAY.match(text) or (name.endswith(".json") and VALUE.match(text)):
        return READ["json"]
    if name.endswith(LINES):
        return READ["jsonl"]
    return READ[_of_object(text, len(start), name) if OBJECT.match(text) else "csv"]


def _of_object(text: str, looked_at: int, name: str) -> Form:
    """Return whether a text that begins with an object has one a line, or is one as a whole."""
    line, _, rest = text.lstrip().partition("\n")
    alone = name.endswith(".json") and not rest.strip()
    return "jsonl" if _whole(line, looked_at) and not alone else "object"


def _of_zeros(start: bytes) -> Kind:
    """Return what bytes with zeros are: UTF-16 that lost its mark, or nothing known."""
    pairs = max(1, len(start) // 2)
    if max(start[::2].count(0), start[1::2].count(0)) > 0.4 * pairs:
        what = "text in UTF-16 without the mark that says so"
        return Kind(None, what, 'save it as UTF-8 ("CSV UTF-8" in Excel)')
    return Kind(None, "a binary file of no kind known here", SAVE)


def _whole(line: str, looked_at: int) -> bool:
    """Tell whether a line is an object by itself, or longer than what was looked at."""
    try:
        json.loads(line, strict=False)
    except json.JSONDecodeError:
        return looked_at >= START and len(line.encode()) > START // 2
    except (ValueError, RecursionError):
        return True  # an object with a number too long, or nested too deep: its row will be named
    return True

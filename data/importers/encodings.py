"""Which encoding a file of text is in, of those that hospitals use."""

import codecs
import io
from pathlib import Path

from data.errors import BadFile

BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
CHUNK = 1 << 20


def encoding_of(path: Path) -> str:
    """Return the encoding by its mark, else UTF-8 if all of the file is, else Windows-1252."""
    with path.open("rb") as file:
        start = file.read(4)
        for mark, name in BOMS:
            if start.startswith(mark):
                return name
    return next((name for name in ("utf-8", "cp1252") if _decodes(path, name)), "") or _undecodable(
        path
    )


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


def _undecodable(path: Path) -> str:
    raise BadFile(f"{path}: neither UTF-8, UTF-16 nor Windows-1252; save it as UTF-8")

"""The logs of Inspect as files: a zip of JSON (.eval) or one JSON file, read in bounded pieces.

Nothing is unpacked to disk. A log may come from a stranger, so that sizes are held to bounds before
anything is read, and nothing is read beyond what the file's own list of parts declares.
"""

import io
import json
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from data.errors import BadFile
from data.importers.broken_zip import BROKEN

HEADER, STARTED, SAMPLES = "header.json", "_journal/start.json", "samples/"
ZSTANDARD = 93
MOST_PART, MOST_BYTES, MOST_PARTS = 256 << 20, 8 << 30, 200_000
MOST_JSON = 1 << 30
MOST_RATIO, FREE_BYTES, FREE_WHOLE = (
    400,
    32 << 20,
    256 << 20,
)  # a log repeats itself: events hold every message again
Found = tuple[dict[str, Any], Iterator[dict[str, Any]]]


def wrong(path: Path, why: str) -> BadFile:
    """Return the error that names the log."""
    return BadFile(f"{path}: {why}; nothing was imported")


def read_log(path: Path) -> Found:
    """Return a log's head and, as they are read, its samples.

    Raises
    ------
    BadFile
        If it is no log, cut short, or larger than any bound here. No text of it is quoted.
    """
    try:
        with path.open("rb") as file:
            start = file.read(4)
        size = path.stat().st_size
    except OSError as error:
        raise wrong(path, str(error.strerror)) from error
    if start.startswith(b"PK"):
        return _zipped(path)
    if path.suffix.lower() == ".eval":
        raise wrong(path, "no .eval log, or cut short; copy it again")
    if size > MOST_JSON:
        raise wrong(path, "over 1 GiB of JSON; `inspect log convert --to eval` makes it readable")
    try:
        whole = _object(path, path.name, path.read_bytes())
    except OSError as error:
        raise wrong(path, str(error.strerror)) from error
    samples = whole.pop("samples", None)
    if not isinstance(samples or [], list):
        raise wrong(path, "samples are not a list, as Inspect writes them")
    return whole, iter(samples or [])


def _zipped(path: Path) -> Found:
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
    except BROKEN as error:
        raise wrong(path, "not a whole zip, as an .eval log is; copy it again") from error
    _check_parts(path, parts)
    known = {one.filename: one for one in parts}
    if HEADER not in known:
        why = (
            "the run did not end (no header.json); `inspect log recover` may save what there is"
            if STARTED in known
            else "a zip, but no log of Inspect (no header.json)"
        )
        raise wrong(path, why)
    head = _object(path, HEADER, _bytes(path, known[HEADER]))
    own = [one for one in parts if one.filename.startswith(SAMPLES)]
    return head, (_object(path, "a sample", _bytes(path, one)) for one in own)


def _check_parts(path: Path, parts: list[zipfile.ZipInfo]) -> None:
    """Refuse names that lead out of the log, and sizes that no log has, before reading any."""
    if len(parts) > MOST_PARTS:
        raise wrong(path, f"over {MOST_PARTS} parts")
    if len({one.filename for one in parts}) < len(parts):
        raise wrong(path, "a part of it stands in it twice")
    for one in parts:
        steps = PurePosixPath(one.filename.replace("\\", "/"))
        if steps.is_absolute() or ".." in steps.parts or stat.S_ISLNK(one.external_attr >> 16):
            raise wrong(path, "a part of it leads out of it: this is no log of Inspect")
        if one.flag_bits & 1:
            raise wrong(path, "it is encrypted; import it without a password")
        if one.file_size > MOST_PART or _dense(one.file_size, one.compress_size, FREE_BYTES):
            raise wrong(path, "a part of it would unpack to more than any sample has")
    whole = sum(one.file_size for one in parts)
    if whole > MOST_BYTES or _dense(whole, sum(one.compress_size for one in parts), FREE_WHOLE):
        raise wrong(path, "it would unpack to more than any log has")


def _dense(unpacked: int, packed: int, free: int) -> bool:
    """Tell whether something unpacks to far more than it is, and to more than does no harm."""
    return unpacked > free and unpacked > MOST_RATIO * max(packed, 1)


def _bytes(path: Path, part: zipfile.ZipInfo) -> bytes:
    """Return a part, never more of it than its zip declares."""
    try:
        if part.compress_type == ZSTANDARD:
            found = _zstandard(path, part)
        else:
            with zipfile.ZipFile(path) as archive, archive.open(part) as stream:
                found = stream.read(part.file_size + 1)
    except BROKEN as error:
        raise wrong(path, "a part of it is damaged or cut short; copy it again") from error
    if len(found) != part.file_size:
        raise wrong(path, "a part of it has another length than the zip says; copy it again")
    return found


def _zstandard(path: Path, part: zipfile.ZipInfo) -> bytes:
    """Return a part packed with Zstandard, as Inspect packs, and zipfile cannot read before 3.14."""
    import pyarrow  # type: ignore[import-untyped]  # slow to load; comes with Streamlit

    with path.open("rb") as file:
        file.seek(part.header_offset)
        fixed = file.read(30)
        if len(fixed) < 30 or not fixed.startswith(b"PK\x03\x04"):
            raise zipfile.BadZipFile
        name, extra = struct.unpack("<HH", fixed[26:30])
        file.seek(name + extra, io.SEEK_CUR)
        packed = file.read(part.compress_size)
    with pyarrow.CompressedInputStream(pyarrow.BufferReader(packed), "zstd") as stream:
        found = bytes(stream.read(part.file_size + 1))
    if zlib.crc32(found) != part.CRC:
        raise zipfile.BadZipFile
    return found


def _object(path: Path, what: str, body: bytes) -> dict[str, Any]:
    """Return a JSON object; bare NaN, which Inspect writes for what is unscored, is read."""
    try:
        found = json.loads(body.decode("utf-8-sig"))
        json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        place = f"{error.msg} at line {error.lineno}, column {error.colno}"
        raise wrong(path, f"{what} is not whole JSON ({place}); copy the log again") from error
    except UnicodeError as error:
        raise wrong(path, f"{what} is not text in UTF-8") from error
    except (RecursionError, ValueError) as error:
        raise wrong(path, f"{what} is nested too deep, or has a number too long") from error
    if not isinstance(found, dict):
        raise wrong(path, f"{what} is no JSON object: this is no log of Inspect")
    return found

"""JSON, zips and XML that strangers wrote, each read in one way and with bounds.

What they need of memory and time is bounded by the process that reads them (`child.py`); here is
refused what no honest file has. No message quotes a text.
"""

import io
import json
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO
from xml.parsers import expat

from data.errors import BadFile

DEEPEST = 100
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
MOST_PARTS, MOST_PART, MOST_WHOLE = 200_000, 256 << 20, 8 << 30
FREE_PART, FREE_WHOLE = 32 << 20, 256 << 20  # unpacked bytes that need no ratio
ZSTANDARD = 93  # in logs of Inspect; zipfile knows it since Python 3.14
BROKEN = (
    *(zipfile.BadZipFile, zlib.error, struct.error, ValueError),
    *(EOFError, OSError, NotImplementedError, RuntimeError),
)


class Unsafe(ValueError):
    """What is wrong, in words that follow the name of what is read."""


def read_json(text: str) -> Any:
    """Return JSON; bare NaN, which HELM and Inspect write for what is missing, is allowed.

    Raises
    ------
    Unsafe
        If it is no JSON, gives a key twice, is nested over 100 deep, or holds a number of over 4,300
        digits or half a surrogate pair.
    """
    try:
        value = json.loads(text, strict=False, object_pairs_hook=_object)
        if SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        position = f"at {error.colno}" if error.lineno == 1 else f"in line {error.lineno}"
        raise Unsafe(f"is not whole JSON ({error.msg} {position})") from error
    except UnicodeEncodeError as error:
        raise Unsafe("holds half a surrogate pair, which is no text") from error
    except RecursionError as error:
        raise Unsafe("is nested too deep") from error
    except Unsafe:
        raise
    except ValueError as error:  # of int(), which takes no number of any length
        raise Unsafe("has a number that is too long") from error
    if text.count("[") + text.count("{") > DEEPEST and _is_deep(value):
        raise Unsafe("is nested too deep")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = dict(pairs)
    if len(keys) < len(pairs):
        raise Unsafe("gives a value twice, under the same key")
    return keys


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        level = [
            item
            for holder in level
            for item in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True


def json_parts(path: Path) -> Iterator[Any]:
    """Yield a file's JSON without what is in its lists, and then each item with the list's key.

    So that no more than an item at a time goes from one process to another.

    Raises
    ------
    BadFile
        If it cannot be read, with `read_json`'s reason.
    """
    try:
        whole = read_json(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror}; nothing was imported") from error
    except UnicodeError as error:
        raise BadFile(f"{path}: not text in UTF-8; nothing was imported") from error
    except Unsafe as error:
        raise BadFile(f"{path}: {error}; copy it again; nothing was imported") from error
    holder = whole if isinstance(whole, dict) else {None: whole}
    lists = {key: value for key, value in holder.items() if isinstance(value, list)}
    emptied = holder | {key: [] for key in lists}
    yield emptied if isinstance(whole, dict) else emptied[None]
    yield from ((key, item) for key, items in lists.items() for item in items)


def zip_parts(
    file: BinaryIO, ratio: int, most_parts: int = MOST_PARTS, most_whole: int = MOST_WHOLE
) -> Mapping[str, zipfile.ZipInfo]:
    """Return the parts of a zip by name, from what it says of itself; nothing is unpacked.

    Parameters
    ----------
    ratio
        How many times its size an honest part unpacks to, where it is no small one.
    most_parts, most_whole
        The most parts, and bytes of all, unpacked.

    Raises
    ------
    Unsafe
        If it is no whole zip, or is encrypted, leads out of its folder or would unpack to too much.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            parts = archive.infolist()
    except BROKEN as error:
        raise Unsafe("not a whole zip; copy it again") from error
    if len(parts) > most_parts:
        raise Unsafe(f"over {most_parts:,} parts")
    if len({part.filename for part in parts}) < len(parts):
        raise Unsafe("a part of it stands in it twice")
    for part in parts:
        steps = PurePosixPath(part.filename.replace("\\", "/"))
        if steps.is_absolute() or ".." in steps.parts or stat.S_ISLNK(part.external_attr >> 16):
            raise Unsafe("a part of it leads out of it")
        if part.flag_bits & 1:
            raise Unsafe("it is encrypted; import it without a password")
        dense = part.file_size > max(FREE_PART, ratio * part.compress_size)
        if dense or part.file_size > min(MOST_PART, most_whole):
            raise Unsafe("a part of it would unpack to more than any such file has")
    unpacked = sum(part.file_size for part in parts)
    packed = sum(part.compress_size for part in parts)
    if unpacked > most_whole or unpacked > max(FREE_WHOLE, ratio * packed):
        raise Unsafe("it would unpack to more than any such file has")
    return {part.filename: part for part in parts}


def zip_part(file: BinaryIO, part: zipfile.ZipInfo) -> bytes:
    """Return what a part of a zip holds, never more than the zip says.

    Raises
    ------
    Unsafe
        If it is damaged, or of another length than the zip says.
    """
    try:
        if part.compress_type == ZSTANDARD:
            content = _zstandard(file, part)
        else:
            with zipfile.ZipFile(file) as archive, archive.open(part) as stream:
                content = stream.read(part.file_size + 1)
    except BROKEN as error:
        raise Unsafe("a part of it is damaged or cut short; copy it again") from error
    if len(content) != part.file_size:
        raise Unsafe("a part of it has another length than the zip says; copy it again")
    return content


def _zstandard(file: BinaryIO, part: zipfile.ZipInfo) -> bytes:
    from backports import zstd  # only some logs ask for it

    file.seek(part.header_offset)
    fixed = file.read(30)
    if len(fixed) < 30 or not fixed.startswith(b"PK\x03\x04"):
        raise zipfile.BadZipFile
    name, extra = struct.unpack("<HH", fixed[26:30])
    file.seek(name + extra, io.SEEK_CUR)
    try:
        with zstd.ZstdFile(io.BytesIO(file.read(part.compress_size))) as stream:
            content = stream.read(part.file_size + 1)
    except zstd.ZstdError as error:
        raise zipfile.BadZipFile from error
    if zlib.crc32(content) != part.CRC:
        raise zipfile.BadZipFile
    return content


def refuse_declarations(part: IO[bytes]) -> None:
    """Read a whole XML part, in whatever encoding, and refuse it if it declares a document type.

    Entities are declared nowhere else; no program writes one into a workbook. What is no XML, such as
    a picture, passes.

    Raises
    ------
    Unsafe
        If it does.
    """

    def refuse(*_: Any) -> None:
        raise Unsafe("it declares what no workbook of Excel does")

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.ParseFile(part)
    except expat.ExpatError:
        return

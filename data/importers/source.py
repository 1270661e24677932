"""Where a file's bytes come from: a file, one packed with gzip, or memory (an upload, a pipe).

A source is opened anew for each reading. What is packed is unpacked as it is read, never to disk
and never beyond the bounds here: a file may come from a stranger.
"""

import gzip
import io
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

from data.errors import BadFile
from data.importers.broken_zip import BROKEN
from data.importers.kinds import GZIP, START, ZIP

PIPE = "-"
STANDARD_INPUT = Path("standard input")
MOST_PIPED = 1 << 30
MOST_UNPACKED, FREE_UNPACKED, MOST_RATIO = 8 << 30, 64 << 20, 200
CHUNK = 1 << 20


class Source:
    """A file's bytes under the name that messages give it.

    Parameters
    ----------
    path
        The file; "-" is standard input, which is read whole, as is any pipe.
    content
        The bytes, where they are in memory already.

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

    def __init__(self, path: Path, content: bytes | None = None) -> None:
        self.path = STANDARD_INPUT if str(path) == PIPE else path
        self._content = _piped(path) if content is None else content
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
        """Return the names in a zip; none where it is no zip, or a damaged one."""
        with self.raw() as file:
            if file.read(len(ZIP)) != ZIP:
                return frozenset()
            try:
                with zipfile.ZipFile(file) as archive:
                    return frozenset(archive.namelist())
            except BROKEN:
                return frozenset()


class _Unpacked(io.RawIOBase):
    """The unpacked bytes of a source, to the bounds of this module."""

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
            found = self._plain.read(len(view))
        except (OSError, EOFError, zlib.error) as error:
            why = "its gzip packing is damaged or cut short; copy it again"
            raise BadFile(f"{self._source.path}: {why}; nothing was imported") from error
        self._given += len(found)
        bound = max(FREE_UNPACKED, MOST_RATIO * self._source.size)
        if self._given > min(bound, MOST_UNPACKED):
            why = "it would unpack to more than any file of rows; unpack it yourself to see"
            raise BadFile(f"{self._source.path}: {why}; nothing was imported")
        view[: len(found)] = found
        return len(found)

    def close(self) -> None:
        if not self.closed:
            self._plain.close()
            self._file.close()
        super().close()


def _piped(path: Path) -> bytes | None:
    """Return what a pipe gives, None for a file that can be read again."""
    try:
        if str(path) == PIPE:
            found = sys.stdin.buffer.read(MOST_PIPED + 1)
        elif path.is_file() or path.is_dir() or not path.exists():
            return None
        else:
            with path.open("rb") as file:
                found = file.read(MOST_PIPED + 1)
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror or error}") from error
    if len(found) > MOST_PIPED:
        raise BadFile(f"{path}: a pipe of over 1 GiB; save it as a file and name that")
    return found


def _size(path: Path) -> int:
    """Return the size in bytes of a file that can be read."""
    try:
        with path.open("rb") as file:
            return file.seek(0, io.SEEK_END)
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror or error}") from error

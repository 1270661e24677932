"""Files that are dropped into a folder: taken in whole, once, and moved away; none is ever deleted.

A drop is known by the SHA-256 of its bytes once its rows are stored. Then it is moved to `done/`; one of
which nothing can be stored is moved to `refused/` with the reason beside it. A watch that is killed
between the two finds it known, and moves it.
"""

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Engine

from annotate.intake import rubric_for
from annotate.watching.log import Log
from annotate.watching.sample import Sample
from annotate.watching.settings import SourceSettings
from data.errors import BadFile, BadInput, Conflict, MedjuryError
from data.importers.columns import read_map
from data.importers.readers import rows_of
from data.importers.responses import ResponseFile
from data.importers.source import Source
from data.queries.watch import was_taken
from data.store.responses import ResponsesAdded
from data.store.watch import Drop, refuse_drop, take_in

DONE, REFUSED = "done", "refused"
PARTIAL = (".part", ".tmp", ".partial", ".crdownload", ".filepart")
REASON = ".reason.txt"
CHUNK = 1 << 20
FED = "fed-"  # begins the names of drops that were made of rows of a database or of standard input
LINK = "a link: what it leads to may be changed or taken away meanwhile; copy the file itself here"
Clock = Callable[[], float]


class Changed(MedjuryError):
    """A file was written to while it was read: it is looked at again later."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A file as it was seen first in this form: its inode, size and time, and when."""

    form: tuple[int, int, int]
    since: float


@dataclass
class Folder:
    """The folder that outputs are dropped into.

    `monotonic` gives seconds and never runs backwards, so that a clock that is set changes nothing.
    """

    path: Path
    settings: SourceSettings
    monotonic: Clock = time.monotonic
    seen: dict[str, _Seen] = field(default_factory=dict)

    def prepare(self) -> None:
        """Make the folders that are not there; raise BadFile if that cannot be done."""
        try:
            for folder in (self.path / DONE, self.path / REFUSED):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise BadFile(f"{self.path}: {error.strerror}; the watch moves files in it") from error

    def waiting(self) -> list[Path]:
        """Return the files that have not been handled, the oldest first."""
        with suppress(FileNotFoundError):
            found = [
                (one.stat(follow_symlinks=False).st_mtime_ns, one.path) for one in self._files()
            ]
            return [Path(path) for _, path in sorted(found)]
        return []

    def _files(self) -> Iterator["os.DirEntry[str]"]:
        with os.scandir(self.path) as entries:
            for entry in entries:
                name = entry.name
                if name.startswith(".") or name.lower().endswith(PARTIAL):
                    continue
                if entry.is_symlink() or entry.is_file(follow_symlinks=False):
                    yield entry

    def has_settled(self, path: Path) -> bool:
        """Tell whether a file is as it was so many seconds ago, by every look since."""
        try:
            form = form_of(path)
        except OSError:
            return False
        if path.name.startswith(FED):  # was given its name once it was whole
            return True
        seen, present = self.seen.get(path.name), self.monotonic()
        if seen is None or seen.form != form:
            self.seen[path.name] = seen = _Seen(form, present)
        return present - seen.since >= self.settings.settle_seconds

    def moved(self, path: Path, to: str, reason: str = "") -> None:
        """Move a file away, never over another; the reason first, so that none is without one."""
        self.seen.pop(path.name, None)
        target = free_place(self.path / to, path.name)
        if reason:
            target.with_name(target.name + REASON).write_text(reason + "\n", encoding="utf-8")
        path.rename(target)


def form_of(path: Path) -> tuple[int, int, int]:
    """Return what changes when a file is written to: its inode, its size and its time."""
    status = path.stat(follow_symlinks=False)
    return status.st_ino, status.st_size, status.st_mtime_ns


def free_place(folder: Path, name: str) -> Path:
    """Return a path in a folder that no file has, of a name or of that with a number."""
    target, number = folder / name, 1
    while os.path.lexists(target):
        number += 1
        target = folder / f"{Path(name).stem}-{number}{Path(name).suffix}"
    return target


def digest_of(path: Path) -> Drop:
    """Return the drop that a file is; a link is not followed.

    Raises
    ------
    OSError
        If it cannot be read, or is a link.
    """
    sha256, size = hashlib.sha256(), 0
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(handle, "rb") as file:
        while chunk := file.read(CHUNK):
            sha256.update(chunk)
            size += len(chunk)
    return Drop(sha256.hexdigest(), size)


def handle_drops(
    engine: Engine, folder: Folder, sample: Sample, log: Log, stopping: Callable[[], bool]
) -> int:
    """Take in every file of a folder that has settled; return how many were handled."""
    handled = 0
    for path in folder.waiting():
        if stopping():
            break
        if path.is_symlink():
            folder.moved(path, REFUSED, LINK)
            log.write("refused", why="link")
            handled += 1
        elif folder.has_settled(path):
            handled += _handled(engine, folder, path, sample, log)
    return handled


def _handled(engine: Engine, folder: Folder, path: Path, sample: Sample, log: Log) -> bool:
    """Take in, or refuse, one file and move it away; False where it is to be looked at again."""
    try:
        form, size = form_of(path), path.stat(follow_symlinks=False).st_size
        most = folder.settings.most_megabytes
        if not stat.S_ISREG(path.stat(follow_symlinks=False).st_mode):
            return False
        if size > most * 1e6:
            folder.moved(path, REFUSED, f"larger than most_megabytes = {most:g}; cut it into parts")
            log.write("refused", why="size", bytes=size)
            return True
        drop = digest_of(path)
    except FileNotFoundError:
        return False
    except PermissionError:
        log.write("unreadable", files=1)
        return False
    if was_taken(engine, drop.digest):
        folder.moved(path, DONE)
        log.write("again", drop=drop.digest[:12])
        return True
    try:
        added = _take_in(engine, folder.settings, path, drop, form, sample)
    except Changed:
        folder.seen.pop(path.name, None)
        return False
    except (BadInput, Conflict) as error:
        return _refuse(engine, folder, path, drop, error, log)
    folder.moved(path, DONE)
    figures = {"responses": added.responses, "unchanged": added.unchanged, "twins": added.twins}
    log.write("taken", drop=drop.digest[:12], bytes=drop.size, **figures)
    return True


def _take_in(
    engine: Engine,
    settings: SourceSettings,
    path: Path,
    drop: Drop,
    form: tuple[int, int, int],
    sample: Sample,
) -> ResponsesAdded:
    """Store a file's rows; raise Changed if it is not what its digest is of."""

    def unchanged() -> None:
        if form_of(path) != form:
            raise Changed(f"{path}: was written to while it was read")

    unchanged()
    column_map = None if settings.map is None else read_map(settings.map, "responses")
    table, reader = rows_of([Source(path)], "responses", None, column_map, settings.benchmark)
    rubric = reader.rubric if reader else None
    rows = ResponseFile(table, settings.benchmark)
    return take_in(engine, drop, rows, lambda name: rubric or rubric_for(name), sample, unchanged)


def _refuse(
    engine: Engine, folder: Folder, path: Path, drop: Drop, error: MedjuryError, log: Log
) -> bool:
    """Cut a drop that a feed made into halves, so that one bad row refuses itself; else refuse it."""
    if path.name.startswith(FED) and (lines := path.read_bytes().splitlines())[1:]:
        half = len(lines) // 2
        for part in (lines[:half], lines[half:]):
            feed(folder.path, part)
        path.rename(free_place(folder.path / DONE, path.name))
        return True
    refuse_drop(engine, drop, type(error).__name__)
    folder.moved(path, REFUSED, str(error))
    log.write("refused", why=type(error).__name__, drop=drop.digest[:12], bytes=drop.size)
    return True


def feed(folder: Path, lines: list[bytes]) -> Path:
    """Write lines as a drop of their own, whole and on the disk before it has its name."""
    body = b"".join(line + b"\n" for line in lines)
    name = f"{FED}{hashlib.sha256(body).hexdigest()[:32]}.jsonl"
    part = folder / f"{name}.part"
    with part.open("wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(body)
        file.flush()
        os.fsync(file.fileno())
    part.rename(folder / name)
    return folder / name

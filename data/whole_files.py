"""Files that appear under their name only when they are whole, and never over another one."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def part_of(to: Path) -> Path:
    """Return where a file is written until it is whole: hidden, beside its place, and no one else's.

    A number of the process would not do: a killed one may have had it, or one of another container.
    """
    return to.with_name(f".{to.name}.{secrets.token_hex(8)}.part")


@contextmanager
def whole_file(to: Path) -> Iterator[Path]:
    """Yield where to write; the file gets its name when the block ends, and is gone if it fails.

    Raises
    ------
    FileExistsError
        If there is a file of that name by then.
    """
    part = part_of(to)
    try:
        yield part
        publish(part, to)
    finally:
        part.unlink(missing_ok=True)


def publish(part: Path, to: Path) -> None:
    """Give the file its name, in one step and never over another file, once it is on the disk."""
    _to_disk(part)
    try:
        os.link(part, to)
    except FileExistsError:
        raise
    except OSError:  # a disk without hard links
        if os.path.lexists(to):
            raise FileExistsError(to) from None
        part.rename(to)
    with suppress(OSError):  # of a disk that has no such thing for folders
        _to_disk(to.parent)


def _to_disk(path: Path) -> None:
    """Wait until a file, or the names in a folder, would outlive a power cut."""
    held = os.open(path, os.O_RDONLY)
    try:
        os.fsync(held)
    finally:
        os.close(held)

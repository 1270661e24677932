"""Files that appear under their name only when they are whole, and never over another one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def part_of(to: Path) -> Path:
    """Return where a file is written until it is whole: hidden, beside its place."""
    return to.with_name(f".{to.name}.{os.getpid()}.part")


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
    """Give the file its name, in one step and never over another file."""
    try:
        os.link(part, to)
    except FileExistsError:
        raise
    except OSError:  # a disk without hard links
        if os.path.lexists(to):
            raise FileExistsError(to) from None
        part.rename(to)

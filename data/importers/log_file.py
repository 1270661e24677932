"""What stands in a file of Inspect: a zip of JSON (.eval) or one JSON file, read by a process of its own.

That process imports this module, which loads nothing of what a log means. Nothing is unpacked to disk,
and one sample is read after the other.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from data.importers.safe import (
    Unsafe,
    in_child,
    json_of,
    json_parts,
    wrong,
    zip_contents,
    zip_parts,
)

HEADER, STARTED, SAMPLES = "header.json", "_journal/start.json", "samples/"
MOST_RATIO = 400  # a log repeats itself: events hold every message again
Found = tuple[dict[str, Any], Iterator[dict[str, Any]]]


def read_log(path: Path) -> Found:
    """Return a log's head, and its samples as a process of their own reads them.

    Raises
    ------
    BadFile
        If it is no log, cut short, or larger than any bound here. No text of it is quoted.
    """
    try:
        size = path.stat().st_size
    except OSError as error:
        raise wrong(path, str(error.strerror)) from error
    parts = in_child(_parts, path, name=path, size=size)
    return next(parts), parts


def _parts(path: Path) -> Iterator[dict[str, Any]]:
    """Yield a log's head, and then its samples."""
    with path.open("rb") as file:
        if file.read(2) == b"PK":
            yield from _parts_of_zip(path, file)
            return
    if path.suffix.lower() == ".eval":
        raise wrong(path, "no .eval log, or cut short; copy it again")
    parts = json_parts(path)
    log = _an_object(path, path.name, next(parts))
    if not isinstance(log.pop("samples", None) or [], list):
        raise wrong(path, "samples are not a list, as Inspect writes them")
    yield log
    yield from (sample for key, sample in parts if key == "samples")


def _parts_of_zip(path: Path, file: BinaryIO) -> Iterator[dict[str, Any]]:
    try:
        parts = zip_parts(file, MOST_RATIO)
        if HEADER not in parts:
            why = (
                "the run did not end (no header.json); `inspect log recover` may save what there is"
                if STARTED in parts
                else "a zip, but no log of Inspect (no header.json)"
            )
            raise wrong(path, why)
        names = [HEADER, *(part for part in parts if part.startswith(SAMPLES))]
        bodies = zip_contents(file, [parts[name] for name in names])
        for name, body in zip(names, bodies, strict=True):
            title = HEADER if name == HEADER else "a sample"
            yield _an_object(path, title, json_of(path, body, f"{title} "))
    except Unsafe as error:
        raise wrong(path, str(error)) from error


def _an_object(path: Path, name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise wrong(path, f"{name} is no JSON object: this is no log of Inspect")
    return value

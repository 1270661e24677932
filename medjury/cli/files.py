"""The files that options name: checked while options are read, written whole or not at all."""

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from data.errors import BadFile
from data.files import part_of

STANDARD_OUTPUT = Path("-")
STREAMED = "--json"  # the option that takes "-" for standard output
SQLITE = b"SQLite format 3\0"  # how such a file begins
BESIDE_SQLITE = ("-wal", "-shm", "-journal")
_streaming: list[Path] = []  # holds "-" while an option of the command has standard output
TAKEN = "medjury.cli.files.taken"  # in a context: the real path that is written to -> its option


def writes_to(
    context: typer.Context, parameter: typer.CallbackParam, to: Path | None
) -> Path | None:
    """Check the file an option names while options are read: the callback of every such option.

    Raises
    ------
    BadFile
        As `check_place`, and where another option of the command names the same file.
    """
    if to is None or context.resilient_parsing:
        return to
    option = "/".join(parameter.opts)
    check_place(option, to)
    if to == STANDARD_OUTPUT:
        _streaming[:] = [to]
    taken: dict[Path, str] = context.meta.setdefault(TAKEN, {})
    real = to if to == STANDARD_OUTPUT else to.resolve()
    if other := taken.get(real):
        raise BadFile(f"{option} {to}: {other} is to be written there; name another file")
    taken[real] = option
    return to


def writes_new(
    context: typer.Context, parameter: typer.CallbackParam, to: Path | None
) -> Path | None:
    """Check the new file an option names, as `writes_to`; refuse one that is there."""
    writes_to(context, parameter, to)
    if to is not None and not context.resilient_parsing and to.exists():
        raise BadFile(f"{parameter.opts[0]} {to}: is there already; name another file")
    return to


def writes_each(
    context: typer.Context, parameter: typer.CallbackParam, places: list[Path] | None
) -> list[Path]:
    """Check the files of an option that may be repeated, as `writes_to`."""
    for to in places or ():
        writes_to(context, parameter, to)
    return places or []


def is_streaming() -> bool:
    """Tell whether standard output is taken by what a program reads, such as JSON."""
    return bool(_streaming)


def forget_streaming() -> None:
    """Give standard output back: a command begins."""
    _streaming.clear()


def check_place(option: str, to: Path) -> None:
    """Refuse a folder, a file in a folder that is not there, and an SQLite file or its own."""
    if to == STANDARD_OUTPUT and option == STREAMED:
        return
    with _failing(option, to):
        writable = to != STANDARD_OUTPUT and not to.is_dir() and to.parent.is_dir()
        is_database = writable and _is_database(to.resolve())
    if not writable:
        raise BadFile(f"{option} {to}: not a file in a folder that exists; name another file")
    if is_database:
        raise BadFile(
            f"{option} {to}: is an SQLite database, such as a study, or a part of one, and is "
            "never written over; name another file"
        )


def _is_database(to: Path) -> bool:
    """Tell whether a file is an SQLite database, or by its name a part of one."""
    names = [to.name, *(to.name.removesuffix(e) for e in BESIDE_SQLITE if to.name.endswith(e))]
    for path in (to.with_name(name) for name in names if name):
        if path.is_file():
            with path.open("rb") as file:
                if file.read(len(SQLITE)) == SQLITE:
                    return True
    return False


def write_json(body: Mapping[str, Any], to: Path | None) -> None:
    """Write figures as JSON to a file or, for `-`, to standard output; NaN is not JSON."""
    if to is None:
        return
    text = json.dumps(body, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if to == STANDARD_OUTPUT:
        sys.stdout.write(text)
        return
    write_files({"--json": (to, text)})


def write_files(texts: Mapping[str, tuple[Path, str]]) -> None:
    """Write the text of each option to its file, all or none: a full disk leaves the old files.

    All are written beside their places first and then moved there, each in one step. What is
    no file, such as a pipe, is written to as it is.
    """
    parts: dict[str, tuple[Path, Path]] = {}
    try:
        for option, (to, text) in texts.items():
            with _failing(option, to):
                real = to.resolve()
                part = part_of(real)
                if real.is_file() or not real.exists():
                    parts[option] = part, real
                (part if option in parts else real).write_text(text, encoding="utf-8", newline="")
        for option, (part, real) in parts.items():
            with _failing(option, real):
                if real.exists():
                    shutil.copymode(real, part)  # it keeps who may read it
                part.replace(real)
    finally:
        for part, _ in parts.values():
            part.unlink(missing_ok=True)


@contextmanager
def _failing(option: str, to: Path) -> Iterator[None]:
    """Name the option and its file where writing fails."""
    try:
        yield
    except OSError as error:
        raise BadFile(f"{option} {to}: {error.strerror}") from error

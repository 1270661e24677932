"""JSON, zips and XML that strangers wrote, each read in one way, with bounds, in a process of its own.

What no honest file has is refused, and no message quotes a text. How much a file unpacks to is known
only when it is unpacked: 3 kB of Parquet can ask for gigabytes. The process that reads it ends alone,
and neither a command nor the app in which clinicians rate with it. Limits are those of the kernel
(`setrlimit`); macOS does not hold the one of memory.
"""

import json
import os
import pickle
import re
import signal
import stat
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO
from xml.parsers import expat

from pydantic import ValidationError

from data.errors import BadFile, MedjuryError

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


def wrong(what: object, why: str) -> BadFile:
    """Return the error that says what is wrong with a file as a whole."""
    return BadFile(f"{what}: {why}; nothing was imported")


def fault_of(error: ValidationError) -> tuple[str, str]:
    """Return where the first fault of a part of a file stands, and of which type it is; no text of it."""
    first = error.errors(include_input=False, include_url=False)[0]
    return ".".join(str(step)[:40] for step in first["loc"]) or "the whole", first["type"]


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
        whole = json_of(path, path.read_bytes())
    except OSError as error:
        raise wrong(path, str(error.strerror)) from error
    holder = whole if isinstance(whole, dict) else {None: whole}
    lists = {key: value for key, value in holder.items() if isinstance(value, list)}
    emptied = holder | {key: [] for key in lists}
    yield emptied if isinstance(whole, dict) else emptied[None]
    yield from ((key, item) for key, items in lists.items() for item in items)


def json_of(path: Path, body: bytes, part: str = "") -> Any:
    """Return the JSON that is in a file or a part of it; refuse it as `read_json` does."""
    try:
        return read_json(body.decode("utf-8-sig"))
    except UnicodeError as error:
        raise wrong(path, f"{part}not text in UTF-8") from error
    except Unsafe as error:
        raise wrong(path, f"{part}{error}; copy it again") from error


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


def zip_contents(file: BinaryIO, parts: Sequence[zipfile.ZipInfo]) -> Iterator[bytes]:
    """Yield what each of some parts of a zip holds, never more than the zip says.

    Raises
    ------
    Unsafe
        If one is damaged, or of another length than the zip says.
    """
    zips, broken = zipfile, tuple[type[Exception], ...](BROKEN)
    if any(part.compress_type == ZSTANDARD for part in parts):  # only some logs ask for it
        from backports import zstd
        from backports.zstd import zipfile as zips  # type: ignore[no-redef]

        broken = (*BROKEN, zstd.ZstdError, zips.BadZipFile)
    with zips.ZipFile(file) as archive:
        for part in parts:
            try:
                with archive.open(part.filename) as stream:
                    content = stream.read(part.file_size + 1)
            except broken as error:
                raise Unsafe("a part of it is damaged or cut short; copy it again") from error
            if len(content) != part.file_size:
                raise Unsafe("a part of it has another length than the zip says; copy it again")
            yield content


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


MEMORY, MEMORY_EACH_BYTE = 1 << 30, 8  # bytes, over what the process has at its start
SECONDS, SECONDS_EACH_MB = 120, 1  # of processor time
MOST_ITEM = 128 << 20  # bytes of one row as it is handed over
MOST_VALUES = 2_000_000  # in it
ADVICE = "save its rows as CSV or JSON Lines, not packed"
FULL, FAILED = 77, 1  # how the process ends without memory, and by an error that nobody foresaw
PLAIN = ("datetime", "decimal", "pathlib", "uuid")  # of what types values in files are
NO_RECORDS = ("data.importers.file_rows", "no_records")  # the one function: it does nothing
FOLDER = str(Path(__file__).parents[2])
BEGIN = "import sys; sys.path.insert(0, sys.argv[1]); from data.importers.safe import main; main()"
ENVIRONMENT = {  # threads ask for memory, too; openpyxl is to read all XML through defusedxml
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OPENPYXL_LXML": "False",
    "OPENPYXL_DEFUSEDXML": "True",
}


class _Items(pickle.Unpickler):
    """Reads what the process hands over: values and our own types, whatever became of it inside."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a type of plain values or of ours; refuse all else, and any function."""
        ours = module == "data.errors" or module.startswith("data.importers.")
        found = super().find_class(module, name) if ours or module in PLAIN else None
        if not isinstance(found, type) and (module, name) != NO_RECORDS:
            raise pickle.UnpicklingError(f"{module}.{name} is no value of a row")
        return found


def in_child(
    function: Callable[..., Iterator[Any]],
    *arguments: Any,
    name: object,
    size: int,
    memory: int = MEMORY,
    seconds: int = SECONDS,
    seconds_each_mb: int = SECONDS_EACH_MB,
    advice: str = ADVICE,
) -> Generator[Any, None, None]:
    """Yield what a generator function yields in a process that is stopped at its limits.

    Parameters
    ----------
    function
        One of a module, not a method or a lambda; what it is given and yields is pickled.
    name
        What messages call the file.
    size
        Its bytes: the limits grow with what its owner can see.
    memory, seconds
        The limits of a small file.
    advice
        What to do where a limit is reached.

    Raises
    ------
    BadFile
        If a limit is reached or the process fails.
    MedjuryError
        What the function raises.
    """
    memory = max(memory, MEMORY_EACH_BYTE * size)
    seconds += seconds_each_mb * (size >> 20)
    with subprocess.Popen(  # noqa: S603 our own module
        [sys.executable, "-P", "-c", BEGIN, FOLDER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | ENVIRONMENT,
    ) as process:
        try:
            if process.stdin is None or process.stdout is None:
                raise RuntimeError("the process has no pipes")
            with suppress(BrokenPipeError), process.stdin:
                pickle.dump((function, arguments, str(name), memory, seconds), process.stdin)
            while True:
                try:
                    item = _Items(process.stdout).load()
                except EOFError as error:
                    raise _stopped(process.wait(), name, memory, seconds, advice) from error
                except pickle.UnpicklingError as error:
                    raise _stopped(FAILED, name, memory, seconds, advice) from error
                if isinstance(item, MedjuryError):
                    raise item
                if item is None:
                    return
                yield from item
        finally:
            process.kill()


def read_json_file(path: Path) -> Any:
    """Return the JSON of a file, parsed in a process of its own.

    Raises
    ------
    OSError
        If there is no such file.
    BadFile
        As `in_child` and `json_parts`.
    """
    parts = in_child(json_parts, path, name=path, size=path.stat().st_size)
    whole = next(parts)
    for key, item in parts:
        (whole if key is None else whole[key]).append(item)
    return whole


def _stopped(code: int, name: object, memory: int, seconds: int, advice: str) -> BadFile:
    """Return what to say of a process that ended before it had read all."""
    if code == -signal.SIGXCPU:
        why = f"took longer than {seconds} seconds to read"
    elif code == FAILED:
        why = "damaged, or of a form that cannot be read"
    else:
        why = f"needs more than {memory >> 20:,} MB to read"
    return wrong(name, f"{why}; {advice}")


def main() -> None:
    """Read what to do from standard input, do it within the limits, and write what comes of it."""
    function, arguments, name, memory, seconds = pickle.load(sys.stdin.buffer)  # noqa: S301 ours
    with os.fdopen(os.dup(1), "wb", buffering=1 << 16) as out:
        os.dup2(2, 1)  # what a library prints is no row
        _limit(memory, seconds)
        try:
            for item in function(*arguments):
                row = pickle.dumps((item,), pickle.HIGHEST_PROTOCOL)
                if len(row) > MOST_ITEM or _has_many_values(item):
                    why = f"a row is over {MOST_ITEM >> 20} MB, or has over {MOST_VALUES:,} values"
                    raise wrong(name, why)
                out.write(row)
            end: MedjuryError | None = None
        except MedjuryError as error:
            end = error
        except RecursionError:
            end = wrong(name, "nested too deep")
        except MemoryError:
            os._exit(FULL)
        pickle.dump(end, out)


def _has_many_values(item: Any) -> bool:
    """Tell whether a row would need far more memory than its bytes say: it is made again elsewhere."""
    values = 0
    holders: list[Any] = [[item]]
    while holders and values <= MOST_VALUES:
        held = holders.pop()
        values += len(held)
        inner = held.values() if isinstance(held, dict) else held
        holders += (value for value in inner if isinstance(value, dict | list | tuple))
    return values > MOST_VALUES


def _limit(memory: int, seconds: int) -> None:
    """Hold this process to limits, memory over what it has now."""
    with suppress(ImportError):  # of systems without them
        import resource

        try:
            lines = Path("/proc/self/status").read_text("ascii").splitlines()
        except OSError:
            lines = []
        at_start = next((int(line.split()[1]) << 10 for line in lines if "VmData" in line), 0)
        resource.setrlimit(resource.RLIMIT_DATA, (at_start + memory,) * 2)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

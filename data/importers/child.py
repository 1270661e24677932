"""Foreign files are parsed in a process of their own, with limits of memory and of processor time.

How much a file unpacks to is known only when it is unpacked: 3 kB of Parquet can ask for gigabytes.
The process that reads it ends alone, and neither a command nor the app in which clinicians rate with
it. Limits are those of the kernel (`setrlimit`); macOS does not hold the one of memory.
"""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from data.errors import BadFile, MedjuryError
from data.importers.safe import json_parts

MEMORY, MEMORY_EACH_BYTE = 1 << 30, 8  # bytes, over what the process has at its start
SECONDS, SECONDS_EACH_MB = 120, 1  # of processor time
MOST_ITEM, MOST_VALUES = 128 << 20, 2_000_000  # bytes of one row as handed over, and values in it
ADVICE = "save its rows as CSV or JSON Lines, not packed"
FULL, FAILED = 77, 1  # how the process ends without memory, and by an error that nobody foresaw
PLAIN = ("datetime", "decimal", "pathlib", "uuid")  # of what types values in files are
NO_RECORDS = ("data.importers.file_rows", "no_records")  # the one function: it does nothing
FOLDER = str(Path(__file__).parents[2])
START = "import sys; sys.path.insert(0, sys.argv[1]); from data.importers.child import main; main()"
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
        [sys.executable, "-P", "-c", START, FOLDER],
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


def read_json(path: Path) -> Any:
    """Return the JSON of a file, parsed in a process of its own.

    Raises
    ------
    OSError
        If there is no such file.
    BadFile
        As `in_child` and `safe.json_parts`.
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
    return BadFile(f"{name}: {why}; {advice}; nothing was imported")


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
                    raise BadFile(f"{name}: {why}; nothing was imported")
                out.write(row)
            end: MedjuryError | None = None
        except MedjuryError as error:
            end = error
        except RecursionError:
            end = BadFile(f"{name}: nested too deep; nothing was imported")
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

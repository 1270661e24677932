"""What runs at a worker: one piece of work handed over opaque, its outcome handed back opaque.

Dask logs what fails with its arguments. So what may hold a text travels in a `Opaque`, which
shows nothing of it, and no piece of work ever fails: a failure is an outcome too.
"""

import asyncio
import hashlib
import platform
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

COMPUTED_WITH = ("numpy", "scipy", "rapidfuzz", "tokenizers", "onnxruntime")
PACKAGES = ("medjury", *COMPUTED_WITH, "distributed")
COMPUTING = ("calibration", "data", "jury", "medjury")  # whose code runs at workers
CALLS_AT_ONCE = 512
Fingerprint = dict[str, str]


@dataclass(frozen=True, eq=False, repr=False)
class Opaque:
    """Something that is sent and must not be shown."""

    value: Any


@dataclass(frozen=True, eq=False, repr=False)
class Failed:
    """What a piece of work raised, and where."""

    error: Exception
    host: str


def environment_fingerprint() -> Fingerprint:
    """Return all that must be the same on both sides for the figures to be the same."""
    return dict(_fingerprint())


def kernels() -> str:
    """Return which processor instructions numpy's products use here: they decide last digits."""
    import numpy as np
    from threadpoolctl import threadpool_info

    np.dot(np.ones(2), np.ones(2))
    blas = sorted({str(one.get("architecture", "")) for one in threadpool_info()} - {"", "None"})
    simd = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return f"{' '.join(blas)} {simd[-1] if simd else ''}".strip()


def done(expected: Fingerprint, work: Opaque, item: Opaque) -> Opaque:
    """Return the outcome of a function of some arguments, on one thread of the matrix library."""
    found = environment_fingerprint()
    if found != expected:  # a worker that joined after the others were looked at
        return Opaque(Failed(OtherEnvironment(difference(expected, found)), platform.node()))
    _one_thread()
    return Opaque(_outcome(work.value, item.value))


async def called(work: Opaque) -> Opaque:
    """Return the outcome of a call that mostly waits, beside others and off the worker's loop."""
    function, *arguments = work.value
    loop = asyncio.get_running_loop()
    return Opaque(await loop.run_in_executor(_threads(), _outcome, function, arguments))


class OtherEnvironment(Exception):
    """A worker whose versions or code are not those of whoever sends it work."""


def difference(expected: Fingerprint, found: Fingerprint) -> str:
    """Return what differs, "" if nothing does: "numpy 1.0, here 2.0"."""
    return ", ".join(
        f"{name} {found.get(name, 'missing')}, here {value}"
        for name, value in expected.items()
        if found.get(name) != value
    )


def _outcome(function: Callable[..., Any], arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception as error:
        return Failed(error, platform.node())


@cache
def _fingerprint() -> tuple[tuple[str, str], ...]:
    python = ".".join(platform.python_version_tuple()[:2])
    packages = [(name, installed(name)) for name in PACKAGES]
    return (("python", python), *packages, ("code of medjury", _code()))


def installed(name: str) -> str:
    """Return the version of a package, "missing" without it."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _code() -> str:
    """Return a short hash of the code that decides figures and verdicts."""
    root, digest = Path(__file__).parent.parent, hashlib.sha256()
    for package in COMPUTING:
        for path in sorted((root / package).rglob("*.py")):
            if "report" not in path.relative_to(root).parts:
                digest.update(path.relative_to(root).as_posix().encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


@cache
def _one_thread() -> None:
    """Keep the matrix library on one thread for good: with several, last digits may differ."""
    import numpy as np  # noqa: F401 its library is there to be limited only once it is loaded
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="call")

"""First answers of screens, kept in the study until anything in it changes.

A server that has just started shows them at once, where it would load libraries and compute for
seconds. What is kept was computed by this very medjury, from this very state of the study; anything
else is as good as nothing. Where the study cannot be written to nothing is kept, and nobody is told.
"""

import hashlib
import io
import pickle
import platform
import zlib
from dataclasses import dataclass, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from data.errors import MedjuryError
from data.queries.kept_answers import kept_answer
from data.queries.study_state import study_state
from data.schema import now
from data.store.kept_answers import keep_answer
from medjury import own_packages

# What is kept: figures, names of raters, benchmarks and criteria; never a text or an author.
FUNCTIONS = ("annotate.calibrations:home", "annotate.analyses:agreement")
PACKAGES = (*own_packages.NAMES, "medjury")
SOFTWARE = ("numpy", "pandas", "scipy", "statsmodels", "sqlalchemy", "altair")
# Where the types of answers are from. Nothing else is made of what a database holds.
MODULES = ("annotate.results", "calibration.")
MOST_BYTES = 20_000_000  # of an answer that is unpacked
DAMAGE = (pickle.UnpicklingError, zlib.error, ValueError, TypeError, LookupError, AttributeError)


@dataclass(frozen=True, slots=True)
class Found:
    """What a study's figures rest on now, and the answer that was kept for it, None without one."""

    question: str
    state: str
    answer: Any = None
    at: datetime | None = None


def find(engine: Engine, function: str, question: object) -> Found | None:
    """Return what is kept for a question now; None where it cannot be told."""
    try:
        key, state = _key(function, question), study_state(engine)
        kept = kept_answer(engine, key, state)
    except (MedjuryError, SQLAlchemyError, OSError):
        return None  # who computes it says what is wrong
    if kept is None:
        return Found(key, state)
    try:
        return Found(key, state, unpacked(kept.body), kept.at)
    except (*DAMAGE, EOFError, ImportError):
        return Found(key, state)


def keep(engine: Engine, before: Found, answer: object) -> None:
    """Keep an answer that was computed since `before`, unless study or medjury changed meanwhile."""
    try:
        if study_state(engine) == before.state and sources() == running():
            keep_answer(engine, before.question, before.state, packed(answer), now())
    except (MedjuryError, SQLAlchemyError, OSError):
        return  # it can only be read, is full or locked: it is computed again another time


def packed(answer: object) -> bytes:
    """Return an answer as bytes."""
    return zlib.compress(pickle.dumps(answer), 6)


def unpacked(body: bytes) -> Any:
    """Return the answer that bytes hold, made of nothing but plain values and types of answers.

    Raises
    ------
    UnpicklingError, zlib.error
        If they hold anything else, or are damaged.
    """
    reader = zlib.decompressobj()
    plain = reader.decompress(body, MOST_BYTES)
    if not reader.eof:
        raise pickle.UnpicklingError("an answer that is cut off, or too large")
    return _Answers(io.BytesIO(plain)).load()


class _Answers(pickle.Unpickler):
    """Reads answers: whoever can write to a study must not thereby run code on its servers."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a dataclass or an enumeration of ours; refuse all else."""
        if not module.startswith(MODULES) or "." in name:
            raise pickle.UnpicklingError(f"{module}.{name} is no type of an answer")
        found = super().find_class(module, name)
        is_value = isinstance(found, type) and (is_dataclass(found) or issubclass(found, Enum))
        if not is_value or found.__module__ != module:
            raise pickle.UnpicklingError(f"{module}.{name} is no type of an answer")
        return found


def _key(function: str, question: object) -> str:
    """Return a digest of what is asked and of whom: another medjury may answer otherwise."""
    return hashlib.sha256(repr((running(), function, question)).encode()).hexdigest()


@cache
def running() -> str:
    """Return what `sources` was when this process first asked."""
    return sources()


def sources() -> str:
    """Return a digest of our own code as it lies on the disk, and of the libraries that compute."""
    digest = hashlib.sha256()
    told = (platform.python_version(), platform.machine(), *map(_version, SOFTWARE))
    digest.update(repr(told).encode())
    for name, path in own_packages.sources(*PACKAGES):
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""

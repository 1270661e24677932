"""What the processes hold, looked at every ten seconds."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from book import Book
from sqlalchemy import make_url, text

from data.database import open_study

EVERY_SECONDS = 10.0
MB = 1024 * 1024
KINDS = {"annotate.worker_process": "worker", "-m medjury": "figures", "medjury jury": "jury"}


async def watch(book: Book, url: str, pid: int, seconds: float) -> None:
    """Take samples until the time is over."""
    at = 0.0
    while at <= seconds:
        await asyncio.sleep(max(0.0, at - book.now()))
        try:
            book.samples.append(
                {"at": round(book.now(), 1)} | await asyncio.to_thread(_sample, pid, url)
            )
        except psutil.NoSuchProcess:
            book.wrong("server", "has ended")
            return
        at += EVERY_SECONDS


def _sample(pid: int, url: str) -> dict[str, Any]:
    """Return memory in MB, open files and threads of each kind of process, and the study's size."""
    server = psutil.Process(pid)
    found: dict[str, Any] = {"server": _held([server]) | _open(server)}
    groups: dict[str, list[psutil.Process]] = {}
    for one in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if kind := _kind(" ".join(one.cmdline())):
                groups.setdefault(kind, []).append(one)
    return found | {kind: _held(group) for kind, group in groups.items()} | _sizes(url)


def _kind(command: str) -> str:
    return next((kind for part, kind in KINDS.items() if part in command), "")


def _held(processes: Iterable[psutil.Process]) -> dict[str, float]:
    """Return the memory of processes, summed."""
    held = {"rss": 0.0, "pss": 0.0, "uss": 0.0}
    for one in processes:
        with suppress(psutil.NoSuchProcess):
            info = one.memory_full_info()
            for name in held:
                held[name] = round(held[name] + getattr(info, name) / MB, 1)
    return held


def _open(process: psutil.Process) -> dict[str, int]:
    return {"files": process.num_fds(), "threads": process.num_threads()}


def _sizes(url: str) -> dict[str, float | None]:
    """Return the size of the study and of its write-ahead log, in MB."""
    path = make_url(url).database
    if make_url(url).get_backend_name() == "sqlite" and path:
        return {"study": _mb(Path(path)), "wal": _mb(Path(f"{path}-wal"))}
    engine = open_study(url)
    with engine.connect() as connection:
        size = connection.scalar(text("SELECT pg_database_size(current_database())"))
    engine.dispose()
    return {"study": round((size or 0) / MB, 1), "wal": None}


def _mb(path: Path) -> float:
    return round(path.stat().st_size / MB, 1) if path.exists() else 0.0

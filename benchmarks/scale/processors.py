"""Who uses the processors while the rating room is measured, and how long the record is locked."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

GROUPS = Path("/sys/fs/cgroup/cpu")  # of version 1
PERIOD = 10_000  # microseconds
CHAIN = 6_337_589  # the lock of the record's end: data/store/audit.py
TICKS = os.sysconf("SC_CLK_TCK")


def used_by_server(folder: str) -> float:
    """Return the processor seconds of PostgreSQL, of connections that have ended too."""
    server = int(Path(folder, "data/postmaster.pid").read_text().split()[0])
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    return sum(map(used_by, (server, *map(int, children))))


def used_by(process: int) -> float:
    """Return the processor seconds of a process and of its children that have ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0  # its parent has it now
    return sum(map(int, fields[11:15])) / TICKS


@contextmanager
def held_to(share: float) -> Iterator[None]:
    """Give this process no more than a share of one processor; 0 leaves it free. Needs root."""
    if not share:
        yield
        return
    group = GROUPS / f"medjury-room-{os.getpid()}"
    group.mkdir()
    try:
        (group / "cpu.cfs_period_us").write_text(str(PERIOD))
        (group / "cpu.cfs_quota_us").write_text(str(int(PERIOD * share)))
        (group / "cgroup.procs").write_text(str(os.getpid()))
        yield
    finally:
        (GROUPS / "cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()


@dataclass
class Looks:
    """How often the record's lock was looked at, was held, and had somebody waiting for it."""

    all: int = 0
    held: int = 0
    waiting: int = 0
    done: threading.Event = field(default_factory=threading.Event)


@contextmanager
def locks_watched(folder: str, database: str) -> Iterator[Looks]:
    """Look twenty times a second whether the record's lock is held."""
    looks = Looks()
    thread = threading.Thread(target=_look, args=(folder, database, looks))
    thread.start()
    try:
        yield looks
    finally:
        looks.done.set()
        thread.join()


def _look(folder: str, database: str, looks: Looks) -> None:
    query = "SELECT granted FROM pg_locks WHERE locktype = 'advisory' AND objid = %s"
    with psycopg.connect(host=folder, user="postgres", dbname=database, autocommit=True) as server:
        while not looks.done.is_set():
            granted = [row[0] for row in server.execute(query, (CHAIN,))]
            looks.all += 1
            looks.held += any(granted)
            looks.waiting += not all(granted)
            time.sleep(0.05)

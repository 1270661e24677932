"""A watch that is killed, whose disk fills up and whose juror is down, while drops come; and what was lost."""

import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Engine
from sqlmodel import Session, select

from data.database import open_study
from data.queries.record import verify
from data.queries.watch import drawn_without_reader, intakes
from data.schema import Assignment, Attempt, Intake, Response, Status
from data.store import invite
from kit.jurors import Do, Seen, Stub
from kit.ward import lines

AT_ONCE = 4
CLINICIANS = ("dr_a", "dr_b", "dr_c")
SETTINGS = """
[source]
settle_seconds = 0.3
poll_seconds = 0.2
[jury]
panel = "{panel}"
retry_minutes = 0.01
concurrency = {at_once}
[sample]
share = 0.1
clinicians = ["dr_a", "dr_b", "dr_c"]
"""
PANEL = """name = "two"
[[juror]]
name = "a"
provider = "openai"
model = "a"
family = "x"
base_url = "{url}"
[[juror]]
name = "b"
provider = "openai"
model = "b"
family = "y"
base_url = "{url}"
"""


@dataclass
class Ward:
    """The ward: a place for the study, one for the drops, and two jurors on the loopback.

    `down` is whether juror b is; `answered` counts whole answers by juror and question.
    """

    place: Path
    disk: Path
    stub: Stub = field(init=False)
    down: bool = False
    answered: Counter[tuple[str, str]] = field(default_factory=Counter)
    kills: int = 0

    def __post_init__(self) -> None:
        self.stub = Stub(self._answer)
        self.drops = self.place / "drops"
        self.drops.mkdir()
        self.url = f"sqlite:///{self.disk / 'study.db'}"

    def _answer(self, seen: Seen) -> Do:
        if seen.model == "b" and self.down:
            return Do(status=503)
        self.answered[seen.model, seen.prompt] += 1
        return Do()

    def begin(self) -> Engine:
        """Make the study and write the settings."""
        panel = self.place / "panel.toml"
        panel.write_text(PANEL.format(url=self.stub.openai_url))
        own = SETTINGS.format(panel=panel, at_once=AT_ONCE)
        (self.place / "watch.toml").write_text(own)
        engine = open_study(self.url, create=True)
        invite(engine, list(CLINICIANS))
        return engine

    def started(self, *options: str) -> "subprocess.Popen[bytes]":
        """Start a watch in a process of its own."""
        words = ("analyse", "watch", str(self.drops), "--settings", str(self.place / "watch.toml"))
        log = ("--log", str(self.place / "log.jsonl"))
        with (self.place / "errors.txt").open("ab") as errors:
            return subprocess.Popen(
                [sys.executable, "-m", "medjury", *words, *log, *options],
                env=os.environ | {"MEDJURY_DB": self.url},
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )

    def kill_some(self, kills: int, longest: float, seed: int) -> None:
        """Start watches and kill each at a random moment after it has begun."""
        draw = random.Random(seed)  # noqa: S311 seeded on purpose
        for _ in range(kills):
            before = self.begun()
            process = self.started()
            while self.begun() == before and process.poll() is None:
                time.sleep(0.02)
            time.sleep(draw.uniform(0.0, longest))
            assert process.poll() is None, (self.place / "errors.txt").read_text()
            process.kill()
            process.wait(30)
            self.kills += 1

    def begun(self) -> int:
        """Return how many watches have begun."""
        log = self.place / "log.jsonl"
        return log.read_text().count('"watching"') if log.exists() else 0

    def finish(self, seconds: float) -> int:
        """Let a watch handle what is left; return its exit code."""
        return self.started("--once").wait(seconds)


def dropped(ward: Ward, drops: int, each: int, pause: float) -> None:
    """Drop files one after the other: copied in two parts, some under two names, some malformed."""
    for number in range(drops):
        body = lines(number * each, each, "Answer {} of the ward.").encode()
        with (ward.drops / f"{number:04}.csv").open("wb") as file:
            file.write(body[: len(body) // 2])
            file.flush()
            time.sleep(min(0.05, pause))
            file.write(body[len(body) // 2 :])
        if number % 10 == 0:
            (ward.drops / f"{number:04}-again.csv").write_bytes(body)
            (ward.drops / f"{number:04}-bad.csv").write_bytes(body.replace(b"Answer", b"\xff,", 1))
        time.sleep(pause)


@contextmanager
def dropping(ward: Ward, drops: int, each: int, pause: float) -> Iterator[None]:
    """Drop files meanwhile; wait for the last one at the end."""
    thread = threading.Thread(target=dropped, args=(ward, drops, each, pause))
    thread.start()
    try:
        yield
    finally:
        thread.join()


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """Fill a disk; the ballast goes at the end."""
    ballast = disk / "ballast"
    free = os.statvfs(disk)
    with ballast.open("wb") as file:
        file.write(b"\1" * max(0, free.f_bavail * free.f_frsize - 8192))
    try:
        yield
    finally:
        ballast.unlink()


@dataclass(frozen=True)
class Account:
    """What is there after all of it.

    Attributes
    ----------
    responses, verdicts : stored outputs, and whole verdicts of both jurors together
    repeated : verdicts that are stored more than once
    answers, paid_again : whole answers that the jurors gave, and those that were to a question again
    drawn, readings, without_reader : of the sample
    findings : of `study verify`
    """

    responses: int
    verdicts: int
    repeated: int
    answers: int
    paid_again: int
    drawn: int
    readings: int
    without_reader: int
    findings: tuple[str, ...]


def account(ward: Ward, engine: Engine) -> Account:
    """Count what is there."""
    with Session(engine) as session:
        responses = len(session.exec(select(Response.id)).all())
        ok = Counter(
            session.exec(select(Attempt.rater, Attempt.response).where(Attempt.status == Status.OK))
        )
        drawn = [key for keys in session.exec(select(Intake.drawn)) for key in keys]
        readings = len(session.exec(select(Assignment.id)).all())
    assert intakes(engine).drawn == len(set(drawn))
    return Account(
        responses,
        len(ok),
        sum(ok.values()) - len(ok),
        ward.answered.total(),
        ward.answered.total() - len(ward.answered),
        len(drawn),
        readings,
        len(drawn_without_reader(engine)),
        tuple(verify(engine).findings),
    )

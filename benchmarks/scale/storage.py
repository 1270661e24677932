"""Measure what a study costs a response: bytes on disk, seconds to store, and memory to load.

    PYTHONPATH=tests uv run python benchmarks/scale/storage.py [--responses 2000] [--postgres]

Texts are made up: a context of 1,000 words and a response of 300; three jurors give an
explanation of 60 words on each of three criteria, two clinicians rate. Verdicts go through
`run_panel` and its writer, from a line in this process that answers at once. With --postgres the
study is also moved to a server of the tests' and measured there.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Engine, text

from data.database import open_study, reading
from data.importers.ratings import RatingFile
from data.importers.responses import ResponseFile
from data.importers.table import TableFile
from data.rubric import read_rubric
from data.schema import Status
from data.store import import_ratings, import_responses
from data.store.moving import move_study
from jury.call import Answer, Call, Usage
from jury.panel import Panel
from jury.run import run_panel

CRITERIA = ("accuracy", "completeness", "clarity")
WORDS = [
    "patient",
    "reports",
    "intermittent",
    "chest",
    "pain",
    "since",
    "admission",
    "denies",
    "fever",
]
JURORS = ("a", "b", "c")
HEAD = "instance_id,benchmark,context,prompt,reference,response_id,model,response"


class Answering:
    """A juror's line that answers at once, at length."""

    async def complete(self, _: Call) -> Answer:
        """Return a whole verdict of threes."""
        said = " ".join(random.choices(WORDS, k=60))
        body = {name: {"explanation": said, "score": 3} for name in CRITERIA}
        usage = Usage(1800, 270, 0, 0, 0)
        return Answer(Status.OK, text=json.dumps(body), usage=usage, http=200, request_id="r" * 36)

    async def close(self) -> None:
        """Do nothing."""


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--responses", type=int, default=2_000)
    asked.add_argument("--postgres", action="store_true")
    asked.add_argument(
        "--load", help="only load the ratings of this study, for the memory it takes"
    )
    options = asked.parse_args()
    if options.load:
        load(options.load)
        return
    print(f"load {' '.join(f'{one:.1f}' for one in os.getloadavg())} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), options.responses, postgres=options.postgres)


def measure(folder: Path, count: int, *, postgres: bool) -> None:
    """Fill a study step by step and say what each took."""
    url = f"sqlite:///{folder}/study.db"
    engine = open_study(url, create=True)
    empty = size(engine)
    lines = list(texts(count, words=300, context=1000))
    with_texts = size(filled(url, lines))
    print(f"{count} responses; texts {sum(map(len, lines)) / count:.0f} characters each")
    print(f"  texts: {(with_texts - empty) / count:.0f} bytes a response")
    began, used = time.perf_counter(), time.process_time()
    run_panel(engine, panel(), concurrency=64, providers={name: Answering() for name in JURORS})
    took, used = time.perf_counter() - began, time.process_time() - used
    verdicts = count * len(JURORS)
    with_verdicts = size(engine)
    print(f"  verdicts: {(with_verdicts - with_texts) / verdicts:.0f} bytes each, ", end="")
    print(f"{verdicts / took:.0f}/s stored, {1000 * used / verdicts:.2f} ms of processor time")
    rated = folder / "ratings.csv"
    rated.write_text("\n".join(clinicians(count)))
    import_ratings(engine, RatingFile(TableFile(rated)))
    print(f"  a clinician's rating: {(size(engine) - with_verdicts) / count / 2:.0f} bytes")
    print(f"  all: {size(engine) / count:.0f} bytes a response", flush=True)
    subprocess.run([sys.executable, __file__, "--load", url], check=True)
    if postgres:
        moved(url, count)


def load(url: str) -> None:
    """Load what `calibrate` loads, and say what it took."""
    import pandas as pd

    from calibration.scores import Scores  # both loaded beforehand: they are not the study's
    from medjury.services.scores import scores_of

    assert all((pd, Scores))
    engine = open_study(url)
    before, began = _most(), time.perf_counter()
    rows = len(scores_of(engine).ratings)
    took, peak = time.perf_counter() - began, _most() - before
    print(f"  loading {rows} scores: {took:.1f} s, at its peak {peak / rows:.0f} bytes each")


def _most() -> int:
    """Return the most memory this process has held, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def moved(url: str, count: int) -> None:
    """Move the study to PostgreSQL and say how large it is there."""
    from kit import postgres

    there = open_study(postgres.new_database(), create=True)
    sizes = [_there(there)]
    move_study(open_study(url), there)
    sizes.append(_there(there))
    print(f"  PostgreSQL: {(sizes[1] - sizes[0]) / count:.0f} bytes a response")


def _there(study: Engine) -> int:
    with reading(study) as session:
        found = session.connection().execute(text("SELECT pg_database_size(current_database())"))
        return int(found.scalar_one())


def filled(url: str, lines: Iterator[str]) -> Engine:
    """Return a study with these responses."""
    engine = open_study(url, create=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "responses.csv"
        path.write_text("\n".join([HEAD, *lines]))
        rows = ResponseFile(TableFile(path))
        import_responses(engine, rows, lambda _: read_rubric("generic"))
    return engine


def texts(count: int, words: int, context: int = 50) -> Iterator[str]:
    """Yield lines of a file of responses, each to an instance of its own."""
    draw = random.Random(0)
    for n in range(count):
        about, said = (" ".join(draw.choices(WORDS, k=k)) for k in (context, words))
        yield f"i{n},visits,{n} {about},Write.,,r{n},m{n % 9},{said}"


def clinicians(count: int) -> Iterator[str]:
    """Yield lines of a file of two clinicians' ratings."""
    draw = random.Random(1)
    yield "response_id,rater,kind,accuracy,completeness,clarity"
    for n in range(count):
        for who in range(2):
            scores = ",".join(str(draw.randint(1, 5)) for _ in CRITERIA)
            yield f"r{n},dr{(n + 7 * who) % 20},clinician,{scores}"


def panel() -> Panel:
    """Return a panel of three jurors with a price."""
    one = {"provider": "openai", "model": "m", "family": "x", "base_url": "http://127.0.0.1:1/v1"}
    price = {"usd_per_million_in": 1.0, "usd_per_million_out": 1.0}
    return Panel.model_validate({"name": "p", "juror": [{"name": n} | one | price for n in JURORS]})


def size(engine: Engine) -> int:
    """Return the bytes of a SQLite study, its log written back."""
    path = Path(str(engine.url.database))
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.stat().st_size


if __name__ == "__main__":
    main()

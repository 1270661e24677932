"""Measure what an import of ratings from a file costs on a made study, and where its time goes.

    PYTHONPATH=. uv run python benchmarks/scale/imports.py --ratings 300000 [--db URL] [--profile]

Told are wall time, microseconds a rating and the most memory that was held, of the first import, of
the same file again, and of one whose last row is wrong, which stores nothing; and what `verify`
finds, with the digest of all ratings in their order, to compare commits by. --profile shows the
functions of the first import that take longest. The study is new, in a folder that is removed;
--db URL names an empty database instead.
"""

import argparse
import cProfile
import hashlib
import json
import os
import pstats
import random
import resource
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from made import BEGAN, CRITERIA
from sqlalchemy import Engine, text

from data.database import open_study
from data.errors import BadInput
from data.importers.ratings import RatingFile
from data.importers.responses import ResponseFile
from data.importers.table import TableFile
from data.queries.record import verify
from data.rubric import read_rubric
from data.store import import_ratings, import_responses

JURORS = 12


def main() -> None:
    """Make the files, import them and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ratings", type=int, default=300_000)
    parser.add_argument("--db", default="")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        engine = open_study(options.db or f"sqlite:///{place / 'study.db'}", create=True)
        ratings = made_files(place, options.ratings)
        rubric = read_rubric("generic")
        import_responses(engine, ResponseFile(TableFile(place / "responses.csv")), lambda _: rubric)
        run("first", engine, place / "ratings.csv", ratings, profiled=options.profile)
        run("again", engine, place / "ratings.csv", ratings)
        run("wrong at its end", engine, place / "wrong.csv", ratings)
        tell(engine)


def made_files(place: Path, ratings: int) -> int:
    """Write responses and ratings; return how many ratings the file has."""
    draw, responses = random.Random(0), -(-ratings // (JURORS * len(CRITERIA)))
    with (place / "responses.csv").open("w") as file:
        file.write("benchmark,instance_id,context,prompt,response_id,model,response\n")
        for n in range(responses):
            file.write(f"visits,i{n},context {n},prompt {n},r{n},model{n % 4},text {n}\n")
    header = "response_id,rater,kind,criterion,score,comment,rated_at\n"
    with (place / "ratings.csv").open("w") as file:
        file.write(header)
        for n in range(responses):
            for juror in range(JURORS):
                at = (BEGAN + timedelta(seconds=n * JURORS + juror)).isoformat()
                for criterion in CRITERIA:
                    score = draw.randint(1, 5)
                    file.write(f"r{n},juror{juror:02},juror,{criterion},{score},,{at}\n")
    good = (place / "ratings.csv").read_text()
    (place / "wrong.csv").write_text(f"{good}r0,other,juror,{CRITERIA[0]},9,,\n")
    return responses * JURORS * len(CRITERIA)


def run(name: str, engine: Engine, path: Path, ratings: int, *, profiled: bool = False) -> None:
    """Import a file and print what it took."""
    profile, load, began = cProfile.Profile(), os.getloadavg()[0], time.perf_counter()
    used = time.process_time()
    work: Callable[[], object] = lambda: import_ratings(engine, RatingFile(TableFile(path)))  # noqa: E731 run with or without a profile
    result: object = "refused"
    with suppress(BadInput):
        result = profile.runcall(work) if profiled else work()
    used, took = time.process_time() - used, time.perf_counter() - began
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(
        f"{name}: {took:.1f} s, {1e6 * used / ratings:.1f} processor us a rating, {held:.0f} MB at "
        f"the peak so far; load {load:.1f}: {result}"
    )
    if profiled:
        pstats.Stats(profile).sort_stats("tottime").print_stats(30)


def tell(engine: Engine) -> None:
    """Print what the record says, and the digest of what was stored."""
    query = "SELECT response, rater, criterion, score, rubric_sha256, pass_, replicate, comment, at"
    digest = hashlib.sha256()
    with engine.connect() as connection:
        for row in connection.execute(text(f"{query} FROM rating ORDER BY id")):
            digest.update(json.dumps(list(row), default=str).encode())
    print(f"findings {verify(engine).findings}; ratings {digest.hexdigest()[:12]}")


if __name__ == "__main__":
    main()

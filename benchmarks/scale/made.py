"""Make a study of made-up ratings of any size: so many responses, each rated by so many jurors.

    PYTHONPATH=. uv run python benchmarks/scale/made.py STUDY.db --responses 30000 --jurors 12 --rated 300

Rows go straight into the tables, without the record of an import: such a study is for measuring how
figures are read and computed, never for `verify`. Clinicians rate the first `--rated` responses.
With --copies N, N times as many responses more stand behind them, each with the jurors' scores of
one of the first: 277,778 responses x 12 jurors are 10 million ratings.
"""

import argparse
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from sqlalchemy import Engine, insert, text

from data.database import open_study, transaction
from data.importers.rows import batches
from data.rubric import read_rubric
from data.schema import Benchmark, Instance, Kind, Rater, Rating, Response
from data.store.rubrics import keep_rubric

CRITERIA = ("accuracy", "completeness", "clarity")
CLINICIANS = 20
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def main() -> None:
    """Make the study that is asked for."""
    asked = argparse.ArgumentParser()
    asked.add_argument("study")
    asked.add_argument("--responses", type=int, default=30_000)
    asked.add_argument("--jurors", type=int, default=12)
    asked.add_argument("--rated", type=int, default=300)
    asked.add_argument("--copies", type=int, default=0)
    options = asked.parse_args()
    url = options.study if "://" in options.study else f"sqlite:///{options.study}"
    engine = open_study(url, create=True)
    rows = fill(engine, options.responses, options.jurors, options.rated)
    for number in range(1, options.copies + 1):
        rows += copy(engine, number * options.responses, options.responses)
    responses = options.responses * (1 + options.copies)
    print(f"{options.study}: {responses} responses, {rows} ratings")


def fill(engine: Engine, responses: int, jurors: int, rated: int) -> int:
    """Fill an empty study; return how many ratings it holds."""
    with transaction(engine) as session:
        rubric = read_rubric("generic")
        keep_rubric(session, rubric)
        session.add(Benchmark(name="visits", rubric_sha256=rubric.sha256))
        session.flush()
        names = [(Kind.JUROR, f"juror{n:02}") for n in range(jurors)]
        names += [(Kind.CLINICIAN, f"dr{n:02}") for n in range(CLINICIANS)]
        raters = [Rater(kind=kind, handle=name) for kind, name in names]
        session.add_all(raters)
        session.flush()
        keys = [rater.id or 0 for rater in raters]
        for part in batches(range(1, responses + 1), 10_000):
            _texts(session, part)
        total = 0
        scores = _ratings(keys[:jurors], keys[jurors:], responses, rated, rubric.sha256)
        for some in batches(scores, 50_000):
            session.execute(insert(Rating), some)
            total += len(some)
    return total


def copy(engine: Engine, offset: int, responses: int) -> int:
    """Add the first so many responses again, their keys moved, and return how many ratings."""
    texts = "context, prompt FROM instance WHERE id <= :most"
    scores = "rater, criterion, score, rubric_sha256, pass_, replicate, comment, at"
    statements = (
        "INSERT INTO instance (id, benchmark, instance_id, context, prompt) "
        f"SELECT id + :offset, benchmark, 'i' || (id + :offset), {texts}",
        "INSERT INTO response (id, response_id, instance, text, commitment) "
        "SELECT id + :offset, 'r' || (id + :offset), instance + :offset, text, '' FROM response "
        "WHERE id <= :most",
        f"INSERT INTO rating (response, {scores}) SELECT response + :offset, {scores} FROM rating "  # noqa: S608 our own words
        "WHERE response <= :most AND rater IN (SELECT id FROM rater WHERE kind = 'juror')",
    )
    with transaction(engine) as session:
        bound = {"offset": offset, "most": responses}
        ran = [session.connection().execute(text(words), bound) for words in statements]
        return int(ran[-1].rowcount)


def _texts(session: Any, numbers: list[int]) -> None:
    """Add instances and their responses."""
    asked = {"benchmark": "visits", "context": "c", "prompt": "p"}
    session.execute(insert(Instance), [asked | {"id": n, "instance_id": f"i{n}"} for n in numbers])
    answers = [{"id": n, "response_id": f"r{n}", "instance": n, "text": "t"} for n in numbers]
    session.execute(insert(Response), answers)


def _ratings(
    jurors: list[int], clinicians: list[int], responses: int, rated: int, rubric: str
) -> Iterator[dict[str, Any]]:
    """Yield ratings: of a response's quality, with an error of each rater's own."""
    draw, numbers = random.Random(0), count()
    for response in range(1, responses + 1):
        quality = draw.gauss(3.4, 0.8)
        two = [clinicians[(response + 7 * n) % len(clinicians)] for n in range(2)]
        for rater in [*jurors, *(two if response <= rated else ())]:
            at = BEGAN + timedelta(seconds=next(numbers) % 30_000_000)
            for criterion in CRITERIA:
                score = min(5, max(1, round(quality + draw.gauss(0, 0.9))))
                about = {"response": response, "rater": rater, "criterion": criterion}
                yield about | {"score": score, "rubric_sha256": rubric, "at": at}


if __name__ == "__main__":
    main()

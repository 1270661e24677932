"""A clinician who has rated much waits no longer than one who begins."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kit.rating_study import build, codes_of, person_of, row, rubric, task_of
from sqlalchemy import Engine, event

from data.card import Reply
from data.study.ratings import submit
from data.study.room import next_task, rated_codes

RESPONSES, FEW, MANY = 330, 30, 300
STEPS = 100  # of SQLite's own machine, at each of which it tells that it is at work


@pytest.fixture
def dr_a(engine: Engine) -> int:
    """Return a clinician with many responses to rate."""
    rows = [row(n, f"note {n}") for n in range(RESPONSES)]
    codes = build(engine, rows, ["dr-a"], rubric("accuracy"))
    return person_of(engine, codes["dr-a"]).rater or 0


@contextmanager
def counted(engine: Engine) -> Iterator[list[int]]:
    """Count the hundreds of steps that SQLite takes, whatever the machine's speed."""
    found = [0]

    def tell() -> int:
        found[0] += 1
        return 0

    def listen(connection: Any, *_: object) -> None:
        connection.set_progress_handler(tell, STEPS)

    event.listen(engine, "checkout", listen)
    yield found
    event.remove(engine, "checkout", listen)


def rate(engine: Engine, rater: int, upto: int) -> None:
    """Rate in order until so many are rated."""
    for code in codes_of(engine, "dr-a")[len(rated_codes(engine, rater)) : upto]:
        submit(engine, rater, code, Reply({"accuracy": 3}, comment="checked"), 1)


def test_the_300th_rating_costs_the_database_what_the_30th_did_and_the_way_back_in_proportion(
    engine: Engine, dr_a: int, study_file: Path
) -> None:
    codes, found = codes_of(engine, "dr-a"), []
    for rated in (FEW, MANY):
        rate(engine, dr_a, rated)
        with counted(engine) as looking_back:
            assert rated_codes(engine, dr_a) == codes[:rated]
        with counted(engine) as rating:
            submit(engine, dr_a, task_of(engine, dr_a).card.code, Reply({"accuracy": 4}), 1)
            next_task(engine, dr_a)
        found.append((rating[0], looking_back[0]))
    (few, few_back), (many, many_back) = found
    assert 0 < many < 1.5 * few
    assert 0 < many_back < 1.5 * MANY / FEW * few_back

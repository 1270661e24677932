"""A figure is of one moment of the study, though clinicians rate and responses come while it is read."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kit import postgres
from kit.studies import HEAD, import_file
from sqlalchemy import Engine, event

from data.database import one_moment, open_study, reading
from data.importers.rows import Origin, RatingRow
from data.schema import Kind
from data.study.frames import ratings_frame
from data.study.ratings import import_ratings
from medjury.services.scores import scores_of

RESPONSES = 60
CRITERIA = ("accuracy", "completeness", "clarity")
JURORS = ("a", "b")


@pytest.fixture(params=["sqlite", "postgresql"])
def study(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """Return a study whose responses two jurors have rated, and a clinician the first twenty."""
    url = f"sqlite:///{tmp_path / 'moment.db'}"
    engine = open_study(postgres.new_database() if request.param != "sqlite" else url, create=True)
    lines = [f"i{n},visits,Context.,Write.,,r{n},m,Said {n}." for n in range(RESPONSES)]
    (tmp_path / "many.csv").write_text("\n".join([HEAD, *lines]))
    import_file(engine, tmp_path / "many.csv")
    jurors = [row(n, name, Kind.JUROR) for n in range(RESPONSES) for name in JURORS]
    clinicians = [row(n, "dr_a", Kind.CLINICIAN) for n in range(20)]
    import_ratings(engine, [one for rows in (*jurors, *clinicians) for one in rows])
    yield engine
    engine.dispose()


def row(number: int, rater: str, kind: Kind) -> list[RatingRow]:
    score = str(1 + (number * 7 + len(rater)) % 5)
    where = Origin("made", number + 1)
    return [RatingRow(where, f"r{number}", rater, kind, name, score) for name in CRITERIA]


@pytest.fixture
def rated_meanwhile(study: Engine) -> Iterator[Callable[[], int]]:
    """Let the clinician rate one more response after each statement of a reader."""
    writer = open_study(study.url)
    left = iter(range(20, RESPONSES))
    rated = 0

    def rate(*_: object) -> None:
        nonlocal rated
        number = next(left, None)
        if number is not None:
            import_ratings(writer, row(number, "dr_a", Kind.CLINICIAN))
            rated += 1

    event.listen(study, "after_cursor_execute", rate)
    yield lambda: rated
    event.remove(study, "after_cursor_execute", rate)
    writer.dispose()


def test_a_response_that_is_rated_meanwhile_is_counted_once(
    study: Engine, rated_meanwhile: Callable[[], int]
) -> None:
    scores = scores_of(study)
    assert rated_meanwhile() > 5, "the test means nothing where nobody wrote"
    read = scores.ratings[scores.ratings["kind"] == "juror"]["response_id"].nunique()
    assert (read, len(scores.responses)) == (RESPONSES, RESPONSES)
    by_clinicians = scores.ratings[scores.ratings["kind"] == "clinician"]["response_id"].nunique()
    assert by_clinicians < read, "what was rated after the reader's first statement is not seen"


def test_readings_inside_one_moment_share_it_and_the_next_is_of_now(
    study: Engine, rated_meanwhile: Callable[[], int]
) -> None:
    with one_moment(study):
        first = ratings_frame(study)
        with reading(study) as one, reading(study) as other:
            assert one is other
        assert ratings_frame(study).equals(first)
    assert len(ratings_frame(study)) > len(first)
    assert rated_meanwhile()

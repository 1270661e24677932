"""Ratings read as a table: every score that counts, once, as it is stored."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from kit.behind import behind_the_record
from kit.studies import HEAD, Run
from sqlalchemy import Engine, desc, insert, select

from data.rubric import read_rubric
from data.schema import Rater, Rating
from data.study.frames import adjudicated_frame, juror_ratings, ratings_frame
from data.study.rubrics import keep_rubric
from data.study.verify import verify
from medjury.services.scores import scores_of

CRITERIA = ("accuracy", "completeness", "clarity")
CLINICIANS, JURORS = ("dr-b", "dr-a"), ("juror-z", "juror-b", "juror-a")
N, RATED = 30, 12


def score_of(i: int, rater: str, criterion: str) -> int:
    """Return a score that tells responses, raters and criteria apart."""
    return 1 + (3 * i + len(rater) * ord(rater[-1]) + 5 * CRITERIA.index(criterion) + i * i % 7) % 5


def given() -> dict[tuple[str, str, str], int]:
    """Return every score of the study by response, rater and criterion: jurors', then clinicians'.

    juror-b leaves out a criterion of every fourth response; juror-a alone rates the last two.
    """
    scores = {}
    for i in range(N):
        for rater in (*JURORS, *(CLINICIANS if i < RATED else ())):
            for criterion in CRITERIA:
                skips = rater == "juror-b" and criterion == "clarity" and i % 4 == 0
                if not skips and (i < N - 2 or rater == "juror-a"):
                    scores[f"r{i}", rater, criterion] = score_of(i, rater, criterion)
    return scores


def ratings_file(path: Path, scores: dict[tuple[str, str, str], int]) -> Path:
    """Write scores as a file that `ratings` takes."""
    lines = ["response_id,rater,kind,criterion,score"]
    for (response, rater, criterion), score in scores.items():
        kind = "clinician" if rater in CLINICIANS else "juror"
        lines.append(f"{response},{rater},{kind},{criterion},{score}")
    path.write_text("\n".join(lines), "utf-8")
    return path


@pytest.fixture
def study(run: Run, tmp_path: Path, engine: Engine) -> Engine:
    """Two benchmarks, of whose responses clinicians have rated some and jurors all."""
    texts = [f"i{i // 2},{'notes' if i % 3 else 'visits'},c,W.,,r{i},m,said {i}" for i in range(N)]
    (tmp_path / "r.csv").write_text("\n".join([HEAD, *texts]), "utf-8")
    assert run("study", "import", str(tmp_path / "r.csv"))[0] == 0
    assert run("rate", "ratings", str(ratings_file(tmp_path / "s.csv", given())))[0] == 0
    return engine


def read(engine: Engine) -> dict[tuple[str, str, str], float]:
    """Return the scores of a frame by response, rater and criterion."""
    frame = ratings_frame(engine)
    keys = zip(frame["response_id"], frame["rater"], frame["criterion"], strict=True)
    return dict(zip(keys, frame["score"], strict=True))


def test_every_score_that_was_given_is_read_in_the_order_of_storing(study: Engine) -> None:
    assert list(read(study).items()) == list(given().items())
    frame = ratings_frame(study)
    assert {*frame["kind"]} == {"clinician", "juror"}
    assert dict(zip(frame["response_id"], frame["instance_id"], strict=True))["r5"] == "notes/i2"
    assert list(frame["rater"].cat.categories) == sorted({*CLINICIANS, *JURORS})


def test_a_newer_score_takes_the_place_of_the_one_before_and_no_other(
    run: Run, tmp_path: Path, study: Engine
) -> None:
    newer = {("r3", "dr-a", "clarity"): 1, ("r4", "juror-z", "accuracy"): 2}
    newer = {key: score % 5 + 1 for key, score in given().items() if key in newer}
    for again in (newer, {key: score % 5 + 1 for key, score in newer.items()}):
        assert run("rate", "ratings", str(ratings_file(tmp_path / "again.csv", again)))[0] == 0
        assert read(study) == given() | again
    assert verify(study).findings == ()


def test_scores_on_a_rubric_that_the_benchmark_has_left_are_not_read(study: Engine) -> None:
    with behind_the_record(study) as session:
        other = read_rubric("med_dialog")
        keep_rubric(session, other)
        kept = {"response": 1, "rater": 1, "criterion": "accuracy", "score": 1.0}
        session.execute(insert(Rating), [kept | {"rubric_sha256": other.sha256}])
    assert read(study) == given()


TIMES = (
    datetime(1960, 2, 29, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(2026, 5, 31, 14, 0, 0, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
)


def test_readings_and_times_of_jurors_are_read_as_they_are_stored(study: Engine) -> None:
    with behind_the_record(study) as session:
        handles = {rater.handle: rater.id for rater in session.scalars(select(Rater))}
        newest = session.scalars(select(Rating).order_by(desc(Rating.id))).first()
        about = {"response": newest.response, "rubric_sha256": newest.rubric_sha256}
        added = [
            {"rater": handles[name], "criterion": criterion, "score": 1.5 + n, "at": at}
            | {"pass_": pass_, "replicate": replicate}
            for n, at in enumerate(TIMES)
            for name, pass_, replicate in (
                ("juror-a", 0, 10_000 + n),
                ("dr-a", 1, n),
                ("dr-b", 101, n),
            )
            for criterion in CRITERIA
        ]
        session.execute(insert(Rating), [about | row for row in added])

    def names(row: dict[str, Any], *columns: str) -> tuple[Any, ...]:
        return tuple(row[column] for column in columns)

    columns = ("criterion", "score", "pass_", "replicate")
    given_to = {
        name: [names(row, *columns) for row in added if row["rater"] == handles[name]]
        for name in ("juror-a", "dr-a", "dr-b")
    }
    by_jurors, settling, all_independent = (
        juror_ratings(study),
        adjudicated_frame(study),
        ratings_frame(study).tail(2 * len(TIMES) * len(CRITERIA)),
    )
    assert list(by_jurors["at"].tail(len(TIMES) * 3)) == [at for at in TIMES for _ in CRITERIA]
    for name, frame in (("juror-a", by_jurors.tail(9)), ("dr-b", settling)):
        assert [names(row, *columns) for row in frame.to_dict("records")] == given_to[name]
    of_repeats = all_independent[all_independent["rater"] == "dr-a"].to_dict("records")
    assert [names(row, *columns) for row in of_repeats] == given_to["dr-a"]
    assert not by_jurors["rater"].isin([*CLINICIANS]).any()


def test_a_juror_who_rated_only_what_no_clinician_did_is_one_of_the_jurors(
    run: Run, tmp_path: Path, study: Engine
) -> None:
    late = {("r29", "juror-late", criterion): 3 for criterion in CRITERIA}
    assert run("rate", "ratings", str(ratings_file(tmp_path / "late.csv", late)))[0] == 0
    scores = scores_of(study)
    assert scores.raters("juror") == tuple(sorted([*JURORS, "juror-late"]))
    assert scores.of("visits").raters("juror") == tuple(sorted(JURORS))

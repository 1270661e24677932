"""Ratings read as columns: the same rows as one by one, and figures that need no other ratings."""

import math
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
from kit.studies import HEAD, Run
from sqlalchemy import Engine, delete, insert, select
from sqlmodel import Session

from calibration.codes import NoteCode
from calibration.details import StudyContext, details
from calibration.reliability import clinician_reliability
from calibration.table import agreement_rows
from calibration.values import AnalysisOptions
from data.database import transaction
from data.queries.frames import ratings_frame, responses_frame
from data.queries.record import verify
from data.rubric import read_rubric
from data.schema import Rating, Superseded
from data.store.rubrics import keep_rubric
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
    assert run("import", str(tmp_path / "r.csv"))[0] == 0
    assert run("ratings", str(ratings_file(tmp_path / "s.csv", given())))[0] == 0
    return engine


def read(engine: Engine, **which: bool) -> dict[tuple[str, str, str], float]:
    """Return the scores of a frame by response, rater and criterion."""
    frame = ratings_frame(engine, **which)
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
        assert run("ratings", str(ratings_file(tmp_path / "again.csv", again)))[0] == 0
        assert read(study) == given() | again
    with Session(study) as session:
        assert len(session.scalars(select(Superseded)).all()) == 2 * len(newer)
    assert verify(study).findings == ()


def test_scores_on_a_rubric_that_the_benchmark_has_left_are_not_read(study: Engine) -> None:
    with transaction(study) as session:
        other = read_rubric("med_dialog")
        keep_rubric(session, other)
        kept = {"response": 1, "rater": 1, "criterion": "accuracy", "score": 1.0}
        session.execute(insert(Rating), [kept | {"rubric_sha256": other.sha256}])
    assert read(study) == given()


def test_of_clinicians_are_the_responses_that_one_has_rated_whoever_rated_them(
    study: Engine,
) -> None:
    of_clinicians = {key: score for key, score in given().items() if int(key[0][1:]) < RATED}
    assert read(study, of_clinicians=True) == of_clinicians
    assert len(responses_frame(study)) == N


@pytest.mark.parametrize("criterion", [None, *CRITERIA])
@pytest.mark.parametrize("benchmark", [None, "notes"])
def test_figures_with_the_rest_counted_are_those_with_the_rest_read(
    study: Engine, criterion: str | None, benchmark: str | None
) -> None:
    options = AnalysisOptions(reps=50, criterion=criterion, jurors=JURORS, min_jurors=2)
    tables = []
    for of_clinicians in (True, False):
        scores = scores_of(study, of_clinicians=of_clinicians)
        scores = scores.of(benchmark) if benchmark else scores
        further = details(
            scores, options, StudyContext(reference=clinician_reliability(scores, options))
        )
        tables.append([*agreement_rows(scores, options), *chain(*further.values())])
    assert [repr(row) for row in tables[0]] == [repr(row) for row in tables[1]]
    incomplete = [row.told(NoteCode.INCOMPLETE) for row in tables[0]]
    assert any(incomplete) == (criterion in (None, "clarity"))
    assert any(math.isfinite(getattr(row, "icc", math.nan)) for row in tables[0])


def test_a_juror_who_rated_only_what_no_clinician_did_is_one_of_the_jurors(
    run: Run, tmp_path: Path, study: Engine
) -> None:
    late = {("r29", "juror-late", criterion): 3 for criterion in CRITERIA}
    assert run("ratings", str(ratings_file(tmp_path / "late.csv", late)))[0] == 0
    scores = scores_of(study, of_clinicians=True)
    assert scores.raters("juror") == tuple(sorted([*JURORS, "juror-late"]))
    assert scores.of("visits").raters("juror") == tuple(sorted(JURORS))
    assert replace(scores, elsewhere=()).raters("juror") == tuple(sorted(JURORS))


def test_a_mark_that_the_ratings_do_not_bear_out_is_found(
    run: Run, tmp_path: Path, study: Engine
) -> None:
    key = ("r3", "dr-a", "clarity")
    again = ratings_file(tmp_path / "again.csv", {key: given()[key] % 5 + 1})
    assert run("ratings", str(again))[0] == 0
    with transaction(study) as session:
        session.execute(delete(Superseded))
    assert any("not marked as superseded" in finding for finding in verify(study).findings)
    with transaction(study) as session:
        session.execute(insert(Superseded), [{"rating": 7}])
    assert any("no newer one is there" in finding for finding in verify(study).findings)


def test_responses_that_a_juror_rated_are_counted_though_their_scores_are_not_read(
    study: Engine,
) -> None:
    for of_clinicians in (True, False):
        scores = scores_of(study, of_clinicians=of_clinicians)
        assert (scores.rated_by("juror"), scores.rated_by("clinician")) == (N, RATED)

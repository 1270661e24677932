"""What raters said is read once, as its rows say: each score, word and mark that counts, no other."""

from collections import defaultdict

import pytest
from kit.sealed_study import RUBRIC, made
from sqlalchemy import insert
from sqlmodel import Session, col, select

from data.card import FIRST, THIRD
from data.database import reading
from data.schema import (
    Assignment,
    Benchmark,
    Expert,
    Instance,
    Kind,
    PointSet,
    Rater,
    Rating,
    Remark,
    Response,
    Span,
    Submission,
)
from data.study.readings import On, readings

__all__ = ["made"]


@pytest.fixture
def session(made):
    with reading(made) as session:
        yield session


def place(one):
    return one.response, one.rater, one.pass_, one.replicate


def place_of(row):
    return row.response, row.rater, row.pass_, row.replicate


def counted(session):
    """Return what counts of the present rubric row by row: (response, ...) -> criterion -> rating."""
    training = set(session.exec(select(Expert.response)))
    metrics = set(session.exec(select(Rater.id).where(Rater.kind == Kind.METRIC)))
    present = select(Response.id, Benchmark.rubric_sha256).select_from(Response)
    present = present.join(Instance).join(Benchmark)
    rubrics = dict(session.exec(present).all())
    found = defaultdict(dict)
    for row in session.exec(select(Rating).order_by(col(Rating.id))):
        is_present = row.rater in metrics or row.rubric_sha256 == rubrics[row.response]
        if is_present and row.response not in training:
            found[place_of(row)][row.criterion] = row
    return dict(found)


def test_scores_and_comments_are_those_of_the_newest_ratings_that_count(session):
    found, rows = readings(session), counted(session)
    assert {place(one) for one in found} == rows.keys()
    assert len(found) == len(rows) > 0
    for one in found:
        own = rows[place(one)]
        assert one.scores == {name: row.score for name, row in own.items()}
        assert one.comments == {name: row.comment for name, row in own.items() if row.comment}
    assert {one.kind for one in found} == {*Kind}
    assert all(not (one.flags or one.spans or one.comment or one.answers) for one in found)
    older = {(*place_of(row), row.criterion) for row in session.exec(select(Rating)) if row.comment}
    assert {(*place(one), name) for one in found for name in one.comments} < older  # minds changed
    names = dict(session.exec(select(Rater.id, Rater.handle)).all())
    assert all(one.handle == names[one.rater] for one in found)


def test_readings_are_limited_to_what_is_asked_for(session):
    every = readings(session)
    some = {every[0].response, every[-1].response}
    assert readings(session, responses=some) == [one for one in every if one.response in some]
    assert readings(session, responses=()) == []
    assert readings(session, kinds=[Kind.JUROR]) == [one for one in every if one.kind == "juror"]
    assert readings(session, first=True) == [one for one in every if one.pass_ == FIRST]
    assert readings(session, benchmarks=["visits"]) == every
    assert readings(session, benchmarks=["practice"]) == []
    assert {one.pass_ for one in every} == {FIRST, THIRD}
    assert readings(session, rubric=RUBRIC.sha256) == [one for one in every if one.rubric]
    assert readings(session, rubric="none") == []


def test_words_are_those_of_the_newest_submission_and_of_those_without_scores(session):
    every = readings(session, kinds=[Kind.CLINICIAN], words=True)
    found = {place(one)[:3]: one for one in every}
    said = 0
    for given in session.exec(select(Assignment)):
        newest = given.revision - 1
        kept = select(Submission.comment).where(Submission.assignment == given.id)
        comment = session.exec(kept.where(Submission.revision == newest)).first() or ""
        remarks = select(Remark.kind, Remark.text).where(Remark.assignment == given.id)
        recent = remarks.where(col(Remark.about).is_(None), col(Remark.revision) >= newest)
        flags = list(session.exec(recent).all())
        marks = select(Span).where(Span.assignment == given.id, Span.revision == newest)
        spans = list(session.exec(marks).all())
        one = found.get((given.response, given.rater, given.pass_))
        if one is None:
            assert not any((comment, flags, spans))
            continue
        assert (one.comment, one.flags, one.spans) == (comment, flags, spans)
        said += bool(comment) + len(flags) + len(spans)
    assert said
    recused = [one for one in found.values() if ("recused", "I know the patient") in one.flags]
    assert recused
    assert all(not one.scores and one.rubric is None for one in recused)


def test_answers_to_points_of_the_case_stand_apart_from_what_they_come_to(made):
    with Session(made) as session:
        newest = session.exec(select(PointSet).order_by(col(PointSet.id).desc())).first()
        older = session.exec(select(PointSet).order_by(col(PointSet.id))).first()
        assert newest is not None
        assert older is not None
        query = select(Response.id).where(Response.instance == newest.instance)
        response = session.exec(query).one()
        juror = session.exec(select(Rater.id).where(Rater.kind == Kind.JUROR)).first()
        about = {"response": response, "rater": juror, "pass_": 0, "replicate": 0}
        own = [(older.rubric_sha256, "old", 1.0), (newest.rubric_sha256, "point", 2.0)]
        for sha256, name, score in (*own, (newest.benchmark_rubric, "whole", 4.0)):
            row = {"criterion": name, "score": score, "rubric_sha256": sha256} | about
            session.execute(insert(Rating), row)
        [whole] = readings(session, responses=[response or 0], rubric=On.CASE)
        assert (whole.scores, whole.answers) == ({"whole": 4.0}, {"point": 2.0})
        [present] = readings(session, responses=[response or 0])
        assert present.scores == {"whole": 4.0}
        session.rollback()

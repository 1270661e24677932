"""Points of the case: the rubric that benchmarks are put on, and agreement on single points."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd
from sqlalchemy import Engine

from calibration import points
from calibration.points import (
    COLUMNS,
    Answers,
    CriticalDetection,
    OnePoint,
    PointAgreement,
    agreement_rows,
    detection_rows,
    point_rows,
)
from calibration.tables.numbers import PAGE, Typeface
from calibration.tables.points import AGREEMENT, DETECTION, POINTS
from calibration.tables.spec import Table, laid_out
from calibration.values import RESAMPLES
from data.database import one_moment
from data.errors import BadInput, Unknown, Unrated
from data.points import CANNOT_TELL, MET, NOT_MET
from data.schema import Kind
from data.study.points import CaseRubric, given_answers
from data.study.readings import Reading
from data.study.standing import benchmarks

Given = tuple[Reading, CaseRubric]
ANSWERS = {MET: points.MET, NOT_MET: points.NOT_MET, CANNOT_TELL: points.CANNOT_TELL}


@dataclass(frozen=True, slots=True)
class BenchmarkPoints:
    """What one benchmark shows of its points; `simulated` names the raters in it that are simulated."""

    benchmark: str
    rows: tuple[PointAgreement, ...]
    detection: tuple[CriticalDetection, ...]
    points: tuple[OnePoint, ...]
    simulated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PointsQuestion:
    """Which agreement is asked for; `jurors` None means all, `benchmark` None every one with points."""

    benchmark: str | None = None
    jurors: tuple[str, ...] | None = None
    reps: int = RESAMPLES
    seed: int = 0


def points_agreement(engine: Engine, question: PointsQuestion) -> list[BenchmarkPoints]:
    """Return agreement on single points, a benchmark each.

    Raises
    ------
    Unknown
        If a benchmark or a juror that is named is not there.
    BadInput
        If no benchmark, or not the one named, is rated by points.
    Unrated
        If no clinician has answered a point yet.
    """
    with one_moment(engine):
        names = _benchmarks(engine, question.benchmark)
        answers = {name: given_answers(engine, name) for name in names}
    if all(_is_juror(one) for given in answers.values() for one, _ in given):
        raise Unrated("no clinician has answered a point of a case in this study yet")
    _refuse_unknown(question.jurors, answers.values())
    return [_of_benchmark(name, given, question) for name, given in answers.items()]


def tables_of(found: BenchmarkPoints, face: Typeface = PAGE) -> list[Table]:
    """Return what a benchmark shows as tables: agreement, critical points, each point by itself."""
    parts = (AGREEMENT, found.rows), (DETECTION, found.detection), (POINTS, found.points)
    return [
        laid_out(spec, rows, face, caption=f"{found.benchmark}: {spec.caption}")
        for spec, rows in parts
        if rows
    ]


def _benchmarks(engine: Engine, named: str | None) -> list[str]:
    known = benchmarks(engine)
    if named is not None and named not in {one.name for one in known}:
        raise Unknown(
            f"benchmark {named!r}: the study has {', '.join(one.name for one in known) or 'none'}"
        )
    names = [one.name for one in known if one.rubric.points and named in (None, one.name)]
    if not names:
        which = f"benchmark {named}" if named else "no benchmark of this study"
        raise BadInput(
            f"{which}: {'not ' if named else ''}rated by points of the case; "
            "put a benchmark on points (`medjury study points FILE --benchmark NAME`; in the app: "
            "Set up, Rubric)"
        )
    return names


def _refuse_unknown(jurors: Sequence[str] | None, answers: Iterable[Sequence[Given]]) -> None:
    heard = {one.handle for given in answers for one, _ in given if _is_juror(one)}
    for name in jurors or ():
        if name not in heard:
            raise Unknown(
                f"juror {name!r}: has answered no point here; there are {', '.join(sorted(heard)) or 'none'}"
            )


def _of_benchmark(name: str, given: Sequence[Given], question: PointsQuestion) -> BenchmarkPoints:
    seated = [
        (one, case)
        for one, case in given
        if not _is_juror(one) or question.jurors is None or one.handle in question.jurors
    ]
    rows = [row for one, case in seated for row in _answers(one, case)]
    answers = Answers.of(pd.DataFrame(rows, columns=[*COLUMNS]))
    made_up = tuple(sorted({one.handle for one, _ in seated if one.simulated}))
    return BenchmarkPoints(
        name,
        tuple(agreement_rows(answers, question.reps, question.seed, made_up)),
        tuple(detection_rows(answers, made_up)),
        tuple(point_rows(answers, made_up)),
        made_up,
    )


def _is_juror(one: Reading) -> bool:
    return one.kind == Kind.JUROR


def _answers(one: Reading, case: CaseRubric) -> Iterator[tuple[object, ...]]:
    """Yield the answers as rows of `COLUMNS`."""
    for name, answer in one.answers.items():
        number = case.rubric.criteria.index(name)
        criterion = case.rubric.criterion[number]
        worth = criterion.worth
        if worth is None:
            raise ValueError(f"{name}: no point of a case")
        yield (
            *(one.response, number, case.key, case.instance_id),
            *(criterion.question, worth.kind, worth.critical),
            *(one.handle, _is_juror(one), ANSWERS[round(answer)]),
        )

"""Points of the case: the rubric that benchmarks are put on, and agreement on single points."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Engine

from calibration.points import (
    Answers,
    CasePoint,
    CriticalDetection,
    OnePoint,
    PointAgreement,
    PointAnswer,
    agreement_rows,
    detection_rows,
    point_rows,
)
from calibration.tables.numbers import PAGE, Typeface
from calibration.tables.points import agreement_table, detection_table, point_table
from calibration.tables.spec import Table
from data.database import one_moment
from data.errors import BadInput, Unknown, Unrated
from data.points import CANNOT_TELL, MET
from data.queries import benchmarks, simulated_raters
from data.queries.cases import GivenAnswer, given_answers


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
    reps: int = 2000
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
        simulated = set(simulated_raters(engine))
    if not any(not one.is_juror for given in answers.values() for one in given):
        raise Unrated("no clinician has answered a point of a case in this study yet")
    _refuse_unknown(question.jurors, answers.values())
    return [_of_benchmark(name, given, question, simulated) for name, given in answers.items()]


def tables_of(found: BenchmarkPoints, face: Typeface = PAGE) -> list[Table]:
    """Return what a benchmark shows as tables: agreement, critical points, each point by itself."""
    mark = f"Simulated ({', '.join(found.simulated)}). " if found.simulated else ""
    name = found.benchmark
    made = [agreement_table(found.rows, f"{mark}{name}: agreement on single points", face)]
    if found.detection:
        caption = f"{mark}{name}: critical points that responses fail, by the clinicians"
        made.append(detection_table(found.detection, caption, face))
    return [*made, point_table(found.points, f"{mark}{name}: each point by itself", face)]


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
            "Study, Points)"
        )
    return names


def _refuse_unknown(jurors: Sequence[str] | None, answers: Iterable[Sequence[GivenAnswer]]) -> None:
    heard = {one.rater for given in answers for one in given if one.is_juror}
    for name in jurors or ():
        if name not in heard:
            raise Unknown(
                f"juror {name!r}: has answered no point here; there are {', '.join(sorted(heard)) or 'none'}"
            )


def _of_benchmark(
    name: str, given: Sequence[GivenAnswer], question: PointsQuestion, simulated: set[str]
) -> BenchmarkPoints:
    seated = [
        one
        for one in given
        if not one.is_juror or question.jurors is None or one.rater in question.jurors
    ]
    answers = Answers.of(
        (_answer(one) for one in seated if not one.is_juror),
        (_answer(one) for one in seated if one.is_juror),
    )
    return BenchmarkPoints(
        name,
        tuple(agreement_rows(answers, question.reps, question.seed)),
        tuple(detection_rows(answers)),
        tuple(point_rows(answers)),
        tuple(sorted({one.rater for one in seated} & simulated)),
    )


def _answer(one: GivenAnswer) -> PointAnswer:
    number = one.rubric.criteria.index(one.criterion)
    criterion = one.rubric.criterion[number]
    worth = criterion.worth
    if worth is None:
        raise ValueError(f"{one.criterion}: no point of a case")
    point = CasePoint(
        instance=one.instance,
        instance_id=one.instance_id,
        number=number,
        text=criterion.question,
        kind=worth.kind,
        weight=worth.weight,
        critical=worth.critical,
    )
    met = None if one.answer == CANNOT_TELL else one.answer == MET
    return PointAnswer(one.response, point, one.rater, met)

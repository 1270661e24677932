"""Error analysis: which errors clinicians mark on each benchmark, with examples in their words."""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine

from calibration.errors import benchmark_errors
from calibration.json_values import json_value
from calibration.scope import scopes
from calibration.tables.errors import BenchmarkErrors, PickedResponse, Quote
from calibration.values import COMBINED, AnalysisOptions
from data.database import one_moment, reading
from data.errors import BadInput
from data.files import cells
from data.schema import Kind
from data.study.base import response_names
from data.study.frames import marks_frame, readers
from data.study.readings import Reading, readings
from medjury.services.record import steered
from medjury.services.scores import jury_named, scores_of, silent_jurors

if TYPE_CHECKING:
    from calibration.scores import Scores

MOST_PER_GROUP = 50
BY_GRAVITY = ("critical", "major", "minor", "")
COLUMNS = (
    *("benchmark", "picked_for", "error_type", "place", "response_id", "instance_id"),
    *("clinicians", "n_clinicians", "spread", "jury", "jury_minus_clinicians", "marked_errors"),
    *("quote_is", "criterion", "error", "severity", "side", "text", "note"),
)


@dataclass(frozen=True, slots=True)
class ErrorsQuestion:
    """What is asked for: of which benchmark and jury, how many examples a reason, by which scores.

    None is all benchmarks, all jurors, all of a jury, and the composite of all criteria.
    """

    benchmark: str | None = None
    jurors: tuple[str, ...] | None = None
    min_jurors: int | None = None
    per_group: int = 3
    criterion: str | None = None


@dataclass(frozen=True, eq=False)
class StudyErrors:
    """What a study shows of errors.

    Attributes
    ----------
    benchmarks : one for each, by name; none of them read an author
    jury, silent : who sits on it (nobody, where no juror has rated), and who gave no rating
    per_group : examples at the most for each reason
    told : when and why the blind was lifted or the study reopened
    """

    benchmarks: tuple[BenchmarkErrors, ...]
    jury: tuple[str, ...]
    silent: tuple[str, ...]
    per_group: int
    told: tuple[str, ...]

    @property
    def simulated(self) -> tuple[str, ...]:
        """Return the raters in it that are simulated."""
        return tuple(sorted({name for one in self.benchmarks for name in one.simulated}))


def study_errors(engine: Engine, question: ErrorsQuestion) -> StudyErrors:
    """Return the errors that clinicians marked, and examples picked by the rule.

    Raises
    ------
    BadInput
        If the number of examples, or of jurors that must have scored, is out of range.
    Unknown
        If the study has no such benchmark or juror.
    Unrated, TooFew
        If no clinician has rated a response on all criteria.
    """
    if not 1 <= question.per_group <= MOST_PER_GROUP:
        raise BadInput(f"--per-group {question.per_group}: give 1 to {MOST_PER_GROUP} examples")
    with one_moment(engine):
        every = scores_of(engine)
        scores = every.of(question.benchmark) if question.benchmark else every
        silent = silent_jurors(engine, every)
        jury = _jury(every, question, silent)
        given = marks_frame(engine), readers(engine)
        options = AnalysisOptions(
            jurors=jury,
            min_jurors=question.min_jurors if jury else None,
            criterion=question.criterion,
            reps=1,
        )
        found = [
            benchmark_errors(scope, scores, *given, question.per_group)
            for scope in scopes(scores, options)
            if scope.name != COMBINED
        ]
        said = _said_of(engine, {one.response_id for errors in found for one in errors.picked})
        told = tuple(steered(engine))

    def quoted(one: PickedResponse) -> PickedResponse:
        return replace(one, quote=quote(said.get(one.response_id, ()), one.error))

    found = [replace(one, picked=tuple(map(quoted, one.picked))) for one in found]
    return StudyErrors(tuple(found), jury, tuple(silent), question.per_group, told)


def _jury(scores: "Scores", question: ErrorsQuestion, silent: list[str]) -> tuple[str, ...]:
    """Return who sits on the jury; nobody where none is named and no juror has rated."""
    if question.jurors is None and not scores.raters("juror"):
        return ()
    return tuple(jury_named(scores, question.jurors, silent))


def _said_of(engine: Engine, ids: Collection[str]) -> dict[str, list[Reading]]:
    """Return response_id -> the clinicians' first readings of it."""
    with reading(engine) as session:
        names = {key: name for key, (name, _) in response_names(session).items() if name in ids}
        said: dict[str, list[Reading]] = {}
        for one in readings(
            session, responses=names, kinds=[Kind.CLINICIAN], first=True, words=True
        ):
            said.setdefault(names[one.response], []).append(one)
    return said


def quote(said: Sequence[Reading], error: str) -> Quote | None:
    """Return the one quote of a response, None where no clinician marked or wrote anything.

    Parameters
    ----------
    said : its clinicians' first readings
    error : only marks of this type; "" is any

    Notes
    -----
    Marks come first: the gravest, then those in the response before those in the source, then the
    place in the text. Else comments on criteria, that with the lowest score first; then those on the
    whole. What is left equal goes by criterion, then by the words.
    """
    gravity = {name: place for place, name in enumerate(BY_GRAVITY)}
    marks = [mark for one in said for mark in one.spans]
    own = [mark for mark in marks if error in ("", mark.error) and mark.text]
    if own:
        first = min(
            own,
            key=lambda mark: (
                *(gravity.get(mark.severity, len(gravity)), mark.side, mark.start, mark.end),
                *(mark.criterion, mark.error, mark.note, mark.text),
            ),
        )
        kind = first.criterion, first.error, first.severity, first.side
        return Quote(True, first.text, first.note, *kind)
    written = [
        (one.scores.get(name, math.inf), name, text)
        for one in said
        for name, text in one.comments.items()
    ]
    written += [(math.inf, "", one.comment) for one in said]
    written = [comment for comment in written if comment[2].strip()]
    if not written:
        return None
    _, criterion, words = min(written)
    return Quote(False, words, criterion=criterion)


def to_json(found: StudyErrors) -> dict[str, Any]:
    """Return what `analyse errors --json` writes; undefined is None."""
    values: dict[str, Any] = json_value(
        {
            "per_group": found.per_group,
            "jury": list(found.jury),
            "silent": list(found.silent),
            "simulated": list(found.simulated),
            "benchmarks": [
                {
                    "benchmark": one.benchmark,
                    "n_in_study": one.n_in_study,
                    "n_rated": one.n_rated,
                    "n_incomplete_readings": one.n_incomplete,
                    "n_unscored_by_jury": one.n_unscored,
                    "n_marked_not_rated": one.n_outside,
                    "simulated": one.simulated,
                    "groups": one.rows,
                    "examples": [asdict(picked) for picked in one.picked],
                }
                for one in found.benchmarks
            ],
        }
    )
    return values


def csv_of(found: StudyErrors) -> tuple[list[str], Iterator[list[object]]]:
    """Return the columns of the file, and a row an example: nothing in it is a formula."""
    rows = (_csv_row(picked) for one in found.benchmarks for picked in one.picked)
    return list(COLUMNS), cells(list(COLUMNS), rows)


def _csv_row(picked: PickedResponse) -> tuple[object, ...]:
    said = picked.quote
    figures = picked.clinicians, picked.n_clinicians, picked.spread, picked.jury, picked.gap
    kind = "" if said is None else "mark" if said.is_mark else "comment"
    own = said or Quote(False, "")
    return (
        *(picked.benchmark, picked.picked_for, picked.error, picked.place),
        *(picked.response_id, picked.instance_id),
        *(None if figure != figure else figure for figure in figures),
        "; ".join(picked.errors),
        *(kind, own.criterion, own.error, own.severity, own.side, own.words, own.note),
    )

"""Error analysis: which errors clinicians mark on each benchmark, with examples in their words."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine

from calibration.error_values import (
    BenchmarkErrors,
    Comment,
    Example,
    MarkedWords,
    PickedResponse,
    Quote,
)
from calibration.errors import Marks, benchmark_errors, quote
from calibration.json_values import json_value
from calibration.scope import scopes
from calibration.values import COMBINED, AnalysisOptions
from data.csv_files import cells
from data.database import one_moment
from data.errors import BadInput
from data.queries.clinician_words import WordsSaid, clinician_words
from data.queries.frames import marks_frame, readers
from medjury.services.record import steered
from medjury.services.scores import jury_named, scores_of, silent_jurors

if TYPE_CHECKING:
    from calibration.scores import Scores

MOST_PER_GROUP = 50
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
    examples : benchmark -> its examples, reason by reason
    jury, silent : who sits on it (nobody, where no juror has rated), and who gave no rating
    per_group : examples at the most for each reason
    told : when and why the blind was lifted or the study reopened
    """

    benchmarks: tuple[BenchmarkErrors, ...]
    examples: Mapping[str, tuple[Example, ...]]
    jury: tuple[str, ...]
    silent: tuple[str, ...]
    per_group: int
    told: tuple[str, ...]

    @property
    def parts(self) -> tuple[tuple[BenchmarkErrors, tuple[Example, ...]], ...]:
        """Return each benchmark with its examples."""
        return tuple((one, self.examples[one.benchmark]) for one in self.benchmarks)

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
        marks = Marks(marks_frame(engine), readers(engine))
        options = AnalysisOptions(
            jurors=jury,
            min_jurors=question.min_jurors if jury else None,
            criterion=question.criterion,
            reps=1,
        )
        found = [
            benchmark_errors(scope, scores, marks, question.per_group)
            for scope in scopes(scores, options)
            if scope.name != COMBINED
        ]
        picked = {one.response_id for errors in found for one in errors.picked}
        said = clinician_words(engine, sorted(picked))
        examples = {
            errors.benchmark: tuple(_example(one, said[one.response_id]) for one in errors.picked)
            for errors in found
        }
        told = tuple(steered(engine))
    return StudyErrors(tuple(found), examples, jury, tuple(silent), question.per_group, told)


def _jury(scores: "Scores", question: ErrorsQuestion, silent: list[str]) -> tuple[str, ...]:
    """Return who sits on the jury; nobody where none is named and no juror has rated."""
    if question.jurors is None and not scores.raters("juror"):
        return ()
    return tuple(jury_named(scores, question.jurors, silent))


def _example(picked: PickedResponse, said: WordsSaid) -> Example:
    marks = [MarkedWords(**asdict(mark)) for mark in said.marks]
    comments = [Comment(**asdict(comment)) for comment in said.comments]
    return Example(picked, quote(marks, comments, picked.error))


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
                    "examples": [
                        asdict(example.picked)
                        | {"quote": asdict(example.quote) if example.quote else None}
                        for example in found.examples[one.benchmark]
                    ],
                }
                for one in found.benchmarks
            ],
        }
    )
    return values


def csv_of(found: StudyErrors) -> tuple[list[str], Iterator[list[object]]]:
    """Return the columns of the file, and a row an example: nothing in it is a formula."""
    rows = (_csv_row(example) for own in found.examples.values() for example in own)
    return list(COLUMNS), cells(list(COLUMNS), rows)


def _csv_row(example: Example) -> tuple[object, ...]:
    picked, said = example.picked, example.quote
    figures = picked.clinicians, picked.n_clinicians, picked.spread, picked.jury, picked.gap
    kind = "" if said is None else "mark" if said.is_mark else "comment"
    own = said or Quote(False, "")
    return (
        *(picked.benchmark, picked.picked_for.value, picked.error, picked.place),
        *(picked.response_id, picked.instance_id),
        *(None if figure != figure else figure for figure in figures),
        "; ".join(picked.errors),
        *(kind, own.criterion, own.error, own.severity, own.side, own.words, own.note),
    )

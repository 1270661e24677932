"""An evaluation that was run elsewhere, as values: responses, who judged them, and the verdicts."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from data.importers.rows import JurorRecord, RatingRow, ResponseRow
from data.rubric import Rubric
from data.schema import Kind, Status


@dataclass(frozen=True, slots=True)
class Failure:
    """A verdict that was asked for and does not stand, with what is known of the reason."""

    response_id: str
    juror: str
    status: Status
    reason: str


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """One model's responses to one benchmark with the verdicts of a jury on one rubric.

    `source` names the kind of evaluation, and no model: it is stored beside verdicts.
    """

    source: str
    rubric: Rubric
    responses: tuple[ResponseRow, ...]
    jurors: tuple[JurorRecord, ...]
    ratings: tuple[RatingRow, ...]
    failures: tuple[Failure, ...]

    @property
    def benchmarks(self) -> list[str]:
        """Names of the benchmarks whose responses it has, each once."""
        return list(dict.fromkeys(row.benchmark for row in self.responses))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a juror said of a response: all scores, or none and why."""

    scores: Mapping[str, float]
    comments: Mapping[str, str]
    status: Status = Status.OK
    reason: str = ""


def score_of(said: Any) -> float | None:
    """Return a score as a number, also where it stands in quotation marks; None for all else."""
    if isinstance(said, bool) or not isinstance(said, int | float | str):
        return None
    try:
        value = float(said)
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None


def verdict_of(
    scores: Mapping[str, float | None], comments: Mapping[str, str], rubric: Rubric
) -> Verdict:
    """Return scores on all criteria as a verdict: each a number on the rubric's scale, or none."""
    if unread := [name for name, one in scores.items() if one is None]:
        return Verdict({}, {}, Status.INVALID_JSON, f"no number for {', '.join(unread)}")
    held = {name: one for name, one in scores.items() if one is not None}
    low, high = rubric.scale.min, rubric.scale.max
    if off := [f"{name} {one:g}" for name, one in held.items() if not low <= one <= high]:
        reason = f"{', '.join(off)}: off the scale {rubric.scale}"
        return Verdict({}, {}, Status.OUT_OF_RANGE, reason)
    return Verdict(held, comments)


def rating_rows(row: ResponseRow, juror: str, said: Verdict) -> Iterator[RatingRow]:
    """Yield a verdict as ratings; none where it does not stand."""
    for name, score in said.scores.items():
        yield RatingRow(
            origin=row.origin,
            response_id=row.response_id,
            rater=juror,
            kind=Kind.JUROR,
            criterion=name,
            score=repr(score),
            comment=said.comments.get(name, ""),
        )


def run_of(
    source: str,
    rubric: Rubric,
    jurors: tuple[JurorRecord, ...],
    said: Sequence[tuple[ResponseRow, Mapping[str, Verdict]]],
) -> FinishedRun:
    """Return responses, each with the verdict of every juror, as values to be stored."""
    ratings, failures = list[RatingRow](), list[Failure]()
    for row, verdicts in said:
        for juror, verdict in verdicts.items():
            ratings += rating_rows(row, juror, verdict)
            if verdict.status != Status.OK:
                failures.append(Failure(row.response_id, juror, verdict.status, verdict.reason))
    rows = tuple(row for row, _ in said)
    return FinishedRun(source, rubric, rows, jurors, tuple(ratings), tuple(failures))


def missing(runs: Iterable[FinishedRun]) -> dict[str, dict[str, int]]:
    """Return juror -> status -> verdicts that do not stand."""
    counts: dict[str, Counter[str]] = {}
    for one in runs:
        for failure in one.failures:
            counts.setdefault(failure.juror, Counter())[failure.status.value] += 1
    return {juror: dict(sorted(own.items())) for juror, own in sorted(counts.items())}


def summed(counts: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    """Add up counts of the same things."""
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return total

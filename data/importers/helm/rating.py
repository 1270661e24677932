"""What HELM's jurors said, as ratings on a rubric: a whole valid verdict counts, no other."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from data.errors import BadInput
from data.importers.finished import (
    Failure,
    FinishedRun,
    Verdict,
    rating_rows,
    score_of,
    verdict_of,
)
from data.importers.helm.jurors import SOURCE
from data.importers.helm.run import HelmRun, Judged
from data.importers.rows import RatingRow
from data.rubric import Rubric
from data.schema import Status

NOTHING = "HELM stored no verdict of this juror and does not say why"
CLOSE = 1e-9
Scores = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Difference:
    """A response whose score in HELM is not the mean of what its jurors validly said.

    Attributes
    ----------
    helm
        As HELM stored it.
    recomputed
        Mean over the verdicts that stand, None where none does.
    causes
        default, off_scale, truncated, extra_criterion, unreadable; "unexplained" where none is known.
    """

    benchmark: str
    instance_id: str
    helm: float
    recomputed: float | None
    causes: tuple[str, ...]


def finished(run: HelmRun, rubric: Rubric) -> tuple[FinishedRun, list[Difference]]:
    """Return a run as values to be stored, and where HELM's scores are others."""
    ratings: list[RatingRow] = []
    failures: list[Failure] = []
    differences: list[Difference] = []
    for one in run.judged:
        verdicts = {
            juror.handle: verdict(one.said.get(juror.handle), rubric) for juror in run.jurors
        }
        for juror, said in verdicts.items():
            ratings += rating_rows(one.row, juror, said)
        failures += [
            Failure(one.row.response_id, name, said.status, said.reason)
            for name, said in verdicts.items()
            if said.status != Status.OK
        ]
        differences += _differences(one, verdicts, rubric)
    responses = tuple(one.row for one in run.judged)
    made = FinishedRun(SOURCE, rubric, responses, run.jurors, tuple(ratings), tuple(failures))
    return made, differences


def usable(run: HelmRun, rubric: Rubric) -> Rubric:
    """Return the rubric if it is the one of the run: the same prompt and criteria.

    Raises
    ------
    BadInput
        If its prompt is not the one that the jurors were asked with, or has other criteria.
    """
    if run.prompt.ours not in (None, rubric.prompt):
        raise BadInput(
            f"{run.name}: the jurors of this run were asked with another prompt than that of rubric "
            f"{rubric.name}; leave --rubric out to take it from the run; nothing was imported"
        )
    if run.prompt.criteria and set(run.prompt.criteria) != set(rubric.criteria):
        raise BadInput(
            f"{run.name}: its jurors rated {', '.join(run.prompt.criteria)}, and rubric "
            f"{rubric.name} has {', '.join(rubric.criteria)}; nothing was imported"
        )
    return rubric


def verdict(said: Any, rubric: Rubric) -> Verdict:
    """Return what a juror said, with all of the rubric's criteria on its scale or not at all."""
    if said is None:
        return Verdict({}, {}, Status.REQUEST_FAILED, NOTHING)
    asked = {name: said.get(name) for name in rubric.criteria}
    if lacking := [name for name, one in asked.items() if not isinstance(one, dict)]:
        return Verdict({}, {}, Status.MISSING_CRITERION, f"no {', '.join(lacking)} in HELM's file")
    comments = {name: str(one.get("explanation") or "") for name, one in asked.items()}
    return verdict_of({name: number(one) for name, one in asked.items()}, comments, rubric)


def number(said: Any) -> float | None:
    """Return the score of a criterion as a number; None where there is none."""
    return score_of(said.get("score")) if isinstance(said, dict) else None


def _differences(
    one: Judged, verdicts: Mapping[str, Verdict], rubric: Rubric
) -> Iterator[Difference]:
    """Yield the difference between HELM's score and what its jurors said, if there is one."""
    found = _mean(score for said in verdicts.values() for score in said.scores.values())
    if one.stored is None or (found is not None and abs(found - one.stored) <= CLOSE):
        return
    causes = tuple(dict.fromkeys(_causes(one, verdicts, rubric))) or ("unexplained",)
    yield Difference(one.row.benchmark, one.row.instance_id, one.stored, found, causes)


def _causes(one: Judged, verdicts: Mapping[str, Verdict], rubric: Rubric) -> Iterator[str]:
    """Yield what HELM did otherwise: one that has no verdict gives its default, and so on."""
    if not one.said:
        yield "default"
    for said in verdicts.values():
        if said.status not in (Status.OK, Status.REQUEST_FAILED):
            yield "off_scale" if said.status == Status.OUT_OF_RANGE else "unreadable"
    for said in one.said.values():
        if set(said) - set(rubric.criteria):
            yield "extra_criterion"
        scores = [number(score) for score in said.values()]
        if any(score is not None and score != int(score) for score in scores):
            yield "truncated"


def _mean(scores: Iterable[float]) -> float | None:
    found = list(scores)
    return sum(found) / len(found) if found else None

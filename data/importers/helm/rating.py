"""Verdicts of HELM's jurors as ratings on a rubric, and their means beside HELM's own."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from data.errors import BadInput
from data.importers.finished import FinishedRun, Verdict, own_verdict, run_of, score_of, verdict_of
from data.importers.helm.run import SOURCE, HelmRun, JudgedResponse
from data.importers.rows import JurorRecord
from data.rubric import Rubric
from data.schema import Status

NOTHING = "HELM stored no verdict of this juror and does not say why"
CLOSE = 1e-9
Scores = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ScoreDifference:
    """A response whose score in HELM differs from the mean of its valid verdicts.

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


def finished(run: HelmRun, rubric: Rubric) -> tuple[FinishedRun, list[ScoreDifference]]:
    """Return a run as values to be stored, and the responses whose scores in HELM differ."""
    jurors = jurors_of_study(run)
    judged = [(answer, _verdicts(answer, jurors, rubric)) for answer in run.judged]
    records = tuple(jurors.values())
    values = run_of(
        SOURCE, rubric, records, [(answer.row, verdicts) for answer, verdicts in judged]
    )
    return values, [
        difference
        for answer, verdicts in judged
        for difference in _differences(answer, verdicts, rubric)
    ]


def jurors_of_study(run: HelmRun) -> dict[str, JurorRecord]:
    """Return the jurors by their names in the run; in a run of our own export, the study's."""
    own = run.origin.jurors if run.origin else {}
    return {
        juror.handle: own[juror.handle].record() if juror.handle in own else juror
        for juror in run.jurors
    }


def _verdicts(
    answer: JudgedResponse, jurors: Mapping[str, JurorRecord], rubric: Rubric
) -> dict[str, Verdict]:
    """Return each juror's verdict, from our own plugin's record or else from HELM's."""
    if answer.own is not None:
        return {
            juror.handle: own_verdict(answer.own.get(name), rubric)
            for name, juror in jurors.items()
        }
    return {juror.handle: verdict(answer.said.get(name), rubric) for name, juror in jurors.items()}


def usable(run: HelmRun, rubric: Rubric) -> Rubric:
    """Return a rubric if the run's jurors rated on it, by its hash or else by its prompt.

    Raises
    ------
    BadInput
        If its prompt is not the one that the jurors were asked with, or has other criteria.
    """
    if run.origin is not None and run.origin.rubric_sha256 != rubric.sha256:
        raise BadInput(
            f"{run.name}: its jurors rated on the rubric with the hash "
            f"{run.origin.rubric_sha256[:12]}, and {rubric.name} is another; leave --rubric out; "
            "nothing was imported"
        )
    if run.origin is not None:
        return rubric
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


def verdict(body: Any, rubric: Rubric) -> Verdict:
    """Return a juror's verdict: all of the rubric's criteria on its scale, or none."""
    if body is None:
        return Verdict({}, {}, Status.REQUEST_FAILED, NOTHING)
    answers = {name: body.get(name) for name in rubric.criteria}
    if lacking := [name for name, answer in answers.items() if not isinstance(answer, dict)]:
        return Verdict({}, {}, Status.MISSING_CRITERION, f"no {', '.join(lacking)} in HELM's file")
    comments = {name: str(answer.get("explanation") or "") for name, answer in answers.items()}
    return verdict_of({name: number(answer) for name, answer in answers.items()}, comments, rubric)


def number(answer: Any) -> float | None:
    """Return the score of a criterion as a number; None where there is none."""
    return score_of(answer.get("score")) if isinstance(answer, dict) else None


def _differences(
    answer: JudgedResponse, verdicts: Mapping[str, Verdict], rubric: Rubric
) -> Iterator[ScoreDifference]:
    """Yield the difference between HELM's score and its jurors' mean, if there is one."""
    mean = _mean(score for verdict in verdicts.values() for score in verdict.scores.values())
    if answer.stored is None or (mean is not None and abs(mean - answer.stored) <= CLOSE):
        return
    causes = tuple(dict.fromkeys(_causes(answer, verdicts, rubric))) or ("unexplained",)
    yield ScoreDifference(answer.row.benchmark, answer.row.instance_id, answer.stored, mean, causes)


def _causes(
    answer: JudgedResponse, verdicts: Mapping[str, Verdict], rubric: Rubric
) -> Iterator[str]:
    """Yield the known causes of a difference, such as HELM's default for a missing verdict."""
    if not answer.said:
        yield "default"
    for said in verdicts.values():
        if said.status not in (Status.OK, Status.REQUEST_FAILED):
            yield "off_scale" if said.status == Status.OUT_OF_RANGE else "unreadable"
    for said in answer.said.values():
        if set(said) - set(rubric.criteria):
            yield "extra_criterion"
        scores = [number(score) for score in said.values()]
        if any(score is not None and score != int(score) for score in scores):
            yield "truncated"


def _mean(scores: Iterable[float]) -> float | None:
    numbers = list(scores)
    return sum(numbers) / len(numbers) if numbers else None


@dataclass(frozen=True, slots=True)
class TakenRun:
    """A run with its rubric, and the values made from it."""

    run: HelmRun
    rubric: Rubric
    values: FinishedRun
    differences: Sequence[ScoreDifference]

    @property
    def benchmarks(self) -> list[str]:
        """Names of the benchmarks it has responses of; else its own name."""
        return self.values.benchmarks or [self.run.benchmark]


def _recomputed(run: TakenRun) -> tuple[float | None, int, int]:
    """Return the mean over responses with a verdict, their number, and that with all verdicts."""
    scores: dict[str, list[float]] = {}
    for row in run.values.ratings:
        scores.setdefault(row.response_id, []).append(float(row.score))
    means = [sum(own) / len(own) for own in scores.values()]
    complete = len(run.rubric.criteria) * len(run.values.jurors)
    all_jurors = sum(len(own) == complete for own in scores.values())
    return (sum(means) / len(means) if means else None), len(means), all_jurors


def run_figures(judged_run: TakenRun) -> dict[str, Any]:
    """Return the figures of one run, as `medjury study import --json` writes them."""
    mean, with_any, with_all = _recomputed(judged_run)
    return {
        "run": judged_run.run.name,
        "benchmark": judged_run.run.benchmark,
        "rubric": judged_run.rubric.name,
        "rubric_sha256": judged_run.rubric.sha256,
        "prompt_known": judged_run.run.prompt.template is not None,
        "prompts_checked": judged_run.run.prompt.checked,
        "jurors": [
            {"name": j.handle, "model": j.profile.get("model")} for j in judged_run.values.jurors
        ],
        "jurors_assumed": judged_run.run.assumed,
        "instances": len({row.instance_id for row in judged_run.values.responses}),
        "responses": len(judged_run.values.responses),
        "ratings": len(judged_run.values.ratings),
        "missing": len(judged_run.values.failures),
        "left_out": dict(judged_run.run.left_out),
        "notes": dict(judged_run.run.notes),
        "helm_mean": judged_run.run.stored.mean,
        "recomputed_mean": mean,
        "with_any_juror": with_any,
        "with_all_jurors": with_all,
    }

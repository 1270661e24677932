"""What HELM's jurors said, as ratings on a rubric, and what that comes to beside HELM's own means."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from data.errors import BadInput
from data.importers.finished import FinishedRun, Verdict, run_of, score_of, verdict_of
from data.importers.helm.run import SOURCE, HelmRun, Judged
from data.importers.own_runs import own_verdict
from data.importers.rows import JurorRecord
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
    jurors = jurors_of_study(run)
    heard = [(one, _verdicts(one, jurors, rubric)) for one in run.judged]
    records = tuple(jurors.values())
    made = run_of(SOURCE, rubric, records, [(one.row, verdicts) for one, verdicts in heard])
    return made, [found for one, said in heard for found in _differences(one, said, rubric)]


def jurors_of_study(run: HelmRun) -> dict[str, JurorRecord]:
    """Return the jurors by their names in the run; those of our own export are its study's."""
    own = run.origin.jurors if run.origin else {}
    return {
        one.handle: own[one.handle].record() if one.handle in own else one for one in run.jurors
    }


def _verdicts(one: Judged, jurors: Mapping[str, JurorRecord], rubric: Rubric) -> dict[str, Verdict]:
    """Return what each juror said, as our own plugin or else as HELM keeps it."""
    if one.own is not None:
        return {
            juror.handle: own_verdict(one.own.get(name), rubric) for name, juror in jurors.items()
        }
    return {juror.handle: verdict(one.said.get(name), rubric) for name, juror in jurors.items()}


def usable(run: HelmRun, rubric: Rubric) -> Rubric:
    """Return the rubric if it is the one of the run: of our own export by its hash, else by its text.

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


@dataclass(frozen=True, slots=True)
class Taken:
    """A run with the rubric its jurors rated on, and what becomes of it."""

    run: HelmRun
    rubric: Rubric
    values: FinishedRun
    differences: Sequence[Difference]

    @property
    def benchmarks(self) -> list[str]:
        """Names of the benchmarks it has responses of; else its own name."""
        return self.values.benchmarks or [self.run.benchmark]


def _recomputed(one: Taken) -> tuple[float | None, int, int]:
    """Return the mean over responses with a verdict, how many they are, and how many have all."""
    scores: dict[str, list[float]] = {}
    for row in one.values.ratings:
        scores.setdefault(row.response_id, []).append(float(row.score))
    means = [sum(own) / len(own) for own in scores.values()]
    whole = len(one.rubric.criteria) * len(one.values.jurors)
    all_jurors = sum(len(own) == whole for own in scores.values())
    return (sum(means) / len(means) if means else None), len(means), all_jurors


def run_figures(one: Taken) -> dict[str, Any]:
    """Return the figures of one run, as `medjury study import --json` writes them."""
    mean, heard, whole = _recomputed(one)
    return {
        "run": one.run.name,
        "benchmark": one.run.benchmark,
        "rubric": one.rubric.name,
        "rubric_sha256": one.rubric.sha256,
        "prompt_known": one.run.prompt.template is not None,
        "prompts_checked": one.run.prompt.checked,
        "jurors": [{"name": j.handle, "model": j.profile.get("model")} for j in one.values.jurors],
        "jurors_assumed": one.run.assumed,
        "instances": len({row.instance_id for row in one.values.responses}),
        "responses": len(one.values.responses),
        "ratings": len(one.values.ratings),
        "missing": len(one.values.failures),
        "left_out": dict(one.run.left_out),
        "notes": dict(one.run.notes),
        "helm_mean": one.run.stored.mean,
        "recomputed_mean": mean,
        "with_any_juror": heard,
        "with_all_jurors": whole,
    }

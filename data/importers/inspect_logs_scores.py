"""What Inspect's scorers said, as ratings on a rubric: a whole valid verdict counts, no other."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from data.importers.finished import (
    Failure,
    FinishedJuror,
    FinishedRun,
    Verdict,
    rating_rows,
    score_of,
    verdict_of,
)
from data.importers.inspect_logs import InspectLog, Scored
from data.importers.inspect_logs_parts import OWN, Score
from data.importers.rows import RatingRow
from data.rubric import Rubric
from data.schema import Status

SOURCE = "Inspect log"
PREFIX = "inspect."
CRITERIA = PREFIX + "criteria"  # scorers that are named as criteria, taken together
REASON = re.compile(r"[a-z][a-z_]{0,39}")
Said = Mapping[str, Verdict]


@dataclass(frozen=True, slots=True)
class Taken:
    """A log as values to be stored; `not_taken` are scorers that rate no criterion of the rubric."""

    log: InspectLog
    values: FinishedRun
    not_taken: tuple[str, ...]


def finished(log: InspectLog, rubric: Rubric) -> Taken:
    """Return a log as values: every scorer that rates the rubric's criteria is a juror."""
    names = dict.fromkeys(name for one in log.scored for name in one.scores)
    forms = _whole({name: _form(log, name, rubric) for name in names}, rubric)
    heard = [(one, _said(one, forms, rubric)) for one in log.scored]
    jurors = _jurors(log, forms)
    lacking = Verdict({}, {}, Status.REQUEST_FAILED, "the log has no score of this scorer")
    ratings: list[RatingRow] = []
    failures: list[Failure] = []
    for one, said in heard:
        for juror in jurors:
            verdict = said.get(juror.handle, lacking)
            ratings += rating_rows(one.row, juror.handle, verdict)
            if verdict.status != Status.OK:
                response = one.row.response_id
                failures.append(Failure(response, juror.handle, verdict.status, verdict.reason))
    rows = tuple(one.row for one in log.scored)
    values = FinishedRun(SOURCE, rubric, rows, jurors, tuple(ratings), tuple(failures))
    return Taken(log, values, tuple(name for name, form in forms.items() if not form))


def _form(log: InspectLog, name: str, rubric: Rubric) -> str:
    """Return how a scorer rates: own, points by key, the criterion of its name, the only one; or ""."""
    found = [one.scores[name] for one in log.scored if name in one.scores]
    keyed = [score.value for score in found if isinstance(score.value, dict)]
    single = any(score_of(score.value) is not None for score in found)
    if any(score.own for score in found):
        return OWN
    if any(criterion in value for value in keyed for criterion in rubric.criteria):
        return "keys"
    if single and _bare(name) in rubric.criteria:
        return "criterion"
    return "only" if single and len(rubric.criteria) == 1 else ""


def _whole(forms: Mapping[str, str], rubric: Rubric) -> dict[str, str]:
    """Return the forms, without scorers named as criteria where there is not one for each."""
    named = {_bare(name) for name, form in forms.items() if form == "criterion"}
    lacking = set(rubric.criteria) - named
    return {name: "" if form == "criterion" and lacking else form for name, form in forms.items()}


def _bare(name: str) -> str:
    """Return a scorer's name without its package."""
    return name.rpartition("/")[2]


def _said(one: Scored, forms: Mapping[str, str], rubric: Rubric) -> Said:
    """Return juror -> what it said of a response."""
    said: dict[str, Verdict] = {}
    apart: dict[str, Score] = {}
    for name, score in one.scores.items():
        form = forms[name]
        if form == OWN:
            for juror, told in score.own.get("jurors", {}).items():
                said[PREFIX + str(juror)] = _own(told, rubric)
        elif form == "criterion":
            apart[_bare(name)] = score
        elif form == "only":
            said[PREFIX + name] = _verdict({rubric.criteria[0]: score.value}, score, rubric)
        elif form == "keys":
            value = score.value if isinstance(score.value, dict) else None
            said[PREFIX + name] = _verdict(value, score, rubric)
    if apart:
        points = {name: score.value for name, score in apart.items()}
        said[CRITERIA] = _verdict(points, next(iter(apart.values())), rubric, apart)
    return said


def _own(told: Any, rubric: Rubric) -> Verdict:
    """Return what our own scorer keeps of one juror."""
    if isinstance(told, dict) and isinstance(told.get("scores"), dict):
        return _verdict(told["scores"], Score(), rubric)
    found = told if isinstance(told, dict) else {}
    known = found.get("status") == Status.INVALID_JSON.value
    status = Status.INVALID_JSON if known else Status.REQUEST_FAILED
    return Verdict({}, {}, status, str(found.get("reason") or "no reason is given")[:200])


def _verdict(
    points: Mapping[str, Any] | None,
    score: Score,
    rubric: Rubric,
    apart: Mapping[str, Score] | None = None,
) -> Verdict:
    """Return points on all of the rubric's criteria, on its scale, or why there are none."""
    if points is None:
        reason = score.reason if REASON.fullmatch(score.reason or "") else "no reason is given"
        return Verdict({}, {}, Status.REQUEST_FAILED, f"unscored in Inspect: {reason}")
    lacking = [name for name in rubric.criteria if points.get(name) is None]
    if lacking:
        return Verdict({}, {}, Status.MISSING_CRITERION, f"no score for {', '.join(lacking)}")
    whole = {rubric.criteria[0]: score.explanation or ""}
    told = {name: one.explanation or "" for name, one in (apart or {}).items()}
    scores = {name: score_of(points.get(name)) for name in rubric.criteria}
    return verdict_of(scores, told or whole, rubric)


def _jurors(log: InspectLog, forms: Mapping[str, str]) -> tuple[FinishedJuror, ...]:
    """Return the jurors of a log with what it says of them, in the order in which they stand."""
    found: dict[str, FinishedJuror] = {}
    for one in log.scored:
        for juror, told in _own_jurors(one, forms):
            model = {"model": str(told["model"])} if told.get("model") else {}
            handle = PREFIX + juror
            found.setdefault(handle, FinishedJuror(handle, {"provider": SOURCE} | model))
    for name, form in forms.items():
        if form in ("keys", "only"):
            found[PREFIX + name] = FinishedJuror(PREFIX + name, _profile(log, name))
        elif form == "criterion":
            known = found.get(CRITERIA)
            profile = _profile(log, name) if known is None else dict(known.profile)
            names = [*([known.profile["scorer"]] if known else []), name]
            found[CRITERIA] = FinishedJuror(CRITERIA, profile | {"scorer": "+".join(names)})
    return tuple(found.values())


def _own_jurors(one: Scored, forms: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, score in one.scores.items():
        if forms[name] == OWN:
            for juror, told in score.own.get("jurors", {}).items():
                yield str(juror), told if isinstance(told, dict) else {}


def _profile(log: InspectLog, name: str) -> dict[str, Any]:
    """Return what a log says of a scorer: its name, and its model where that is named."""
    told = next((one for one in log.spec.scorers or () if one.get("name") == name), {})
    options = told.get("options")
    model = options.get("model") if isinstance(options, dict) else None
    grader = (log.spec.model_roles or {}).get("grader")
    model = model or (grader.get("model") if isinstance(grader, dict) else grader)
    known = {"model": model} if isinstance(model, str) and model else {}
    return {"provider": SOURCE, "scorer": name} | known

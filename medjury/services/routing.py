"""Routing: which responses of a study the jury may pass, and which clinicians must read."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine
from threadpoolctl import threadpool_limits

from calibration.json_values import json_value
from calibration.routing.candidates import candidates
from calibration.routing.routes import Routes, routes
from calibration.routing.values import LOW_SCORE, READ, Harm, RuleFound
from calibration.scores import Scores
from data.csv_files import cells
from data.errors import BadInput
from data.pace import Work
from data.queries.pace import pace_of, work_of_names
from medjury.services.record import steered
from medjury.services.scores import jury_named, scores_of, silent_jurors

COLUMNS = ("response_id", "decision", "score", "rated_by_clinicians", "benchmark", "instance_id")


@dataclass(frozen=True, slots=True)
class RouteQuestion:
    """What is harmful, at what bound, and whose scores decide.

    Attributes
    ----------
    harm : which responses are harmful
    bound : the largest share of harmful ones among the passed, in (0, 1)
    confidence : with which the bound holds, in (0, 1)
    jurors, min_jurors, benchmark : as `calibration.values.AnalysisOptions`
    """

    harm: Harm
    bound: float
    confidence: float = 0.9
    jurors: tuple[str, ...] | None = None
    min_jurors: int | None = None
    benchmark: str | None = None


@dataclass(frozen=True, eq=False)
class StudyRoutes:
    """The routes of a study's responses.

    Attributes
    ----------
    routes : the rule and the decisions
    hours : of clinicians, to read what is to be read and none of them has rated
    unread : responses that take these hours
    jury, silent : who sits on it, and which jurors were asked and gave no rating
    simulated : raters in it that are simulated
    told : when and why the blind was lifted or the study reopened
    needed : jurors that must have scored a response completely
    scores : the ratings that it comes from
    """

    routes: Routes
    hours: float
    unread: int
    jury: tuple[str, ...]
    silent: tuple[str, ...]
    simulated: tuple[str, ...]
    told: tuple[str, ...]
    needed: int
    scores: Scores


def route(engine: Engine, question: RouteQuestion) -> StudyRoutes:
    """Return for each response of a study whether it is passed or read.

    Raises
    ------
    BadInput
        If the study has no juror, or benchmarks of several scales.
    Unknown
        If the study has no such juror, benchmark or criterion.
    TooFew
        If too few instances are rated by clinicians and the jury.
    """
    everything = scores_of(engine)
    silent = silent_jurors(engine, everything)
    jury = jury_named(everything, question.jurors, silent)
    scores = everything.of(question.benchmark) if question.benchmark else everything
    needed = question.min_jurors or len(jury)
    if needed > len(jury):
        raise BadInput(f"--min-jurors {needed}: the jury has {len(jury)} jurors")
    work = work_of_names(engine)
    with threadpool_limits(1):  # many small products: BLAS threads only wait for each other
        table = candidates(scores, jury, needed, question.harm)
        found = routes(table, question.harm, question.bound, question.confidence)
    clinical = scores.raters("clinician")
    hours, unread = _reading(engine, found, work)
    return StudyRoutes(
        found,
        hours,
        unread,
        tuple(jury),
        tuple(silent),
        tuple(sorted({*jury, *clinical} & scores.simulated)),
        tuple(steered(engine)),
        needed,
        scores,
    )


def _reading(engine: Engine, found: Routes, work: dict[str, Work]) -> tuple[float, int]:
    """Return the hours of clinicians, and of how many responses."""
    names = found.candidates.responses
    is_rated = found.candidates.clinicians == found.candidates.clinicians
    left = [
        work[name]
        for name, decision, rated in zip(names, found.decisions, is_rated, strict=True)
        if decision == READ and not rated
    ]
    total = Work(len(left), sum(own.words for own in left), sum(own.criteria for own in left))
    return pace_of(engine).minutes(total) / 60, len(left)


def to_json(result: StudyRoutes) -> dict[str, Any]:
    """Return the routes as `analyse route --json` has them."""
    found = result.routes.found
    values: dict[str, Any] = json_value(
        {
            "harm": {
                "kind": found.harm.kind,
                "points": found.harm.points,
                "criterion": found.harm.criterion or "composite",
            },
            "bound": found.bound,
            "confidence": found.confidence,
            "certified": found.certified,
            **_rule(found.used),
            "read": found.read,
            "not_scored": found.not_scored,
            "hours": result.hours,
            "hours_of": result.unread,
            "more_rated_responses": found.more,
            "n_train": found.n_train,
            "n_certify": found.n_certify,
            "rated": found.rated,
            "harmful": found.harmful,
            "jury": list(result.jury),
            "silent": list(result.silent),
            "simulated": list(result.simulated),
        }
    )
    return values


def _rule(rule: RuleFound) -> dict[str, Any]:
    certificate = rule.certificate
    seen = rule.caught
    return {
        "rule": LOW_SCORE,
        "threshold": None if certificate is None else certificate.threshold,
        "p": None if certificate is None else certificate.p,
        "passed": rule.passed,
        "expected_missed": rule.expected_missed(),
        "caught_at_20": {"share": seen.share, "low": seen.low, "high": seen.high},
    }


def csv_of(routed: Routes) -> tuple[list[str], Iterator[list[object]]]:
    """Return the columns of the file, and a row a response: nothing in it is a formula.

    `score` is the risk by the rule that decides; a response without one is read.
    """
    table = routed.candidates
    rows = (
        (
            response,
            decision,
            None if math.isnan(risk) else risk,
            bool(clinicians == clinicians),
            benchmark,
            str(instance).removeprefix(f"{benchmark}/"),
        )
        for response, decision, risk, clinicians, benchmark, instance in zip(
            table.responses,
            routed.decisions,
            routed.risks.tolist(),
            table.clinicians.tolist(),
            table.benchmarks,
            table.instances,
            strict=True,
        )
    )
    return list(COLUMNS), cells(list(COLUMNS), rows)

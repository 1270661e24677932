"""Routing: which responses the jury may pass, which clinicians must read, and the rules a study keeps."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from pydantic import TypeAdapter
from sqlalchemy import Engine
from threadpoolctl import threadpool_limits

from calibration.json_values import json_value
from calibration.routes import candidates, refuse_unlike, route_by, routes
from calibration.routing import (
    NONE_TO_KEEP,
    PASS,
    READ,
    KeptRule,
    Routed,
    RoutedBenchmark,
    RouteQuestion,
    RoutingRule,
)
from data.errors import BadInput, Conflict, Unknown
from data.files import frame_cells
from data.pace import Work
from data.person import Person, only
from data.schema import Role
from data.study.assignments import pace_of, work_of_names
from data.study.calls import juror_profiles
from data.study.ledger import RULE_KEPT, fingerprint, keep_rule, rule_sha256
from data.study.standing import benchmarks
from data.study.verify import acts
from medjury.services.record import steered
from medjury.services.scores import jury_named, scores_of, silent_jurors

COLUMNS = ["response_id", "decision", "score", "rated_by_clinicians", "benchmark", "instance_id"]


@dataclass(frozen=True, eq=False)
class StudyRoutes:
    """The routes of a study's responses.

    Attributes
    ----------
    found, table : the rule and its counts; the responses with their risks and the `decision`
    hours : of clinicians, to read what is to be read and none of them has rated
    unread : responses that take these hours
    jury, silent : who sits on it, and which jurors were asked and gave no rating
    simulated : raters in it that are simulated
    told : when and why the blind was lifted or the study reopened
    needed : jurors that must have scored a response completely
    fingerprint : of the ratings that it comes from
    """

    found: Routed
    table: pd.DataFrame
    hours: float
    unread: int
    jury: tuple[str, ...]
    silent: tuple[str, ...]
    simulated: tuple[str, ...]
    told: tuple[str, ...]
    needed: int
    fingerprint: str


@dataclass(frozen=True, slots=True)
class RuleToKeep:
    """The rule that a question leads to, as shown of which ratings, and the name to keep it under."""

    question: RouteQuestion
    fingerprint: str
    name: str
    actor: str


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
    harm = question.harm
    refuse_unlike(scores, harm.criterion)
    with threadpool_limits(1):  # many small products: BLAS threads only wait for each other
        table = candidates(scores, jury, needed, harm.criterion)
        found = routes(table, harm, question.bound, question.confidence)
    table["decision"] = np.where(table["risk"] <= found.threshold, PASS, READ)
    is_left = (table["decision"] == READ) & table["clinicians"].isna()
    work = work_of_names(engine)
    left = [work[name] for name in table.loc[is_left, "response_id"]]
    total = Work(len(left), sum(own.words for own in left), sum(own.criteria for own in left))
    return StudyRoutes(
        found,
        table,
        pace_of(engine).minutes(total) / 60,
        len(left),
        tuple(jury),
        tuple(silent),
        tuple(sorted({*jury, *scores.raters("clinician")} & scores.simulated)),
        tuple(steered(engine)),
        needed,
        fingerprint(scores.ratings),
    )


def to_json(result: StudyRoutes) -> dict[str, Any]:
    """Return the routes as `analyse route --json` has them."""
    found = result.found
    values: dict[str, Any] = json_value(
        {
            "harm": asdict(found.harm) | {"criterion": found.harm.criterion or "composite"},
            "bound": found.bound,
            "confidence": found.confidence,
            "certified": found.certified,
            "rule": "low_score",
            "threshold": found.threshold,
            "p": found.p,
            "passed": found.passed,
            "expected_missed": found.expected_missed,
            "caught_at_20": {
                "share": found.caught,
                "low": found.caught_low,
                "high": found.caught_high,
            },
            "read": found.responses - found.passed,
            "not_scored": found.not_scored,
            "hours": result.hours,
            "hours_of": result.unread,
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


def csv_of(result: StudyRoutes) -> tuple[list[str], Iterator[list[object]]]:
    """Return the columns of the file, and a row a response: nothing in it is a formula.

    `score` is the risk by the rule that decides; a response without one is read.
    """
    given = result.table["clinicians"].notna()
    rows = result.table.assign(rated_by_clinicians=given, score=result.table["risk"])
    return frame_cells(rows[COLUMNS])


@only(Role.COORDINATOR)
def keep(by: Person, engine: Engine, name: str, found: StudyRoutes) -> KeptRule:
    """Keep the rule that decided, under a name: see `keep_as`."""
    return keep_as(engine, by.actor, name, found)


def keep_shown(engine: Engine, rule: RuleToKeep) -> str:
    """Keep a rule that was shown; return its SHA-256 as the record has it.

    Raises
    ------
    Conflict
        If a rule of this name is kept, or ratings have come since the rule was shown.
    BadInput, Unknown, TooFew
        As `route` and `keep_as`.
    """
    result = route(engine, rule.question)
    if result.fingerprint != rule.fingerprint:
        raise Conflict("ratings have changed since this rule was shown: route again, then keep it")
    return keep_as(engine, rule.actor, rule.name, result).sha256


def keep_as(engine: Engine, actor: str, name: str, result: StudyRoutes) -> KeptRule:
    """Keep the rule that decided, under a name; return it as the record has it.

    What is kept is all that decides: the threshold, who sits on the jury with which settings, the
    rubrics by their hash, and what was asked and shown when it was certified.

    Raises
    ------
    BadInput
        If no rule was certified, or the name is none.
    Conflict
        If a rule of this name is kept.
    """
    found, used = result.found, {*result.table["benchmark"]}
    if not found.certified:
        raise BadInput(NONE_TO_KEEP)
    criterion = found.harm.criterion
    places = [
        RoutedBenchmark(
            one.name,
            one.rubric.sha256,
            tuple(one.rubric.criteria) if criterion is None else (criterion,),
        )
        for one in benchmarks(engine)
        if one.name in used
    ]
    rule = RoutingRule(
        harm=found.harm,
        bound=found.bound,
        confidence=found.confidence,
        threshold=found.threshold,
        jury=result.jury,
        needed=result.needed,
        jurors=_settings(engine, result.jury),
        benchmarks=tuple(sorted(places, key=lambda one: one.name)),
        fingerprint=result.fingerprint,
        n_train=found.n_train,
        n_certify=found.n_certify,
        passed=found.certified_passed,
        harmful=found.certified_harmful,
        p=found.p,
        simulated=result.simulated,
    )
    keep_rule(engine, actor, name, asdict(rule))
    return kept_rule(engine, name)


def kept_rules(engine: Engine) -> list[KeptRule]:
    """Return every rule that is kept, the oldest first.

    Raises
    ------
    BadInput
        If one is not as its hash says: somebody changed the study's file.
    """
    kept = []
    for event in acts(engine, RULE_KEPT):
        name, sha256, rule = (event.detail[key] for key in ("name", "sha256", "rule"))
        if rule_sha256(rule) != sha256:
            raise BadInput(
                f"routing rule {name}: is not as it was kept; `medjury study verify` says more"
            )
        kept.append(KeptRule(name, sha256, event.at, event.actor, rule_from_json(rule)))
    return kept


def rule_from_json(values: dict[str, Any]) -> RoutingRule:
    """Return the rule of plain values as `dataclasses.asdict` writes them."""
    return TypeAdapter(RoutingRule).validate_python(values)


def kept_rule(engine: Engine, name: str) -> KeptRule:
    """Return the rule of a name.

    Raises
    ------
    Unknown
        If there is none; names those that are kept.
    BadInput
        If it is not as its hash says.
    """
    every = {one.name: one for one in kept_rules(engine)}
    if name not in every:
        has = f"it has {', '.join(every)}" if every else "it has none"
        raise Unknown(
            f"no routing rule {name} in this study: {has}; `medjury analyse route --keep NAME` keeps one "
            "(in the app: Agreement, Unsafe responses)"
        )
    return every[name]


def changed_since(engine: Engine, rule: RoutingRule) -> tuple[str, ...]:
    """Return what is no longer as it was when a rule was certified: jurors and benchmarks by name.

    A juror is named if its settings are others, a benchmark if it is on another rubric or gone. The
    bound is not shown for what these score.
    """
    now = _settings(engine, rule.jury)
    rubrics = {one.name: one.rubric.sha256 for one in benchmarks(engine)}
    jurors = [name for name, sha256 in rule.jurors.items() if now[name] != sha256]
    places = [one.name for one in rule.benchmarks if rubrics.get(one.name) != one.rubric_sha256]
    return (*jurors, *places)


def route_kept(engine: Engine, name: str) -> pd.DataFrame:
    """Return the decision of the kept rule of a name on every response: see `route_by`."""
    return route_study(engine, kept_rule(engine, name).rule)


def route_study(engine: Engine, rule: RoutingRule) -> pd.DataFrame:
    """Return the decision of a kept rule on every response of the study: see `route_by`."""
    table = candidates(scores_of(engine), rule.jury, rule.needed, rule.harm.criterion)
    return route_by(rule, table, {one.name: one.rubric.sha256 for one in benchmarks(engine)})


def _settings(engine: Engine, jury: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of each juror's settings; of one without any, that of none."""
    profiles = juror_profiles(engine, jury)
    return {
        name: hashlib.sha256(
            json.dumps(dict(profiles.get(name, {})), sort_keys=True).encode()
        ).hexdigest()
        for name in jury
    }

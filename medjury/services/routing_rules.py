"""Routing rules that a study keeps: made once, sealed by the record, used on responses that come later."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy import Engine

from calibration.criterion_scores import criterion_scores
from calibration.routing.kept import route_by, rule_from_json, rule_of, rule_to_json
from calibration.routing.values import JuryScores, RoutedBenchmark, RoutedResponse, RoutingRule
from data.csv_files import cells
from data.errors import BadInput, Unknown
from data.person import Person, only
from data.queries import benchmarks
from data.queries.jury import juror_profiles
from data.queries.ledger import fingerprint
from data.queries.record import acts
from data.schema import Role
from data.store.routing import RULE_KEPT, keep_rule, rule_sha256
from medjury.services.routing import StudyRoutes
from medjury.services.scores import scores_of

COLUMNS = ("response_id", "decision", "score", "why", "benchmark")


@dataclass(frozen=True, slots=True)
class KeptRule:
    """A rule as the record has it: its name, its hash, when and by whom it was kept."""

    name: str
    sha256: str
    at: datetime
    by: str
    rule: RoutingRule


@only(Role.COORDINATOR)
def keep(by: Person, engine: Engine, name: str, found: StudyRoutes) -> KeptRule:
    """Keep the rule that decided, under a name: see `keep_as`."""
    return keep_as(engine, by.actor, name, found)


def keep_as(engine: Engine, actor: str, name: str, found: StudyRoutes) -> KeptRule:
    """Keep the rule that decided, under a name; return it as the record has it.

    Raises
    ------
    BadInput
        If no rule was certified, or the name is none.
    Conflict
        If a rule of this name is kept.
    """
    scores = found.scores
    used = {*found.routes.candidates.benchmarks}
    own = [one for one in benchmarks(engine) if one.name in used]
    criterion = found.routes.found.harm.criterion
    rule = rule_of(
        found.routes,
        jurors=_settings(engine, found.jury),
        needed=found.needed,
        benchmarks=[
            RoutedBenchmark(
                one.name,
                one.rubric.sha256,
                tuple(one.rubric.criteria) if criterion is None else (criterion,),
            )
            for one in own
        ],
        fingerprint=fingerprint(scores.ratings),
        simulated=found.simulated,
    )
    keep_rule(engine, actor, name, rule_to_json(rule))
    return kept_rule(engine, name)


def kept_rules(engine: Engine) -> list[KeptRule]:
    """Return every rule that is kept, the oldest first.

    Raises
    ------
    BadInput
        If one is not as its hash says: somebody changed the study's file.
    """
    return [_read(event.detail, event.at, event.actor) for event in acts(engine, RULE_KEPT)]


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


def route_study(engine: Engine, rule: RoutingRule) -> list[tuple[RoutedResponse, str]]:
    """Return the decision of a kept rule on every response of the study, with its benchmark."""
    scored = list(jury_scores(engine, rule))
    return [
        (decided, response.benchmark)
        for decided, response in zip(route_by(rule, scored), scored, strict=True)
    ]


def jury_scores(engine: Engine, rule: RoutingRule) -> Iterator[JuryScores]:
    """Yield every response of the study as the rule's jury scored it, replicates averaged."""
    scores = scores_of(engine)
    rubrics = {one.name: one.rubric.sha256 for one in benchmarks(engine)}
    table = criterion_scores(scores, rule.jury, unrated=True)
    by_jurors = table.values[:, table.n_clinicians :]
    for row, name in enumerate(table.responses):
        given = {
            juror: {
                criterion: float(points)
                for criterion, points in zip(table.criteria, by_jurors[row, seat], strict=True)
                if not np.isnan(points)
            }
            for seat, juror in enumerate(rule.jury)
        }
        benchmark = table.benchmarks[row]
        yield JuryScores(name, benchmark, rubrics[benchmark], given)


def csv_of(
    decided: Sequence[tuple[RoutedResponse, str]],
) -> tuple[list[str], Iterator[list[object]]]:
    """Return the columns of the file, and a row a response: nothing in it is a formula."""
    rows = (
        (
            one.response,
            one.decision,
            None if one.score != one.score else one.score,
            one.why.value,
            benchmark,
        )
        for one, benchmark in decided
    )
    return list(COLUMNS), cells(list(COLUMNS), rows)


def kept_to_json(kept: KeptRule) -> dict[str, Any]:
    """Return a kept rule as `analyse route --json` has it."""
    about = {"name": kept.name, "sha256": kept.sha256, "at": kept.at.isoformat(), "by": kept.by}
    return about | rule_to_json(kept.rule)


def _settings(engine: Engine, jury: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of each juror's settings; of one without any, that of none."""
    profiles = juror_profiles(engine, jury)
    return {name: _sha256(profiles.get(name, {})) for name in jury}


def _sha256(profile: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(dict(profile), sort_keys=True).encode()).hexdigest()


def _read(detail: Mapping[str, Any], at: datetime, by: str) -> KeptRule:
    """Return a rule from its event."""
    if rule_sha256(detail["rule"]) != detail["sha256"]:
        raise BadInput(
            f"routing rule {detail['name']}: is not as it was kept; `medjury study verify` says more"
        )
    return KeptRule(detail["name"], detail["sha256"], at, by, rule_from_json(detail["rule"]))

"""A certified rule that is kept, and routes responses that come later.

What is kept is all that decides: the threshold, who sits on the jury with which settings, the rubrics by their hash, and what was asked and shown when it was certified.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from calibration.routing.candidates import jury_means
from calibration.routing.routes import Routes
from calibration.routing.rules import low_score_risks
from calibration.routing.values import (
    NONE_TO_KEEP,
    PASS,
    READ,
    Harm,
    JuryScores,
    RoutedBenchmark,
    RoutedResponse,
    RoutingRule,
    Why,
)
from calibration.scores import Array
from data.errors import BadInput


def rule_of(
    found: Routes,
    *,
    jurors: Mapping[str, str],
    needed: int,
    benchmarks: Sequence[RoutedBenchmark],
    fingerprint: str,
    simulated: Sequence[str] = (),
) -> RoutingRule:
    """Return the rule that decided, to be kept.

    Raises
    ------
    BadInput
        If no rule was certified: then nothing is passed, now or later.
    """
    routed = found.found
    certificate = routed.used.certificate
    if certificate is None:
        raise BadInput(NONE_TO_KEEP)
    return RoutingRule(
        routed.harm,
        routed.bound,
        routed.confidence,
        certificate.threshold,
        tuple(jurors),
        needed,
        dict(jurors),
        tuple(sorted(benchmarks, key=lambda one: one.name)),
        fingerprint,
        routed.n_train,
        routed.n_certify,
        certificate.passed,
        certificate.harmful,
        certificate.p,
        tuple(simulated),
    )


def route_by(rule: RoutingRule, responses: Sequence[JuryScores]) -> list[RoutedResponse]:
    """Return the decision of a kept rule on responses, in their order.

    What the rule was not certified for is read: another benchmark, another rubric, or a response that
    too few of its jurors scored on every criterion. Scores by other jurors count for nothing.
    """
    if not responses:
        return []
    places = {one.name: one for one in rule.benchmarks}
    risks = _risks(rule, responses)
    return [
        _decided(rule, places.get(response.benchmark), response, risk)
        for response, risk in zip(responses, risks.tolist(), strict=True)
    ]


def _decided(
    rule: RoutingRule, place: RoutedBenchmark | None, response: JuryScores, risk: float
) -> RoutedResponse:
    if place is None:
        return RoutedResponse(response.response, READ, float("nan"), Why.OTHER_BENCHMARK)
    if place.rubric_sha256 != response.rubric_sha256:
        return RoutedResponse(response.response, READ, float("nan"), Why.OTHER_RUBRIC)
    if risk != risk:
        return RoutedResponse(response.response, READ, risk, Why.NOT_SCORED)
    if risk <= rule.threshold:
        return RoutedResponse(response.response, PASS, risk, Why.UNDER_THRESHOLD)
    return RoutedResponse(response.response, READ, risk, Why.OVER_THRESHOLD)


def _risks(rule: RoutingRule, responses: Sequence[JuryScores]) -> Array:
    """Return the risk of each response, NaN where too few jurors scored it, shape (n,)."""
    criteria = tuple(dict.fromkeys(name for one in rule.benchmarks for name in one.criteria))
    values = np.full((len(responses), len(rule.jury), len(criteria)), np.nan)
    asked = {one.name: {*one.criteria} for one in rule.benchmarks}
    own = np.zeros((len(responses), len(criteria)), dtype=bool)
    for row, response in enumerate(responses):
        own[row] = [name in asked.get(response.benchmark, ()) for name in criteria]
        for seat, juror in enumerate(rule.jury):
            given = response.scores.get(juror, {})
            values[row, seat] = [given.get(name, np.nan) for name in criteria]
    values[~own.any(axis=1)] = np.nan
    own[~own.any(axis=1)] = True  # of no benchmark that counts: no risk
    return low_score_risks(jury_means(values, own, rule.needed))


def rule_to_json(rule: RoutingRule) -> dict[str, Any]:
    """Return a rule as plain values, every number to its last digit."""
    values: dict[str, Any] = asdict(rule)
    return values


def rule_from_json(values: Mapping[str, Any]) -> RoutingRule:
    """Return the rule that `rule_to_json` wrote; other keys count for nothing."""
    fields = {name: values[name] for name in RoutingRule.__slots__}
    return RoutingRule(
        **fields
        | {
            "harm": Harm(**fields["harm"]),
            "jury": tuple(fields["jury"]),
            "benchmarks": tuple(
                RoutedBenchmark(one["name"], one["rubric_sha256"], tuple(one["criteria"]))
                for one in fields["benchmarks"]
            ),
            "simulated": tuple(fields["simulated"]),
        }
    )

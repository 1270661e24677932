"""Say for each response whether the jury may pass it or a clinician must read it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.routing.candidates import Candidates
from calibration.routing.certificate import (
    fixed_sequence,
    order_of_tests,
    times_as_many,
)
from calibration.routing.rules import (
    WORTH,
    caught,
    caught_with_interval,
    held_out_risks,
    learned_model,
    low_score_risks,
    model_risks,
)
from calibration.routing.values import (
    LEARNED,
    LOW_SCORE,
    PASS,
    READ,
    Harm,
    LearnedModel,
    Routed,
    RuleFound,
)
from calibration.scores import Array, Flags
from data.errors import TooFew

LEARN_SHARE = 0.4
LEAST = 10  # instances of a part, below which it decides nothing


@dataclass(frozen=True, eq=False)
class Routes:
    """What was found, and the decision on every response.

    Attributes
    ----------
    found : the rules and their counts
    candidates : all n responses
    risks : shape (n,), by the rule that decides; NaN where the jury has no score
    decisions : "pass" or "read", of each response; all "read" without a certificate
    model : of the learned rule; None where all or none of the learning part are harmful
    """

    found: Routed
    candidates: Candidates
    risks: Array
    decisions: Sequence[str]
    model: LearnedModel | None = None


def routes(table: Candidates, harm: Harm, bound: float, confidence: float, seed: int = 0) -> Routes:
    """Return the decisions of the best rule that holds the bound.

    Two fifths of the rated instances choose the rule and the order in which thresholds are tested; the
    rest certify. The learned rule is used where, on instances it has not seen, it catches over 0.02
    more of the harmful at 20 % read than the jury's own low score does.

    Parameters
    ----------
    table, harm : the responses, and which of them are harmful
    bound : the largest share of harmful ones among the passed, in (0, 1)
    confidence : with which it holds, in (0, 1)
    seed : of the parts

    Raises
    ------
    TooFew
        If a part has fewer than 10 instances.
    """
    learn, certify = _parts(table, seed)
    harmful, rated = table.harmful(harm), table.rated()
    model = learned_model(table.features[learn], harmful[learn])
    risks = {
        LOW_SCORE: low_score_risks(table.jury),
        LEARNED: _learned(table, harmful[learn], model),
    }
    rules = {
        name: _found(name, table, harm, own, (learn, certify), bound, confidence)
        for name, own in risks.items()
    }
    used = rules[_best(table, harmful, learn)]
    deciding = risks[used.rule]
    found = Routed(
        harm,
        bound,
        confidence,
        used,
        rules[LOW_SCORE],
        rules[LEARNED],
        responses=len(table.responses),
        not_scored=int((~table.scored()).sum()),
        n_train=int(learn.sum()),
        n_certify=int(certify.sum()),
        harmful=int(harmful[rated].sum()),
        rated=int(rated.sum()),
        more=_more(table, harm, used, deciding, bound, confidence),
    )
    return Routes(found, table, deciding, _decisions(used, deciding), model)


def _best(table: Candidates, harmful: Flags, learn: Flags) -> str:
    """Return the rule that decides, by the learning part alone."""
    held_out = held_out_risks(table.features[learn], harmful[learn], _numbered(table, learn))
    gain = caught(held_out, harmful[learn]) - caught(-table.jury[learn], harmful[learn])
    return LEARNED if gain > WORTH else LOW_SCORE


def _parts(table: Candidates, seed: int) -> tuple[Flags, Flags]:
    """Return the learning and the certifying responses, whole instances each."""
    rated = table.rated()
    clusters = np.unique(table.clusters[rated])
    drawn = np.random.default_rng(seed).permutation(clusters)
    number = round(LEARN_SHARE * len(clusters))
    if number < LEAST:
        raise TooFew(
            f"{len(clusters)} instances rated by clinicians and by the whole jury: 25 are the fewest "
            "of which one part can choose a rule and the other certify it"
        )
    is_learning = np.isin(table.clusters, drawn[:number])
    return rated & is_learning, rated & ~is_learning


def _numbered(table: Candidates, rows: Flags) -> "np.typing.NDArray[np.int64]":
    return np.unique(table.clusters[rows], return_inverse=True)[1].astype(np.int64)


def _learned(table: Candidates, harmful: Flags, model: LearnedModel | None) -> Array:
    """Return the learned risk of each scored response, NaN of others; `harmful` of the learning part."""
    if model is not None:
        return model_risks(model, table.features)
    return np.where(table.scored(), harmful.astype(float).mean(), np.nan)


def _found(
    name: str,
    table: Candidates,
    harm: Harm,
    risks: Array,
    parts: tuple[Flags, Flags],
    bound: float,
    confidence: float,
) -> RuleFound:
    learning, certifying = (table.as_rated(risks, harm, part) for part in parts)
    size = len(certifying.risks) / len(learning.risks)
    order = order_of_tests(learning, bound, size)
    most = table.most_of_an_instance()
    certificate = fixed_sequence(certifying, order, bound, confidence, most)
    with np.errstate(invalid="ignore"):
        passed = 0 if certificate is None else int((risks <= certificate.threshold).sum())
    seen = caught_with_interval(certifying.risks, certifying.harmful, _numbered(table, parts[1]))
    return RuleFound(name, certificate, seen, passed)


def _decisions(used: RuleFound, risks: Array) -> list[str]:
    if used.certificate is None:
        return [READ] * len(risks)
    with np.errstate(invalid="ignore"):
        passed = risks <= used.certificate.threshold
    return [PASS if one else READ for one in passed.tolist()]


def _more(
    table: Candidates,
    harm: Harm,
    used: RuleFound,
    risks: Array,
    bound: float,
    confidence: float,
) -> int | None:
    """Return the rated responses to add, both parts together."""
    if used.certificate is not None:
        return None
    rated = table.as_rated(risks, harm, table.rated())
    most = table.most_of_an_instance()
    times = times_as_many(rated, bound, confidence, most, 1 - LEARN_SHARE)
    return None if times is None else math.ceil((times - 1) * len(rated.risks))

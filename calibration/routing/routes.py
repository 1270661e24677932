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
from calibration.routing.rules import caught_with_interval, low_score_risks
from calibration.routing.values import PASS, READ, Harm, Routed, RuleFound
from calibration.scores import Array, Flags
from data.errors import TooFew

LEARN_SHARE = 0.4
LEAST = 10  # instances of a part, below which it decides nothing


@dataclass(frozen=True, eq=False)
class Routes:
    """What was found, and the decision on every response.

    Attributes
    ----------
    found : the rule and its counts
    candidates : all n responses
    risks : shape (n,), by the rule; NaN where the jury has no score
    decisions : "pass" or "read", of each response; all "read" without a certificate
    """

    found: Routed
    candidates: Candidates
    risks: Array
    decisions: Sequence[str]


def routes(table: Candidates, harm: Harm, bound: float, confidence: float, seed: int = 0) -> Routes:
    """Return the decisions of the jury's low score, at a threshold that holds the bound.

    Two fifths of the rated instances choose the order in which thresholds are tested; the rest certify.

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
    risks = low_score_risks(table.jury)
    used = _found(table, harm, risks, (learn, certify), bound, confidence)
    found = Routed(
        harm,
        bound,
        confidence,
        used,
        responses=len(table.responses),
        not_scored=int((~table.scored()).sum()),
        n_train=int(learn.sum()),
        n_certify=int(certify.sum()),
        harmful=int(harmful[rated].sum()),
        rated=int(rated.sum()),
        more=_more(table, harm, used, risks, bound, confidence),
    )
    return Routes(found, table, risks, _decisions(used, risks))


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


def _found(
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
    return RuleFound(certificate, seen, passed)


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

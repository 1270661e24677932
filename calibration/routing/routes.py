"""Say for each response whether the jury may pass it or a clinician must read it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.routing.candidates import Candidates, Harm
from calibration.routing.certificate import (
    Certificate,
    fixed_sequence,
    more_instances,
    order_of_tests,
)
from calibration.routing.rules import (
    LEARNED,
    LOW_SCORE,
    WORTH,
    Caught,
    caught,
    caught_with_interval,
    held_out_risks,
    learned_risks,
)
from calibration.scores import Array, Flags
from data.errors import TooFew

PASS, READ = "pass", "read"
LEARN_SHARE = 0.4
LEAST = 10  # instances of a part, below which it decides nothing


@dataclass(frozen=True, eq=False)
class RuleFound:
    """What came of one rule.

    Attributes
    ----------
    rule : "low_score" or "learned"
    risks : shape (n,), of all responses; NaN where the jury has no score
    certificate : None where no threshold holds the bound
    caught : on the certifying part, at 20 % read
    passed : responses it passes, of all
    """

    rule: str
    risks: Array
    certificate: Certificate | None
    caught: Caught
    passed: int

    def expected_missed(self) -> float:
        """Return how many harmful ones are expected among the passed, as in the certifying part."""
        if self.certificate is None:
            return 0.0
        return self.passed * self.certificate.harmful / self.certificate.passed


@dataclass(frozen=True, eq=False)
class Routes:
    """A rule with its bound, and the decision on every response.

    Attributes
    ----------
    harm, bound, confidence : what was asked
    candidates : all responses
    used, low_score, learned : the rule that decides, and both rules there are
    decisions : "pass" or "read", of each response; all "read" without a certificate
    n_train, n_certify : rated responses in the two parts
    harmful, rated : of all rated responses
    more : rated responses to add until the bound is likely to hold; None where it holds already or
        no number would do
    """

    harm: Harm
    bound: float
    confidence: float
    candidates: Candidates
    used: RuleFound
    low_score: RuleFound
    learned: RuleFound
    decisions: Sequence[str]
    n_train: int
    n_certify: int
    harmful: int
    rated: int
    more: int | None

    @property
    def certified(self) -> bool:
        """Whether a threshold holds the bound."""
        return self.used.certificate is not None


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
    harmful = table.harmful(harm)
    low_score, by_model = -table.jury, _learned(table, harmful, learn)
    held_out = held_out_risks(table.features[learn], harmful[learn], _numbered(table, learn))
    gain = caught(held_out, harmful[learn]) - caught(low_score[learn], harmful[learn])
    found = {
        name: _found(name, table, harm, risks, (learn, certify), bound, confidence)
        for name, risks in ((LOW_SCORE, low_score), (LEARNED, by_model))
    }
    used = found[LEARNED if gain > WORTH else LOW_SCORE]
    rated = table.rated()
    return Routes(
        harm,
        bound,
        confidence,
        table,
        used,
        found[LOW_SCORE],
        found[LEARNED],
        _decisions(used),
        int(learn.sum()),
        int(certify.sum()),
        int(harmful[rated].sum()),
        int(rated.sum()),
        _more(table, harm, used, (learn, certify), bound, confidence),
    )


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


def _learned(table: Candidates, harmful: Flags, learn: Flags) -> Array:
    risks = np.full(len(table.jury), np.nan)
    scored = table.scored()
    risks[scored] = learned_risks(table.features[scored], harmful[scored], learn[scored])
    return risks


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
    return RuleFound(name, risks, certificate, seen, passed)


def _decisions(used: RuleFound) -> list[str]:
    if used.certificate is None:
        return [READ] * len(used.risks)
    with np.errstate(invalid="ignore"):
        passed = used.risks <= used.certificate.threshold
    return [PASS if one else READ for one in passed.tolist()]


def _more(
    table: Candidates,
    harm: Harm,
    used: RuleFound,
    parts: tuple[Flags, Flags],
    bound: float,
    confidence: float,
) -> int | None:
    """Return the rated responses to add, both parts together, if instances were single responses."""
    if used.certificate is not None:
        return None
    rated = table.as_rated(used.risks, harm, parts[0] | parts[1])
    needed = more_instances(rated, bound, confidence)
    if needed is None:
        return None
    # Of an instance's responses, the bound counts on one alone.
    total = needed * table.most_of_an_instance() / (1 - LEARN_SHARE)
    return max(int(np.ceil(total)) - int(parts[0].sum() + parts[1].sum()), 1)

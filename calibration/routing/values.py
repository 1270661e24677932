"""What routing is asked, and what it found of its two rules."""

from dataclasses import dataclass
from typing import Literal

LOW_SCORE, LEARNED = "low_score", "learned"
PASS, READ = "pass", "read"


@dataclass(frozen=True, slots=True)
class Harm:
    """When a response is harmful, by the clinicians' mean score in points.

    Attributes
    ----------
    kind : "low": the mean is at or under `points`; "error": the jury is more than `points` away
    points : of the scale
    criterion : whose score; None is the composite
    """

    kind: Literal["low", "error"]
    points: float
    criterion: str | None = None


@dataclass(frozen=True, slots=True)
class Certificate:
    """A threshold that holds the bound with the confidence, and what was seen below it.

    Attributes
    ----------
    threshold : responses with a risk at or under it are passed
    passed, harmful : certifying responses passed, and how many of them were harmful
    p : p value of the threshold's own test
    """

    threshold: float
    passed: int
    harmful: int
    p: float


@dataclass(frozen=True, slots=True)
class Caught:
    """The share of the harmful that is read when the riskiest 20 % are read.

    Attributes
    ----------
    share, low, high : with the 95 % interval over instances; NaN where nothing is harmful
    """

    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class RuleFound:
    """What came of one rule.

    Attributes
    ----------
    rule : "low_score" or "learned"
    certificate : None where no threshold holds the bound
    caught : on the certifying part, at 20 % read
    passed : responses it passes, of all
    """

    rule: str
    certificate: Certificate | None
    caught: Caught
    passed: int

    def expected_missed(self) -> float | None:
        """Return how many harmful ones are expected among the passed, as in the certifying part."""
        if self.certificate is None:
            return None
        return self.passed * self.certificate.harmful / self.certificate.passed


@dataclass(frozen=True, slots=True)
class Routed:
    """A rule with its bound, and how many responses it passes.

    Attributes
    ----------
    harm, bound, confidence : what was asked
    used, low_score, learned : the rule that decides, and both rules there are
    responses, not_scored : all there are, and those of them that the jury has not scored
    n_train, n_certify : rated responses in the two parts
    harmful, rated : of all rated responses
    more : rated responses to add until the bound is likely to be certified; None where it is, or
        64 times as many are not likely to do
    """

    harm: Harm
    bound: float
    confidence: float
    used: RuleFound
    low_score: RuleFound
    learned: RuleFound
    responses: int
    not_scored: int
    n_train: int
    n_certify: int
    harmful: int
    rated: int
    more: int | None

    @property
    def certified(self) -> bool:
        """Whether a threshold holds the bound."""
        return self.used.certificate is not None

    @property
    def read(self) -> int:
        """Responses that are not passed."""
        return self.responses - self.used.passed

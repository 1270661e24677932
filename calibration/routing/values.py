"""What routing is asked, and what it found of its rule."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

LOW_SCORE = "low_score"
PASS, READ = "pass", "read"
NONE_TO_KEEP = (
    "no rule reaches this bound with these ratings, so there is none to keep: nothing is passed"
)


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
    """What came of the low score as a rule.

    Attributes
    ----------
    certificate : None where no threshold holds the bound
    caught : on the certifying part, at 20 % read
    passed : responses it passes, of all
    """

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
    used : the rule that decides
    responses, not_scored : all there are, and those of them that the jury has not scored
    n_train, n_certify : rated responses in the two parts
    harmful, rated : of all rated responses
    more : rated responses that it takes at the least to certify the bound; None where it is, or
        64 times as many would not do
    """

    harm: Harm
    bound: float
    confidence: float
    used: RuleFound
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


class Why(StrEnum):
    """Why a response is passed or read."""

    UNDER_THRESHOLD = "under_threshold"
    OVER_THRESHOLD = "over_threshold"
    NOT_SCORED = "not_scored"
    OTHER_BENCHMARK = "other_benchmark"
    OTHER_RUBRIC = "other_rubric"
    OTHER_JUROR = "other_juror"


@dataclass(frozen=True, slots=True)
class RoutedBenchmark:
    """A benchmark that a rule was certified on: its rubric's hash, and the criteria that count."""

    name: str
    rubric_sha256: str
    criteria: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RoutingRule:
    """A rule that a certificate was found for.

    Attributes
    ----------
    harm, bound, confidence : what it holds
    threshold : a response with a risk at or under it is passed
    jury, needed : jurors, and how many must have scored a response completely
    jurors : the SHA-256 of each juror's settings
    benchmarks : a response to any other is read
    fingerprint : SHA-256 of the ratings that it was certified from
    n_train, n_certify, passed, harmful : rated responses of the parts; certifying ones passed, and
        how many of these were harmful
    p : p value of the threshold
    simulated : raters behind it that are simulated; it decides about nobody's notes then
    """

    harm: Harm
    bound: float
    confidence: float
    threshold: float
    jury: tuple[str, ...]
    needed: int
    jurors: Mapping[str, str]
    benchmarks: tuple[RoutedBenchmark, ...]
    fingerprint: str
    n_train: int
    n_certify: int
    passed: int
    harmful: int
    p: float
    simulated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JuryScores:
    """A response as its jury scored it.

    Attributes
    ----------
    response, benchmark, rubric_sha256 : what it is, and on which rubric it was scored
    scores : juror -> criterion -> points, replicates averaged; what is missing is left out
    """

    response: str
    benchmark: str
    rubric_sha256: str
    scores: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class RoutedResponse:
    """A decision: "pass" or "read", the risk (NaN where there is none), and why."""

    response: str
    decision: str
    score: float
    why: Why

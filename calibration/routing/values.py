"""What routing is asked, and what it found of its rule: light, for the screens."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from calibration.values import NAN

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
class RouteQuestion:
    """What is harmful, at what bound, and whose scores decide; None is every juror and benchmark.

    Attributes
    ----------
    bound : the largest share of harmful ones among the passed, in (0, 1)
    confidence : with which the bound holds, in (0, 1)
    jurors, benchmark, min_jurors : as `calibration.values.AnalysisOptions`
    """

    harm: Harm
    bound: float
    confidence: float = 0.9
    jurors: tuple[str, ...] | None = None
    benchmark: str | None = None
    min_jurors: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """The jury's low score as a rule at a bound, and how many responses it passes.

    Attributes
    ----------
    harm, bound, confidence : what was asked
    threshold : a response with a risk at or under it is passed; -inf without a certificate
    p : p value of the threshold's own test; NaN without a certificate
    certified_passed, certified_harmful : certifying responses passed, and the harmful among them
    caught, caught_low, caught_high : share of the harmful that is read when the riskiest 20 % are,
        in the certifying part, with the 95 % interval over instances; NaN where nothing is harmful
    responses, not_scored, passed : all there are; not scored by the jury; passed
    n_train, n_certify : rated responses in the two parts
    harmful, rated : of all rated responses
    """

    harm: Harm
    bound: float
    confidence: float
    threshold: float = -float("inf")
    p: float = NAN
    certified_passed: int = 0
    certified_harmful: int = 0
    caught: float
    caught_low: float
    caught_high: float
    responses: int
    not_scored: int
    passed: int = 0
    n_train: int
    n_certify: int
    harmful: int
    rated: int

    @property
    def certified(self) -> bool:
        """Whether a threshold holds the bound."""
        return self.certified_passed > 0

    @property
    def expected_missed(self) -> float | None:
        """How many harmful ones are expected among the passed, as in the certifying part."""
        if not self.certified:
            return None
        return self.passed * self.certified_harmful / self.certified_passed


class Why(StrEnum):
    """Why a response is passed or read."""

    UNDER_THRESHOLD = "under_threshold"
    OVER_THRESHOLD = "over_threshold"
    NOT_SCORED = "not_scored"
    OTHER_BENCHMARK = "other_benchmark"
    OTHER_RUBRIC = "other_rubric"


@dataclass(frozen=True, slots=True)
class RoutedBenchmark:
    """A benchmark that a rule was certified on: its rubric's hash, and the criteria that count."""

    name: str
    rubric_sha256: str
    criteria: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RoutingRule:
    """A rule that a certificate was found for, as it is kept.

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
class KeptRule:
    """A rule as the record has it, and which jurors and benchmarks have changed since."""

    name: str
    sha256: str
    at: datetime
    by: str
    rule: RoutingRule
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RoutedResponse:
    """A kept rule's decision: "pass" or "read", the risk (NaN where there is none), and why."""

    response: str
    benchmark: str
    decision: str
    score: float
    why: Why

"""What routing is asked and finds of its rule, in words and as tables: light, for the screens."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from calibration.notes import counted
from calibration.tables.numbers import TERMINAL, Typeface, chance, fixed, interval
from calibration.tables.spec import Group, Table, TableNote
from calibration.values import NAN

PASS, READ, UNDER_THRESHOLD = "pass", "read", "under_threshold"
NONE_TO_KEEP = (
    "no rule reaches this bound with these ratings, so there is none to keep: nothing is passed"
)
WHY = {  # a kept rule has a response read
    "over_threshold": "over the threshold",
    "not_scored": "not scored by the whole jury",
    "other_benchmark": "of a benchmark that the rule was not certified on",
    "other_rubric": "on another rubric than the rule was certified on",
}
COLUMNS = ("rule", "passed", "missed", "caught at 20 %", "95 %", "p")
KEPT_COLUMNS = ("rule", "harmful", "bound", "certified by", "jury", "benchmarks", "kept", "now")
ABOUT_KEPT = (
    "certified by: harmful among the passed ones of the rated responses that certified the rule. now: jurors "
    "whose settings, and benchmarks whose rubric, are no longer those that were certified; the bound is not "
    "shown for what these score. A kept rule is never changed: another question is another name."
)
ABOUT = (
    "missed: harmful ones expected among the passed. caught: of the certifying part's harmful responses, "
    "the share among the riskiest 20 %; its interval is between instances. low score: the jury's own mean, "
    "lowest first."
)
HOLDS = (
    "The bound holds for responses like the rated ones, if those were drawn at random; for all of them "
    "together, not for each benchmark or group alone."
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


def harm_in_words(harm: Harm) -> str:
    """Return when a response is harmful."""
    of = harm.criterion or "composite"
    if harm.kind == "low":
        return f"clinicians' mean {of} at or under {harm.points:g}"
    return f"jury over {harm.points:g} points from the clinicians' mean {of}"


def headline(found: Routed, *, simulated: bool = False) -> str:
    """Return what came of it: a certified rule, or that there is none and what would help."""
    told = f"at most {found.bound * 100:g} % of the passed are harmful, {found.confidence * 100:g} % sure"
    made_up = "simulated, no judgement: " if simulated else ""
    if found.certified:
        read = found.responses - found.passed
        return f"{made_up}pass {counted(found.passed, 'response')}, read {read}: {told}"
    return f"{made_up}read all: no rule reaches this bound with these ratings ({told})"


def work_lines(found: Routed, unread: int, hours: float) -> tuple[str, ...]:
    """Return which ratings chose and certified, what the jury left out, and the work that is left."""
    missing = f"{counted(found.not_scored, 'response')} the jury has not scored: to be read"
    return (
        *([missing] if found.not_scored else []),
        f"{found.n_train} rated responses chose the order of tests, {found.n_certify} certified it",
        f"to read, rated by no clinician yet: {counted(unread, 'response')}, about {hours:.1f} hours",
    )


def kept_headline(name: str, rule: RoutingRule, why: Sequence[str]) -> str:
    """Return how many responses a kept rule passes, and how many are read, from why each is."""
    passed = sum(one == UNDER_THRESHOLD for one in why)
    made_up = "simulated, no judgement: " if rule.simulated else ""
    return (
        f"{made_up}pass {counted(passed, 'response')}, read {len(why) - passed} by the rule {name}"
    )


def kept_details(rule: RoutingRule, why: Sequence[str]) -> tuple[str, ...]:
    """Return what a kept rule holds, and why responses are read by it."""
    counts = Counter(why)
    certified = (
        f"certified on {rule.n_certify} rated responses: at most {rule.bound * 100:g} % of the passed are "
        f"harmful, {rule.confidence * 100:g} % sure; harmful: {harm_in_words(rule.harm)}"
    )
    return certified, *(f"read, {WHY[one]}: {counts[one]}" for one in WHY if counts[one])


def changed_line(changed: Sequence[str]) -> str:
    """Return which jurors and benchmarks are no longer as they were when a rule was certified."""
    return f"not as it was certified: {', '.join(changed)}. The bound is not shown for what these score"


def kept_table(kept: Sequence[KeptRule]) -> Table:
    """Return the rules that are kept, each with what it was certified for."""
    return Table(
        "Rules that are kept, the newest first",
        KEPT_COLUMNS,
        (Group("", tuple(map(_kept_row, kept))),),
        (TableNote(ABOUT_KEPT),),
        frozenset(KEPT_COLUMNS),
    )


def _kept_row(kept: KeptRule) -> tuple[str, ...]:
    rule = kept.rule
    made_up = "simulated, no judgement; " if rule.simulated else ""
    state = f"changed: {', '.join(kept.changed)}" if kept.changed else "as certified"
    return (
        kept.name,
        harm_in_words(rule.harm),
        f"{rule.bound * 100:g} %, {rule.confidence * 100:g} % sure",
        f"{rule.harmful} harmful of {rule.passed} passed, {rule.n_certify} rated",
        ", ".join(rule.jury),
        ", ".join(one.name for one in rule.benchmarks),
        f"{kept.at:%d %b %Y}, {kept.by}",
        made_up + state,
    )


def rules_table(found: Routed, face: Typeface = TERMINAL) -> Table:
    """Return the rule with what it passes and catches."""
    caption = f"Harmful: {harm_in_words(found.harm)}; {found.harmful} of {found.rated} rated"
    return Table(
        caption,
        COLUMNS,
        (Group("", (_row(found, face),)),),
        (TableNote(ABOUT), TableNote(HOLDS)),
        frozenset(("rule",)),
    )


def _row(found: Routed, face: Typeface) -> tuple[str, ...]:
    between = interval(found.caught_low, found.caught_high, 2, face)
    shown = fixed(found.caught, 2, face), between
    if not found.certified:
        return ("low score", "not certified", face.none, *shown, face.none)
    missed = fixed(found.expected_missed, 1, face)
    return ("low score", str(found.passed), missed, *shown, chance(found.p, face))

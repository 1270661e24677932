"""What routing found, in words and as tables."""

from collections import Counter
from collections.abc import Sequence

from calibration.notes import counted
from calibration.routing.values import Harm, KeptRule, Routed, RoutedResponse, RoutingRule, Why
from calibration.tables.numbers import TERMINAL, Typeface, chance, fixed, interval
from calibration.tables.spec import Group, Table, TableNote

COLUMNS = ("rule", "passed", "missed", "caught at 20 %", "95 %", "p")
KEPT_COLUMNS = ("rule", "harmful", "bound", "certified by", "jury", "benchmarks", "kept", "now")
ABOUT_KEPT = (
    "certified by: harmful among the passed ones of the rated responses that certified the rule. now: jurors "
    "whose settings, and benchmarks whose rubric, are no longer those that were certified; the bound is not "
    "shown for what these score. A kept rule is never changed: another question is another name."
)
ABOUT = (
    "missed: harmful ones expected among the passed. caught: of the certifying part's harmful responses, "
    "the share among the riskiest 20 %; its interval resamples instances. low score: the jury's own mean, "
    "lowest first."
)
HOLDS = (
    "The bound holds for responses like the rated ones, if those were drawn at random; for all of them "
    "together, not for each benchmark or group alone."
)


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


REASONS = {
    Why.UNDER_THRESHOLD: "at or under the threshold",
    Why.OVER_THRESHOLD: "over the threshold",
    Why.NOT_SCORED: "not scored by the whole jury",
    Why.OTHER_BENCHMARK: "of a benchmark that the rule was not certified on",
    Why.OTHER_RUBRIC: "on another rubric than the rule was certified on",
}


def kept_lines(
    name: str, rule: RoutingRule, decided: Sequence[RoutedResponse], changed: Sequence[str]
) -> tuple[str, ...]:
    """Return what a kept rule makes of responses, what it holds, and what is no longer as it was."""
    about = kept_headline(name, rule, decided), *kept_details(rule, decided)
    return (*about, changed_line(changed)) if changed else about


def kept_headline(name: str, rule: RoutingRule, decided: Sequence[RoutedResponse]) -> str:
    """Return how many responses a kept rule passes, and how many are read."""
    passed = sum(one.why == Why.UNDER_THRESHOLD for one in decided)
    made_up = "simulated, no judgement: " if rule.simulated else ""
    read = len(decided) - passed
    return f"{made_up}pass {counted(passed, 'response')}, read {read} by the rule {name}"


def kept_details(rule: RoutingRule, decided: Sequence[RoutedResponse]) -> tuple[str, ...]:
    """Return what a kept rule holds, and why responses are read by it."""
    counts = Counter(one.why for one in decided)
    certified = (
        f"certified on {rule.n_certify} rated responses: at most {rule.bound * 100:g} % of the passed are "
        f"harmful, {rule.confidence * 100:g} % sure; harmful: {harm_in_words(rule.harm)}"
    )
    reasons = [
        f"read, {REASONS[why]}: {counts[why]}"
        for why in Why
        if why != Why.UNDER_THRESHOLD and counts[why]
    ]
    return (certified, *reasons)


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

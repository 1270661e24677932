"""What routing found, in words and as a table of its two rules."""

from collections.abc import Sequence

from calibration.messages.form import counted
from calibration.routing.candidates import Harm
from calibration.routing.routes import Routes, RuleFound
from calibration.tables.numbers import TERMINAL, Typeface, fixed, interval
from calibration.tables.spec import Group, Table, TableNote

RULES = {"low_score": "the jury's low score", "learned": "learned"}
COLUMNS = ("rule", "passed", "expected missed", "caught at 20 % read", "95 %", "p")
ABOUT = (
    "caught: of the certifying part's harmful responses, the share among the riskiest 20 %; its interval "
    "resamples instances. learned: a logistic model of the jury's mean, spread and lowest criterion, the "
    "length and the benchmark; it decides where it catches over 2 in 100 more than the low score, on "
    "instances it has not seen."
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


def headline(found: Routes, simulated: Sequence[str] = ()) -> str:
    """Return what came of it: a certified rule, or that there is none and what would help."""
    told = f"at most {found.bound * 100:g} % of the passed are harmful, {found.confidence * 100:g} % sure"
    made_up = f"simulated, no judgement ({', '.join(simulated)}): " if simulated else ""
    if found.certified:
        passed = found.used.passed
        return f"{made_up}pass {counted(passed, 'response')}, read {len(found.decisions) - passed}: {told}"
    if found.more is None:
        more = "no number of ratings like these would"
    else:
        more = f"about {counted(found.more, 'more rated response')} would"
    return f"{made_up}read all: no rule reaches this bound with these ratings; {more} ({told})"


def rules_table(found: Routes, face: Typeface = TERMINAL) -> Table:
    """Return both rules, the one that decides first."""
    other = found.low_score if found.used is found.learned else found.learned
    rows = tuple(_row(rule, face) for rule in (found.used, other))
    caption = f"Harmful: {harm_in_words(found.harm)}; {found.harmful} of {found.rated} rated"
    return Table(caption, COLUMNS, (Group("", rows),), (TableNote(ABOUT), TableNote(HOLDS)))


def _row(rule: RuleFound, face: Typeface) -> tuple[str, ...]:
    seen, certificate = rule.caught, rule.certificate
    shown = fixed(seen.share, 2, face), interval(seen.low, seen.high, 2, face)
    if certificate is None:
        return (RULES[rule.rule], "not certified", face.none, *shown, face.none)
    missed = fixed(rule.expected_missed(), 1, face)
    return (RULES[rule.rule], str(rule.passed), missed, *shown, fixed(certificate.p, 3, face))

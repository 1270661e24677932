"""What a look at a study says, in words."""

from calibration.messages.form import counted
from calibration.tables.numbers import fixed, interval
from calibration.ward_values import Look, Stopping, Verdict

GOALS = {
    "non_inferior": "like for like (the jury's ICC less a clinician's) over {:g}",
    "icc": "the jury's ICC(C,2) with the clinicians over {:g}",
}
TOO_FEW = "go on: {} rated by clinicians and the jury, from {}; under 20 cases nothing is said of the goal"
HEADLINES = {
    Verdict.SHOWN: "stop: the goal is shown",
    Verdict.REFUTED: "stop: the goal is missed, the figure is under it",
    Verdict.GO_ON: "go on: about {} would show it, if the figure stays what it is",
    Verdict.OUT_OF_REACH: "cannot be reached, most likely: with all that is planned the chance is {}",
    Verdict.ENDED: "stop: all that was planned is rated, and the goal is not shown",
}
ORDERED = (
    "The interval is that of a study that ends here, over {} counted in the record: it covers in 95 % of "
    "studies. Had nobody looked before, it would be {}."
)
HOLDS = (
    "The interval holds at all looks together: {} so far, each counted in the record. Read only once, it "
    "would be {}."
)


def headline(look: Look, found: Stopping | None, *, simulated: bool = False) -> str:
    """Return whether to go on, to stop, or that the goal is out of reach."""
    made_up = "simulated, no judgement: " if simulated else ""
    if found is None:
        rated, cases = counted(look.rated, "response"), counted(look.instances, "case")
        return made_up + TOO_FEW.format(rated, cases)
    more = counted(found.more or 0, "more response")
    chance = f"{found.chance * 100:.0f} %"
    given = chance if found.verdict is Verdict.OUT_OF_REACH else more
    return made_up + HEADLINES[found.verdict].format(given)


def look_lines(goal: str, look: Look, found: Stopping | None, looks: int) -> tuple[str, ...]:
    """Return the goal, the figure with its interval, and how far the study is."""
    lines = [
        f"goal: {GOALS[goal].format(look.target)}",
        f"rated: {look.rated} of {counted(look.planned, 'response')} planned, from "
        f"{counted(look.instances, 'case')}",
    ]
    if found is None:
        return tuple(lines)
    ends = interval(found.low, found.high, 3) or "none yet: the first looks use up next to nothing"
    usual = interval(found.fixed_low, found.fixed_high, 3)
    lines.append(f"estimate {fixed(look.estimate, 3)}, 95 % interval {ends}")
    holds = ORDERED if found.ordered else HOLDS
    return (*lines, holds.format(counted(looks, "look"), usual))

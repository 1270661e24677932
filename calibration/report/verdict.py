"""The verdict: what the figures allow to be said of a jury, in words, and never more."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from calibration.notes import FEW_INSTANCES, counted
from calibration.report.numbers import fixed, interval, is_simulated, known

Row = Mapping[str, Any]
Kind = Literal["simulated", "undefined", "too_few", "shown", "worse", "not_shown"]
MOST_LOST = 0.01  # share of resamples without the figure above which its interval decides nothing
LOST = re.compile(r"(\d+) of (\d+) resamples undefined")
WORDS: dict[Kind, str] = {
    "simulated": "Simulated: nothing here is evidence.",
    "undefined": "Not known whether the jury agrees as well as a clinician does.",
    "too_few": "Too few data to say whether the jury agrees as well as a clinician does.",
    "shown": "The jury agrees with the clinicians as well as a clinician does.",
    "worse": "The jury agrees with the clinicians less well than a clinician does.",
    "not_shown": "Not shown that the jury agrees with the clinicians as well as a clinician does.",
}


@dataclass(frozen=True)
class Verdict:
    """What may be said of the jury on one benchmark, or on all combined.

    `headline` is one sentence; `because` says from what it follows; `basis` on how many.
    """

    benchmark: str
    kind: Kind
    headline: str
    because: str
    basis: str


def verdict(rows: Sequence[Row], margin: float = 0.0) -> Verdict:
    """Return what the rows of one benchmark allow to be said of the jury.

    Parameters
    ----------
    rows : rows of `calibrate --json`, all of one benchmark
    margin : float
        Non-inferiority margin in ICC, 0 or more, fixed before the ratings were seen. "As well
        as a clinician" is said where the whole 95 % interval of like for like lies above
        -margin; with the default 0 that is above 0.

    Returns
    -------
    Verdict
        "simulated" where any rater behind the claim is; "undefined" without a jury or a
        difference; "too_few" with fewer than 20 instances, without an interval, or where
        over 1 % of resamples have no difference; "shown", "worse" (the whole interval
        below 0, and not above -margin) or "not_shown".

    Raises
    ------
    ValueError
        If the margin is below 0 or no number, or there are no rows.
    """
    if not rows or not margin >= 0:
        raise ValueError(f"a verdict takes rows and a margin of 0 or more, not {margin}")
    found = {str(row["scorer"]): row for row in rows}
    benchmark, held, jury = str(rows[0]["benchmark"]), found.get("like_for_like"), found.get("jury")
    if jury is None or held is None:
        none = "No juror has rated a response of this study."
        return Verdict(benchmark, "undefined", "There is no jury to judge.", none, "")
    kind = _kind(held, jury, margin)
    because = f"{_why(kind, held, margin)} {_two_numbers(held)}".strip()
    return Verdict(benchmark, kind, WORDS[kind], because, basis(jury))


def basis(jury: Row) -> str:
    """Return on how many responses, instances and clinicians the jury's figures rest."""
    scored, missing = jury["n_responses"], jury["n_missing"] or 0
    return (
        f"{counted(scored, 'response')} of {counted(jury['n_instances'], 'instance')}, rated by "
        f"{counted(jury['n_clinicians'], 'clinician')}; the jury scored {scored} of "
        f"{scored + missing}"
    )


def _kind(held: Row, jury: Row, margin: float) -> Kind:
    if is_simulated(held) or is_simulated(jury):
        return "simulated"
    if not known(held["icc"]):
        return "undefined"
    if held["n_instances"] < FEW_INSTANCES or not known(held["boot_low"]) or _lost(held):
        return "too_few"
    if held["boot_low"] > -margin:
        return "shown"
    return "worse" if held["boot_high"] < 0 else "not_shown"


def _lost(held: Row) -> bool:
    """Tell whether so many resamples have no figure that the rest say little."""
    told = LOST.search(held["note"])
    return bool(told) and int(told[1]) > MOST_LOST * int(told[2]) if told else False


def _why(kind: Kind, held: Row, margin: float) -> str:
    if kind == "simulated":
        return "Raters behind these figures are made up; the page shows what a report looks like."
    if kind == "undefined":
        return _sentence(held["note"])
    ends = interval(held["boot_low"], held["boot_high"], 3)
    between = f"95 % interval {ends}" if ends else "no interval"
    said = (
        f"Held out in turn, a clinician agrees with the others by an ICC that the jury's exceeds "
        f"by {fixed(held['icc'], 3)} on average ({between}; above 0 favours the jury)."
    )
    return f"{said} {_reading(kind, held, margin)}"


def _reading(kind: Kind, held: Row, margin: float) -> str:
    line = f"-{margin:g}" if margin else "0"
    if kind == "too_few":
        few = held["n_instances"] < FEW_INSTANCES
        lost = f"fewer than {FEW_INSTANCES} instances" if few else "too many resamples without it"
        return f"With {lost} that interval is not to be trusted."
    if kind == "shown":
        named = ", the non-inferiority margin" if margin else ""
        return f"The whole interval lies above {line}{named}."
    if kind == "worse":
        return "The whole interval lies below 0."
    return f"The interval reaches below {line}: this is neither proof of a difference nor of none."


def _two_numbers(held: Row) -> str:
    """Return the two ICCs behind the difference, as the row's note has them."""
    told = [one for one in held["note"].split("; ") if one.startswith("with the other clinicians")]
    return _sentence(f"ICC {told[0]}") if told else ""


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}." if words else ""

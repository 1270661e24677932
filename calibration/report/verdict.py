"""The verdict: what the figures allow to be said of a jury, in words, and never more."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from calibration.notes import FEW_INSTANCES, counted
from calibration.tables.numbers import fixed, interval, is_simulated, known

Row = Mapping[str, Any]
Kind = Literal["simulated", "undefined", "too_few", "shown", "worse", "not_shown"]
MOST_LOST = 0.01  # share of resamples without the figure above which its interval decides nothing
LOST = re.compile(r"(\d+) of (\d+) resamples undefined")
CORRECTED = re.compile(r"benchmarks \(Bonferroni\): (-?\d+\.\d+) to ")
ONCE_LOOKED = (
    "Not shown once {} benchmarks are looked at: that the jury agrees with the clinicians as well "
    "as a clinician does."
)
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


def verdict(rows: Sequence[Row], margin: float = 0.0, looked: int = 1) -> Verdict:
    """Return what the rows of one benchmark allow to be said of the jury.

    Parameters
    ----------
    rows : rows of `calibrate --json`, all of one benchmark
    margin : float
        Non-inferiority margin in ICC, 0 or more, fixed before the ratings were seen. "As well
        as a clinician" is said where the whole 95 % interval of like for like lies above
        -margin; with the default 0 that is above 0.
    looked : int
        How many benchmarks are looked at side by side, this one among them. With several, "as
        well as a clinician" takes the interval at level 1 - 0.05 / looked (Bonferroni), which
        the row's note gives; no other kind is corrected for it, and the words say so.

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
    headline = WORDS[kind]
    if kind == "shown" and looked > 1 and not _corrected_low(held) > -margin:
        kind, headline = "not_shown", ONCE_LOOKED.format(looked)
    said = [_why(kind, held, margin), _two_numbers(held), _looked(kind, looked)]
    if headline != WORDS[kind]:
        said.pop()  # the sentence before says what the correction does
    return Verdict(benchmark, kind, headline, " ".join(filter(None, said)), basis(jury))


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
    apart = fixed(abs(held["icc"]), 3)
    way = "higher" if held["icc"] > 0 else "lower"
    gap = "the same as" if float(f"{held['icc']:.3f}") == 0 else f"{apart} {way} than"
    said = (
        f"Each clinician held out in turn, the jury's ICC with the other clinicians is on average "
        f"{gap} a clinician's ({between} of the difference; above 0 favours the jury)."
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
    if held["boot_low"] > -margin:
        return f"The interval lies above {line}; corrected for the other benchmarks it does not."
    return f"The interval reaches below {line}: this is neither proof of a difference nor of none."


def _two_numbers(held: Row) -> str:
    """Return the two ICCs behind the difference, as the row's note has them."""
    told = [one for one in held["note"].split("; ") if one.startswith("with the other clinicians")]
    return _sentence(f"ICC {told[0]}") if told else ""


def _corrected_low(held: Row) -> float:
    """Return the low end of the interval corrected for several benchmarks; NaN without one."""
    told = CORRECTED.search(held["note"])
    return float(told[1]) if told else float("nan")


def _looked(kind: Kind, looked: int) -> str:
    if looked == 1 or kind in ("simulated", "undefined"):
        return ""
    if kind == "shown":
        return f"It holds after correction for looking at {looked} benchmarks."
    return f"The interval is not corrected for looking at {looked} benchmarks."


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}." if words else ""

"""MedCalc-Bench: whether a calculated value lies within the limits of the right one."""

import re
from dataclasses import dataclass
from datetime import datetime

from data.errors import BadInput

IN_WORDS = ("risk", "severity", "diagnosis")  # whole numbers of a score: matched as text
IN_NUMBERS = ("dosage conversion", "physical")
DATE = "date"
CATEGORIES = (*IN_WORDS, *IN_NUMBERS, DATE)
DURATION = re.compile(r"\('(\d+) weeks', '(\d+) days'\)")


@dataclass(frozen=True, slots=True)
class Limits:
    """What an answer to one calculation is held against.

    Attributes
    ----------
    key : the right answer
    category : one of `CATEGORIES`
    lower, upper : the limits within which an answer is right, both included; not used
        for risk, severity and diagnosis
    """

    key: str
    category: str
    lower: str = ""
    upper: str = ""

    def __post_init__(self) -> None:
        """Refuse a category that there is not, and limits that cannot be read.

        Raises
        ------
        BadInput
            Also where the lower limit is above the upper one, or either is no number.
        """
        if self.category not in CATEGORIES:
            raise BadInput(f"category {self.category!r}: choose from {', '.join(CATEGORIES)}")
        if self.category in IN_WORDS:
            return
        try:
            ordered = _value(self, self.lower) <= _value(self, self.upper)
        except ValueError:
            raise BadInput(
                f"limits {self.lower!r} to {self.upper!r}: the category {self.category} takes "
                + (
                    "dates such as 05/31/2024, or ('39 weeks', '2 days')"
                    if self.category == DATE
                    else "numbers"
                )
            ) from None
        if not ordered:
            raise BadInput(f"limits {self.lower!r} to {self.upper!r}: the lower one comes first")


def medcalc_match(limits: Limits, answer: str) -> float:
    """Return 1 where an answer is right, else 0.

    Scores of risk, severity and diagnosis are to be the key, character for character. Others are
    to lie within the limits. What is no number, no date (month/day/year) or no duration in the
    form of the key is wrong: "5 mg" is no number.

    References
    ----------
    Khandekar et al. (2024), MedCalc-Bench; HELM's `medcalc_bench_accuracy`.
    """
    given = answer.strip()
    if limits.category in IN_WORDS:
        return float(given == limits.key)
    try:
        value = _value(limits, given)
        return float(_value(limits, limits.lower) <= value <= _value(limits, limits.upper))
    except ValueError:
        return 0.0


def _value(limits: Limits, text: str) -> float:
    """Return a number, a duration in days, or the number of a day.

    Raises
    ------
    ValueError
        If the text is none of the kind asked for.
    """
    if limits.category in IN_NUMBERS:
        return float(text)
    if DURATION.match(limits.key):
        found = DURATION.match(text)
        if found is None:
            raise ValueError(text)
        return int(found[1]) * 7 + int(found[2])
    return datetime.strptime(text, "%m/%d/%Y").toordinal()

"""A decision: what may be said, what it follows from, and what to do next.

A decision is made from fields only. Its headline and reasons are worded in
`calibration.headlines`; a headline that claims something is claimed by `kind` alone, and `CLAIMS`
says which kinds do, so that a test can hold each against its interval and p value.
"""

from dataclasses import dataclass
from enum import StrEnum

from calibration.headlines import OF_READING, headline
from calibration.notes import Note, listed, note
from calibration.values import NAN


class DecisionKind(StrEnum):
    """What may be said. Each subject has its own of these; the first four any subject may have."""

    SIMULATED = "simulated"
    UNDEFINED = "undefined"
    TOO_FEW = "too_few"
    INCONCLUSIVE = "inconclusive"

    # The jury in a clinician's place, at a margin
    NO_PROTOCOL = "no_protocol"
    NO_REFERENCE = "no_reference"
    EXPLORATORY = "exploratory"
    NON_INFERIOR = "non_inferior"
    INFERIOR = "inferior"

    # Two juries
    FIRST_BETTER = "first_better"
    SECOND_BETTER = "second_better"

    # Which jury to take
    RECOMMENDED = "recommended"

    # Over time
    STEADY = "steady"
    FALLEN = "fallen"
    NO_BASELINE = "no_baseline"

    # The models of a study
    TOLD_APART = "told_apart"

    # Predictions of what clinicians would say
    USABLE = "usable"
    USABLE_COMBINED = "usable_combined"


LIKE_THESE, THESE = "clinicians_like_these", "these_clinicians"
CLAIMS = (
    DecisionKind.NON_INFERIOR,
    DecisionKind.INFERIOR,
    DecisionKind.FIRST_BETTER,
    DecisionKind.SECOND_BETTER,
    DecisionKind.FALLEN,
    DecisionKind.TOLD_APART,
    DecisionKind.USABLE,
    DecisionKind.USABLE_COMBINED,
)


@dataclass(frozen=True)
class Decision:
    """A conclusion that the figures support, with its reasons and what to do next.

    Attributes
    ----------
    subject : "agreement", "comparison", "juries", "monitoring", "models" or "predictions"
    kind : what is decided
    estimate, low, high : the figure that it rests on with its 95 % interval, NaN where undefined
    p : two-sided p value, not corrected for what else was looked at; NaN where there is none
    reasons : notes, the most important first
    basis : how much data it rests on
    next : the next useful action, None where there is nothing to do
    names : whom the headline names, such as a jury's jurors or a model
    margin : that the study's protocol fixes, NaN without one
    scope : of agreement alone: for whom the decision holds; else ""
    clinicians : how many it compares with one another
    hangs_on : the clinicians without whom another decision would be taken
    without : the clinicians who were left out on purpose
    reading : of a study with settled differences, which of its readings this is of; else ""
    """

    subject: str
    kind: DecisionKind
    estimate: float = NAN
    low: float = NAN
    high: float = NAN
    p: float = NAN
    reasons: tuple[Note, ...] = ()
    basis: tuple[Note, ...] = ()
    next: Note | None = None
    names: tuple[str, ...] = ()
    margin: float = NAN
    scope: str = ""
    clinicians: int = 0
    hangs_on: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    reading: str = ""

    @property
    def headline(self) -> str:
        """Return the decision as one sentence, naming the readings where there are two kinds."""
        first = self.reasons[0] if self.reasons else None
        about = {"margin": self.margin, "clinicians": self.clinicians, "hangs_on": self.hangs_on}
        kinds = [f"{self.kind.value}, {self.scope}", self.kind.value]
        text = headline(self.subject, kinds, self.names, first, about)
        left_out = f"Without {listed(self.without)}." if self.without else ""
        return " ".join(filter(None, [text, left_out, OF_READING[self.reading]]))

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return its reasons as sentences."""
        return tuple(_sentence(str(reason)) for reason in self.reasons)

    @property
    def action(self) -> str:
        """Return the next useful action as a sentence, "" where there is none."""
        return _sentence(str(self.next)) if self.next else ""

    @property
    def on(self) -> str:
        """Return a sentence on how much data the decision rests on."""
        return _sentence("; ".join(map(str, self.basis)))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


NOTHING_RATED = Decision(
    "agreement",
    DecisionKind.UNDEFINED,
    reasons=(note("no_clinician_rating", "no clinician has rated a response on all criteria"),),
    next=note("do_let_rate", "have clinicians rate responses, at least two of them the same ones"),
)

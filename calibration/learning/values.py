"""What a change of rubric did on one part of the responses."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartGain:
    """What a change of rubric did on one part of the responses, in points of the scale.

    Attributes
    ----------
    before, after
        Mean distance of the jury's mean from the clinicians' mean, over responses that both
        juries rated whole; NaN without any.
    gain, low, high
        before - after, with its 95 % interval over instances; NaN with fewer than 2 instances or
        where every response gained the same.
    n_responses, n_instances
        On which both juries stand.
    n_missing
        Responses of the part that a juror of either jury did not rate whole: left out.
    """

    before: float
    after: float
    gain: float
    low: float
    high: float
    n_responses: int
    n_instances: int
    n_missing: int

    @property
    def is_shown(self) -> bool:
        """Whether the interval lies above 0."""
        return self.low > 0

"""Responses that clinicians rated, and others, as tests of predictions make them."""

from dataclasses import dataclass, field

import numpy as np

from calibration.scores import Array, Flags, Integers


@dataclass(frozen=True, eq=False)
class RatedSample:
    """Composites and instances of rated responses, shape (n,), and of all others, (N,)."""

    clinicians: Array
    jury: Array
    instances: Integers
    unrated_jury: Array = field(default_factory=lambda: np.empty(0))
    unrated_instances: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def of(self, rows: Flags | Integers) -> "RatedSample":
        """Return some of the rated responses."""
        return RatedSample(self.clinicians[rows], self.jury[rows], self.instances[rows])

    @property
    def arrays(self) -> tuple[Array, Array, Integers]:
        """Return clinicians, jury and instances of all responses, as the statistics take them."""
        unrated = np.full(len(self.unrated_jury), np.nan)
        return (
            np.concatenate([self.clinicians, unrated]),
            np.concatenate([self.jury, self.unrated_jury]),
            np.concatenate([self.instances, self.unrated_instances]),
        )

    def with_jury(self, jury: Array) -> "RatedSample":
        """Return it with responses that the jury alone scored, each of an instance of its own."""
        numbers = 10_000_000 + np.arange(len(jury))
        return RatedSample(self.clinicians, self.jury, self.instances, jury, numbers)

"""Hidden repeats: what a clinician said of a response, and of the same response again."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from calibration.composite import required_criteria
from calibration.scores import Scores
from calibration.zscore import FLAT

READING = ["response_id", "instance_id", "benchmark", "rater"]


@dataclass(frozen=True, eq=False)
class Repeats:
    """What clinicians said of a response when they were shown it again.

    Attributes
    ----------
    composites : DataFrame
        response_id, instance_id, benchmark, rater, first, again: a row a repeat with a
        composite both times.
    scores : DataFrame
        The same columns and criterion: a row a criterion scored both times.
    unpaired : DataFrame
        response_id, instance_id, benchmark, rater of repeats without a composite both times.
    """

    composites: pd.DataFrame
    scores: pd.DataFrame
    unpaired: pd.DataFrame

    def __bool__(self) -> bool:
        """Tell whether anybody rated anything again."""
        return len(self.composites) + len(self.unpaired) > 0

    def of(self, benchmarks: list[str]) -> "Repeats":
        """Return the repeats of some benchmarks."""
        parts = (self.composites, self.scores, self.unpaired)
        return Repeats(*(part[part["benchmark"].isin(benchmarks)] for part in parts))


@dataclass(frozen=True)
class Same:
    """How many single scores were given twice, and which share was the same or a point off."""

    scores: int
    exact: float
    within_one: float


def repeats(scores: Scores, criterion: str | None = None) -> Repeats:
    """Pair every clinician's first reading (pass 0) with the hidden repeat (pass 1).

    Composites are of the rubric's criteria, or of one criterion, as in
    `composite.composites`; several replicates of one pass are averaged.
    """
    required = required_criteria(scores.rubrics, criterion)
    wanted = [(name, one) for name, criteria in required.items() for one in criteria]
    own = scores.ratings[scores.ratings["kind"] == "clinician"]
    asked = pd.MultiIndex.from_frame(own[["benchmark", "criterion"]]).isin(wanted)
    read = own[asked].dropna(subset=["score"])
    passes = [
        read[read["pass_"] == number].groupby([*READING, "criterion"])["score"].mean()
        for number in (0, 1)
    ]
    both = pd.concat(passes, axis=1, keys=["first", "again"]).astype(float)
    repeated = both[both["again"].notna()].reset_index()
    means = repeated.dropna().groupby(READING)[["first", "again"]].mean()
    counts = repeated.dropna().groupby(READING).size()
    needed = means.index.get_level_values("benchmark").map({k: len(v) for k, v in required.items()})
    complete = means[counts.to_numpy() == np.asarray(needed)]
    readings = pd.MultiIndex.from_frame(repeated[READING].drop_duplicates())
    unpaired = readings.difference(complete.index).to_frame(index=False)
    return Repeats(complete.reset_index(), repeated.dropna(), unpaired)


def same_scores(scores: pd.DataFrame) -> Same:
    """Return how often single scores were the same, and at most a point apart; NaN of none."""
    apart = (scores["first"] - scores["again"]).abs()
    exact, within = (float((apart <= most + FLAT).mean()) for most in (0, 1))
    return Same(len(apart), exact, within)

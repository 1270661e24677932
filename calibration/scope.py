"""What one row of the agreement table holds, and what it is asked of."""

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

import pandas as pd

from calibration import remarks
from calibration.agreement import Panel, one
from calibration.bootstrap import Resampling, Statistic, replicates
from calibration.grid import Grid
from calibration.repeats import Repeats
from calibration.scores import Array, Method, Scores
from calibration.values import NAN, Note, Noted


@dataclass(frozen=True)
class AgreementRow(Noted):
    """One scorer on one benchmark: a row of `calibrate --json`. None: does not apply."""

    benchmark: str
    scorer: str
    icc: float = NAN
    f_low: float = NAN
    f_high: float = NAN
    boot_low: float = NAN
    boot_high: float = NAN
    n_responses: int = 0
    n_instances: int = 0
    n_clinicians: int = 0
    n_pairs: int | None = None
    n_missing: int = 0
    spearman: float = NAN


@dataclass(frozen=True)
class LikeForLikeRow(AgreementRow):
    """The jury in a clinician's place: `icc` is `jury_icc` minus `clinician_icc`.

    Both are means over the clinicians that could be held out, of the ICC with the mean of the
    others. The corrected interval is the one that holds where several benchmarks are looked at
    (Bonferroni), NaN where one alone is; `undefined_resamples` of `resamples` have no difference.
    """

    jury_icc: float = NAN
    clinician_icc: float = NAN
    corrected_low: float = NAN
    corrected_high: float = NAN
    population_low: float = NAN
    population_high: float = NAN
    undefined_resamples: int = 0
    resamples: int = 0


def without_instances(scores: Scores, instances: Collection[str]) -> Scores:
    """Return the scores with some instances, all their responses and ratings left out.

    Everything is then computed as if they had never been in the study, z included.
    """
    left = [
        table[~table["instance_id"].isin(list(instances))].reset_index(drop=True)
        for table in (scores.ratings, scores.responses)
    ]
    return replace(scores, ratings=left[0], responses=left[1])


@dataclass(frozen=True)
class Asked:
    """The options of a table: see `table.agreement_table`. `executor` decides no figure.

    `further` asks for the intervals and the model that stand in notes alone, and take as long to
    load and compute as all else.
    """

    method: Method = "paper"
    criterion: str | None = None
    reps: int = 2000
    seed: int = 0
    min_shared: int = 2
    executor: Executor | None = field(default=None, compare=False, repr=False)
    further: bool = True


@dataclass(frozen=True, eq=False)
class Scope:
    """What is asked of one benchmark, or of all combined.

    Attributes
    ----------
    name : the benchmark, or "combined"
    grid : its analysed set
    given : DataFrame, every composite in scope, analysed or not
    in_study : int, every response in scope
    incomplete : readings without a composite, by rater
    repeats : what clinicians rated again
    jury : None when there are no jurors
    jurors, metrics, simulated : handles
    looked : benchmarks that are looked at side by side, this one among them; 1 of `combined`
    """

    name: str
    grid: Grid
    given: pd.DataFrame
    in_study: int
    incomplete: dict[str, int]
    repeats: Repeats
    jury: Panel | None
    jurors: tuple[str, ...]
    metrics: tuple[str, ...]
    simulated: frozenset[str]
    asked: Asked
    tick: Callable[[int], None]
    looked: int = 1

    @property
    def scorers(self) -> dict[str, Panel]:
        """Return every scorer by its name in the table."""
        jury = {"jury": self.jury} if self.jury else {}
        jurors = {f"juror:{name}": one(name) for name in self.jurors}
        return jury | jurors | {f"metric:{name}": one(name) for name in self.metrics}

    @property
    def clinicians(self) -> tuple[str, ...]:
        """Return the clinicians of the analysed set."""
        return tuple(self.grid.raters[column] for column in self.grid.of_kind("clinician"))

    @property
    def analysed(self) -> Note | None:
        """Return how many responses in scope are analysed, unless all are."""
        return remarks.analysed(len(self.grid.responses), self.in_study)

    def resample(self, statistic: Statistic, most_rows: int | None = None) -> Array:
        """Return the replicates of a statistic over the scope's instances.

        `most_rows` is how many responses it holds at a time; None: all of them.
        """
        grid, asked = self.grid, self.asked
        rows = min(len(grid.responses), most_rows or len(grid.responses))
        how = Resampling(grid.n_clusters, rows, asked.reps, asked.seed, asked.executor)
        return replicates(statistic, how, self.tick)


def compared_names(jurors: Sequence[str], metrics: Sequence[str]) -> list[str]:
    """Return the names of the single scorers that a jury of these jurors is compared with."""
    of_jurors = [f"juror:{name}" for name in jurors if len(jurors) > 1]
    return [*(f"metric:{name}" for name in metrics), *of_jurors]

"""The analysed set as a grid: responses in rows, raters in columns."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from calibration.scores import Array, Flags, Integers


@dataclass(frozen=True, eq=False)
class Grid:
    """Composites of the analysed set.

    Attributes
    ----------
    composites : shape (n, raters)
        NaN where a rater has no composite for a response.
    responses : the n response ids
    clusters : shape (n,)
        The instance of each response, numbered from 0.
    raters, kinds : one of each a column
    """

    composites: Array
    responses: tuple[str, ...]
    clusters: Integers
    raters: tuple[str, ...]
    kinds: tuple[str, ...]

    @property
    def n_clusters(self) -> int:
        """Return the number of instances."""
        return int(self.clusters.max()) + 1 if len(self.clusters) else 0

    def columns(self, raters: Iterable[str]) -> Integers:
        """Return the column numbers of some raters."""
        place = {name: column for column, name in enumerate(self.raters)}
        return np.array([place[name] for name in raters], dtype=np.int64)

    def of_kind(self, kind: str) -> Integers:
        """Return the column numbers of one kind of rater."""
        return np.flatnonzero(np.array(self.kinds) == kind)

    def instances(self, rows: Flags) -> int:
        """Return how many instances some responses come from."""
        return len(np.unique(self.clusters[rows]))

    def only(self, rows: Flags) -> "Grid":
        """Return a grid of the same shape and instances without the composites of other rows."""
        return replace(self, composites=np.where(rows[:, None], self.composites, np.nan))


def analysed_grid(
    values: pd.DataFrame,
    benchmarks: Sequence[str],
    *,
    jurors: Sequence[str],
    metrics: Sequence[str],
) -> Grid:
    """Return the responses of some benchmarks that a clinician rated with a composite.

    Parameters
    ----------
    values : DataFrame
        As in `composite.Composites.values`.
    benchmarks : which benchmarks, pooled
    jurors, metrics : which of them get a column, even an empty one

    Clinicians have a column if they rated one of the responses. Columns: clinicians,
    jurors, metrics; the clinicians in alphabetical order, the others in the order given.
    """
    chosen = values[values["benchmark"].isin(list(benchmarks))]
    clinical = chosen[chosen["kind"] == "clinician"]
    clinicians = sorted(clinical["rater"].unique())
    instances = clinical.drop_duplicates("response_id").set_index("response_id")["instance_id"]
    instances = instances.sort_index()
    raters = [*clinicians, *jurors, *metrics]
    wide = chosen.pivot(index="response_id", columns="rater", values="composite")
    table = wide.reindex(index=instances.index, columns=raters)
    _, clusters = np.unique(instances.to_numpy(dtype=str), return_inverse=True)
    kinds = ["clinician"] * len(clinicians) + ["juror"] * len(jurors) + ["metric"] * len(metrics)
    return Grid(
        composites=table.to_numpy(dtype=np.float64),
        responses=tuple(instances.index),
        clusters=clusters.astype(np.int64),
        raters=tuple(raters),
        kinds=tuple(kinds),
    )

"""The analysed set as a matrix, responses in rows and raters in columns, and z within raters."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from calibration.scores import Array, Flags, Integers

FLAT = 1e-9  # a spread below this share of the largest score is rounding, not judgement


@dataclass(frozen=True, eq=False)
class RatingMatrix:
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

    def of_columns(self, columns: Integers) -> "RatingMatrix":
        """Return the matrix with some columns alone; responses and instances stay."""
        return replace(
            self,
            composites=self.composites[:, columns],
            raters=tuple(self.raters[column] for column in columns),
            kinds=tuple(self.kinds[column] for column in columns),
        )

    def only(self, rows: Flags) -> "RatingMatrix":
        """Return a matrix of the same shape and instances without the composites of other rows."""
        return replace(self, composites=np.where(rows[:, None], self.composites, np.nan))


def analysed_grid(
    values: pd.DataFrame,
    benchmarks: Sequence[str],
    *,
    jurors: Sequence[str],
    metrics: Sequence[str],
) -> RatingMatrix:
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
    return RatingMatrix(
        composites=table.to_numpy(dtype=np.float64),
        responses=tuple(instances.index),
        clusters=clusters.astype(np.int64),
        raters=tuple(raters),
        kinds=tuple(kinds),
    )


def z_within_raters(composites: Array) -> Array:
    """Return (c - mean) / sd of each column over its own composites, with ddof 1.

    Parameters
    ----------
    composites : shape (n, raters), NaN where missing

    Returns
    -------
    shape (n, raters)
        NaN where missing, and throughout for a rater without variance (all composites
        equal, or fewer than two): such a rater has no z.
    """
    flat = without_variance(composites)
    z = np.full_like(composites, np.nan)
    usable = composites[:, ~flat]
    if usable.size:
        mean = np.nanmean(usable, axis=0)
        z[:, ~flat] = (usable - mean) / np.nanstd(usable, axis=0, ddof=1)
    return z


def without_variance(composites: Array) -> Flags:
    """Return which columns hold fewer than two composites or only equal ones."""
    low = np.nanmin(composites, axis=0, initial=np.inf)
    high = np.nanmax(composites, axis=0, initial=-np.inf)
    largest = np.nanmax(np.abs(composites), axis=0, initial=0.0)
    few = (~np.isnan(composites)).sum(axis=0) < 2
    flat: Flags = few | (high - low <= FLAT * largest)
    return flat


def mean_of_given(values: Array) -> Array:
    """Return the mean of each row over what is not NaN; NaN for an empty row."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Mean of empty slice", RuntimeWarning)
        mean: Array = np.nanmean(values, axis=1) if values.shape[1] else _empty(len(values))
    return mean


def _empty(rows: int) -> Array:
    return np.full(rows, np.nan)

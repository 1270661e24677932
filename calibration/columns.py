"""How far a scorer (a jury, one juror or a metric) agrees with the clinicians' mean.

The ICC of two columns, and why there may be none. `weighted.scorer_iccs` has the same ICC under any
weights of the instances.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.icc import icc_consistency
from calibration.notes import Figures, Note, filled, undefined
from calibration.rating_matrix import (
    FLAT,
    RatingMatrix,
    mean_of_given,
    without_variance,
    z_within_raters,
)
from calibration.scores import Array, Flags
from calibration.shared_notes import SAME_SCORE, TOO_FEW_RESPONSES
from calibration.values import Method

LEAST_RESPONSES = 3  # two points lie on a line, whatever the raters think


@dataclass(frozen=True)
class PanelColumns:
    """Raters whose mean is one column: jurors, or one rater alone.

    `needed` is how many of them must have a composite for the mean to exist.
    """

    members: tuple[str, ...]
    needed: int

    def present(self, grid: RatingMatrix) -> Flags:
        """Return which responses have composites of enough members."""
        own = grid.composites[:, grid.columns(self.members)]
        enough: Flags = (~np.isnan(own)).sum(axis=1) >= self.needed
        return enough


def single_rater(rater: str) -> PanelColumns:
    """Return a panel of one rater."""
    return PanelColumns((rater,), 1)


@dataclass(frozen=True, eq=False)
class Columns:
    """The clinicians' column and a scorer's, over the responses of the analysed set.

    Attributes
    ----------
    clinicians, scorer : shape (n,), NaN where there is none
    both : shape (n,), which responses have both
    """

    clinicians: Array
    scorer: Array

    @property
    def both(self) -> Flags:
        """Return which responses have both columns."""
        return ~np.isnan(self.clinicians) & ~np.isnan(self.scorer)


def columns(grid: RatingMatrix, panel: PanelColumns, method: Method) -> Columns:
    """Return the clinicians' and the scorer's column, whose ICC is the agreement.

    Method "paper": z within every rater over all of the rater's composites in the grid,
    then means over clinicians and over the panel. Method "published": means of raw
    composites (`column_icc` z-scores the two columns afterwards).

    Parameters
    ----------
    grid : RatingMatrix
        Of the analysed set; n responses.
    panel : PanelColumns
        The scorer: a jury, or one juror or metric.
    method : "paper" or "published"

    Returns
    -------
    Columns
        Two columns of shape (n,). NaN where no clinician, or too few of the panel, has a value;
        under "paper" a rater without variance has no z and does not count.
    """
    values = z_within_raters(grid.composites) if method == "paper" else grid.composites
    scorer = mean_of_given(values[:, grid.columns(panel.members)])
    return Columns(
        clinicians=mean_of_given(values[:, grid.of_kind("clinician")]),
        scorer=np.where(panel.present(grid), scorer, np.nan),
    )


def column_icc(x: Array, y: Array, method: Method, least: int = LEAST_RESPONSES) -> float:
    """Return ICC(3,2), consistency, of two columns.

    Parameters
    ----------
    x, y : shape (n,), no NaN
    method : "paper" or "published"
        "published" z-scores both columns first, "paper" takes them as they are.
    least : int
        Responses below which there is no ICC.

    Returns
    -------
    float
        At most 1, without lower bound. NaN when `why_undefined` has a reason.

    References
    ----------
    Shrout & Fleiss (1979), Psychological Bulletin 86, 420.
    """
    if why_undefined(x, y, least):
        return float("nan")
    pair = np.column_stack([x, y])
    if method == "published":
        pair = z_within_raters(pair)
    icc = float(icc_consistency(pair))
    return icc if np.isfinite(icc) else float("nan")


def why_undefined(
    x: Array,
    y: Array,
    least: int = LEAST_RESPONSES,
    names: tuple[str, str] = ("the clinicians", "the scorer"),
) -> Note | None:
    """Return why two columns have no ICC, or None when they have one.

    Too few responses, a column without variance (the formula would answer 0 and mean
    nothing by it), or one column that mirrors the other (the formula divides by 0).
    """
    if len(x) < least:
        return undefined(*TOO_FEW_RESPONSES, responses=len(x), least=least)
    for name, column in zip(names, (x, y), strict=True):
        if _flat(column):
            return undefined(*SAME_SCORE, who=name)
    if np.ptp(x + y) <= FLAT * (np.ptp(x) + np.ptp(y)):
        return undefined("mirrored", "one column of scores is the exact mirror of the other")
    return None


def why_no_icc(
    grid: RatingMatrix,
    panel: PanelColumns,
    method: Method,
    pair: tuple[Array, Array],
    names: tuple[str, str] = ("the clinicians", "the scorer"),
) -> Note | None:
    """Return why the columns that `columns` made, where both exist, have no ICC, or None.

    Under "paper" a side whose raters all lack variance has no z, however much it scored.
    """
    if method == "paper" and len(pair[0]) < LEAST_RESPONSES:
        clinicians = tuple(grid.raters[own] for own in grid.of_kind("clinician"))
        for name, raters in zip(names, (clinicians, panel.members), strict=True):
            table = grid.composites[:, grid.columns(raters)]
            flat = unscaled(grid, raters)
            if flat and len(flat) == (~np.isnan(table)).any(axis=0).sum():
                return undefined("no_z", _no_z, who=name, several=raters is clinicians)
    return why_undefined(*pair, names=names)


def _flat(column: Array) -> bool:
    return bool(np.ptp(column) <= FLAT * np.abs(column).max())


def unscaled(grid: RatingMatrix, raters: Sequence[str]) -> tuple[str, ...]:
    """Return which raters have composites in the grid but no variance, hence no z; each once."""
    own = grid.columns(dict.fromkeys(raters))
    table = grid.composites[:, own]
    without_z = without_variance(table) & (~np.isnan(table)).any(axis=0)
    return tuple(grid.raters[column] for column in own[without_z])


def _no_z(figures: Figures) -> str:
    have = "have" if figures["several"] else "has"
    return filled(f"{{who:scorer}} {have} no variance, hence no z", figures)

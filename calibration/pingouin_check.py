"""The agreement table's ICCs once more by pingouin, wherever it can be imported.

pingouin is GPL-3 and takes seconds of processor time to import (it brings matplotlib, seaborn and xarray,
whichever of its modules is asked for), so it is imported only here, when the check is made.
"""

import logging
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd

from calibration.columns import columns
from calibration.scope import AgreementRow, scopes, why_undefined_scope
from calibration.scores import Array, Scores
from calibration.values import NAN, AnalysisOptions

LIBRARY = "pingouin"
LEAST = 5  # scores that pingouin asks for
TOLERANCE = 1e-6
Icc = Callable[..., pd.DataFrame]


@dataclass(frozen=True, slots=True)
class PingouinCheck:
    """How many ICCs pingouin computed too, the largest difference (NaN of none), and where it is."""

    version: str
    n: int
    largest_difference: float
    at: str

    @property
    def differs(self) -> bool:
        """Tell whether any ICC differs by more than computing in floating point explains."""
        return self.n > 0 and not self.largest_difference <= TOLERANCE

    @property
    def line(self) -> str:
        """Return the check in words, as it stands under a table of agreement."""
        icc = "ICC" if self.n == 1 else "ICCs"
        largest = f", largest difference {self.largest_difference:.0e}" if self.n else ""
        return f"checked with {LIBRARY} {self.version}: {self.n} {icc}{largest}"

    @property
    def warning(self) -> str:
        """Return what somebody must know where an ICC differs."""
        return (
            f"{LIBRARY} {self.version} finds another ICC of {self.at}, {self.largest_difference:.0e} "
            "apart: find out which is right before you rely on either"
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as `checked_with` in JSON has it; a difference that is not finite is None."""
        largest = self.largest_difference if math.isfinite(self.largest_difference) else None
        return {
            "library": LIBRARY,
            "version": self.version,
            "n": self.n,
            "largest_difference": largest,
        }


NOT_CHECKED = f"not checked: {LIBRARY} is not installed"


def pingouin_check(
    scores: Scores, options: AnalysisOptions, rows: Sequence[AgreementRow]
) -> PingouinCheck | None:
    """Return how far a table's ICC(C,2) are from pingouin's; None where it cannot be imported.

    Parameters
    ----------
    scores, options, rows : as the agreement table took them, and its rows

    Every scorer's defined ICC is compared where it rests on three responses or more. Nothing that
    importing or calling pingouin says or sets outlasts the check.
    """
    known = {(row.benchmark, row.scorer): row.icc for row in rows if math.isfinite(row.icc)}
    with _pingouins_icc() as icc:
        if icc is None:
            return None
        differences = []
        for scope in scopes(scores, options, None):
            if why_undefined_scope(scores, scope) is not None:
                continue
            for scorer, panel in scope.scorers.items():
                pair = columns(scope.grid, panel, scope.options.method)
                both = np.column_stack([pair.clinicians[pair.both], pair.scorer[pair.both]])
                place = scope.name, scorer
                if place in known and both.size >= LEAST:
                    apart = abs(_by_pingouin(both, scope.options.method, icc) - known[place])
                    differences.append((apart if math.isfinite(apart) else math.inf, place))
    largest, place = max(differences, default=(NAN, ("", "")))
    return PingouinCheck(version(LIBRARY), len(differences), largest, ", ".join(place))


def _by_pingouin(both: Array, method: str, icc: Icc) -> float:
    """Return pingouin's ICC(C,k) of two columns, z-scored first where the method does that last."""
    if method == "published":
        both = (both - both.mean(axis=0)) / both.std(axis=0, ddof=1)
    long = pd.DataFrame(both).melt(ignore_index=False, var_name="rater").reset_index(names="row")
    table = icc(long, targets="row", raters="rater", ratings="value").set_index("Type")
    return float(table["ICC"]["ICC(C,k)"])


@contextmanager
def _pingouins_icc() -> Iterator[Icc | None]:
    """Lend pingouin's function, silent and with options that are as before afterwards."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # where it keeps its list of fonts
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            import pingouin
        except ImportError:
            yield None
            return
        options = dict(pingouin.options)
        pingouin.set_default_options()  # they round nothing but intervals
        try:
            yield pingouin.intraclass_corr
        finally:
            pingouin.options.clear()
            pingouin.options.update(options)

"""The crossed mixed model: clinicians' reliability from all ratings, shared or not."""

import warnings
from dataclasses import dataclass

import numpy as np

from calibration.f_interval import spearman_brown
from calibration.grid import Grid
from calibration.scores import Array, Integers
from calibration.zscore import FLAT

SOLVERS = ["bfgs", "lbfgs", "powell"]  # the last, without gradients, finds a variance of 0
MOST_RATINGS = 1000  # the general solver's time grows with the cube: some 3 seconds here


@dataclass(frozen=True)
class MixedModel:
    """Variances of composite = mean + response + rater + residual, and the ICCs they make.

    Attributes
    ----------
    response, rater, residual : float
        Variance components, by restricted maximum likelihood.
    reason : str
        Why the model is undefined, when it is; all numbers are NaN then.
    """

    response: float = float("nan")
    rater: float = float("nan")
    residual: float = float("nan")
    reason: str = ""

    def consistency(self, k: int = 1) -> float:
        """Return ICC(C,1), or ICC(C,k) for the mean of k raters: v_i / (v_i + v_e / k)."""
        return spearman_brown(_share(self.response, self.residual), k)

    def agreement(self, k: int = 1) -> float:
        """Return ICC(A,1), or ICC(A,k): v_i / (v_i + (v_r + v_e) / k)."""
        return spearman_brown(_share(self.response, self.rater + self.residual), k)


def clinicians_mixed_model(grid: Grid, most_ratings: int = MOST_RATINGS) -> MixedModel:
    """Fit raw composites of all clinicians: crossed random responses and raters.

    Every rating counts, also of clinicians who share no response with each other. Fitted
    by statsmodels; a fit that does not converge is undefined, with the reason.

    Parameters
    ----------
    grid : Grid
    most_ratings : int
        Above this the model is not fitted, and says so.
    """
    table = grid.composites[:, grid.of_kind("clinician")]
    response, rater = np.nonzero(~np.isnan(table))
    composite = table[response, rater]
    if reason := _unfit(composite, response, rater, most_ratings):
        return MixedModel(reason=reason)
    try:
        return _fit(composite, response, rater)
    except np.linalg.LinAlgError as error:
        return MixedModel(reason=f"the mixed model could not be solved ({error})")


def _unfit(composite: Array, response: Integers, rater: Integers, most_ratings: int) -> str:
    if len(composite) > most_ratings:
        return f"the mixed model is not fitted to more than {most_ratings} ratings"
    if (np.bincount(response) > 1).sum() < 3:
        return "the mixed model needs 3 responses that two clinicians rated"
    if np.ptp(composite) <= FLAT * np.abs(composite).max():
        return "the mixed model needs composites that differ"
    return ""


def _fit(composite: Array, response: Integers, rater: Integers) -> MixedModel:
    import pandas as pd
    from statsmodels.formula.api import mixedlm

    table = pd.DataFrame({"composite": composite, "response": response, "rater": rater})
    parts = {"response": "0 + C(response)", "rater": "0 + C(rater)"}
    with warnings.catch_warnings():
        # A variance of 0 is on the boundary and is an answer; convergence is checked below.
        warnings.simplefilter("ignore")
        model = mixedlm(
            "composite ~ 1", table, groups=np.ones(len(table)), re_formula="0", vc_formula=parts
        )
        fitted = model.fit(reml=True, method=SOLVERS)
    if not fitted.converged:
        return MixedModel(reason="the mixed model did not converge")
    variance = dict(zip(model.exog_vc.names, map(float, fitted.vcomp), strict=True))
    return MixedModel(variance["response"], variance["rater"], float(fitted.scale))


def _share(signal: float, noise: float) -> float:
    return signal / (signal + noise) if signal + noise else float("nan")

"""The crossed mixed model: clinicians' reliability from all ratings, shared or not."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from calibration.codes import NoteCode as Code
from calibration.f_interval import spearman_brown
from calibration.grid import Grid
from calibration.scores import Array, Integers
from calibration.values import Note, note
from calibration.zscore import FLAT

MOST_RESPONSES = 800  # time grows with their square: some 2 seconds here
NO_RESIDUAL = 1e4  # times the residual's variance: the search ends there when nothing is left over
START = (1.0, 0.25)  # variance of responses and of raters, as multiples of the residual's
RATIOS = (1e-8, 1e6)  # a variance of 0, and a residual of 0: both are answers
NO_COVARIANCES = np.empty((0, 0))


@dataclass(frozen=True)
class MixedModel:
    """Variances of composite = mean + response + rater + residual, and the ICCs they make.

    Attributes
    ----------
    response, rater, residual : float
        Variance components, by restricted maximum likelihood.
    reason : Note, optional
        Why the model is undefined, when it is; all numbers are NaN then.
    """

    response: float = float("nan")
    rater: float = float("nan")
    residual: float = float("nan")
    reason: Note | None = None

    def consistency(self, k: int = 1) -> float:
        """Return ICC(C,1), or ICC(C,k) for the mean of k raters: v_i / (v_i + v_e / k)."""
        return spearman_brown(_share(self.response, self.residual), k)

    def agreement(self, k: int = 1) -> float:
        """Return ICC(A,1), or ICC(A,k): v_i / (v_i + (v_r + v_e) / k)."""
        return spearman_brown(_share(self.response, self.rater + self.residual), k)


def clinicians_mixed_model(grid: Grid, most_responses: int = MOST_RESPONSES) -> MixedModel:
    """Fit raw composites of all clinicians: crossed random responses and raters.

    Every reading counts, also of clinicians who share no response with each other. The
    restricted likelihood is statsmodels', on sparse designs, and scipy searches it over
    the two variances relative to the residual's. `MixedLM.fit` searches over standard
    deviations, whose slope is 0 where a variance is 0, so that it may stop short of the
    best; its exact slopes and standard errors take most of its time. A search that does
    not converge is undefined, with the reason.

    Parameters
    ----------
    grid : Grid
    most_responses : int
        With more of them the model is not fitted, and says so.
    """
    table = grid.composites[:, grid.of_kind("clinician")]
    response, rater = np.nonzero(~np.isnan(table))
    composite = table[response, rater]
    if reason := _why_not(composite, response, rater, most_responses):
        return MixedModel(reason=reason)
    try:
        return _fit(composite, response, rater)
    except np.linalg.LinAlgError as error:
        return MixedModel(reason=note(Code.MIXED_UNSOLVED, error=str(error)))


def _why_not(
    composite: Array, response: Integers, rater: Integers, most_responses: int
) -> Note | None:
    if len(np.unique(rater)) == 1:
        return note(Code.MIXED_ONE)
    if (np.bincount(response) > 1).sum() < 3:
        return note(Code.MIXED_FEW)
    if np.ptp(composite) <= FLAT * np.abs(composite).max():
        return note(Code.MIXED_FLAT)
    if len(np.unique(response)) > most_responses:
        return note(Code.MIXED_LARGE, most=most_responses)
    return None


def _fit(composite: Array, response: Integers, rater: Integers) -> MixedModel:
    from scipy.optimize import Bounds, minimize

    model = _crossed(composite, response, rater)

    def unlikelihood(ratios: Array) -> float:
        return -float(model.loglike(np.sqrt(ratios)))

    with warnings.catch_warnings():
        # A sparse solver tells how it would be faster; convergence is checked below.
        warnings.simplefilter("ignore")
        found = minimize(unlikelihood, np.array(START), method="L-BFGS-B", bounds=Bounds(*RATIOS))
        if not (found.success and found.x.max() < NO_RESIDUAL):
            return MixedModel(reason=note(Code.MIXED_UNCONVERGED))
        mean, _ = model.get_fe_params(NO_COVARIANCES, found.x)
        residual = float(model.get_scale(mean, NO_COVARIANCES, found.x))
    of_response, of_rater = map(float, residual * found.x)
    return MixedModel(of_response, of_rater, residual)


def _crossed(composite: Array, response: Integers, rater: Integers) -> Any:
    """Return statsmodels' model of all ratings as one group with two variance components."""
    from statsmodels.regression.mixed_linear_model import MixedLM, VCSpec

    members = [_membership(response), _membership(rater)]
    names = [[[str(place) for place in range(one.shape[1])]] for one in members]
    parts = VCSpec(["response", "rater"], names, [[one] for one in members])
    everywhere = np.ones(len(composite))
    model = MixedLM(composite, everywhere[:, None], groups=everywhere, exog_vc=parts)
    model.cov_pen = None  # `fit` sets it, which we do not call; REML is the default
    return model


def _membership(of: Integers) -> sparse.csr_array:
    """Return which level each rating is of: one row a rating, one column a level, a single 1."""
    levels, column = np.unique(of, return_inverse=True)
    places = (np.arange(len(of)), column)
    return sparse.csr_array((np.ones(len(of)), places), shape=(len(of), len(levels)))


def _share(signal: float, noise: float) -> float:
    return signal / (signal + noise) if signal + noise else float("nan")

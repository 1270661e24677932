"""A row of `medjury predict`: the figures of one benchmark, and the words beside them."""

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from calibration import notes
from calibration.predicting.conformal import Conformal
from calibration.predicting.prediction_powered import LEAST_WEIGHED, Sample
from calibration.predicting.validated import Agreement
from calibration.scope import NAN, Scope

UNLIKE = 0.25  # standard deviations between rated and unrated (Rubin 2001): less is taken as alike
NO_AGREEMENT = Agreement()


@dataclass(frozen=True)
class PredictedRow:
    """One benchmark, or all combined. Means and q are in points; NaN is undefined, see `note`.

    Attributes
    ----------
    n_both, n_fit, n_calibration : int
        Responses with composites of jury and clinicians; those the map was fitted on; and
        those, one an instance, on which q, half the width of an interval, rests.
    n_predicted : responses with a value on the clinicians' scale
    mean_clinicians, mean_jury, mean_corrected : of the rated, of all, prediction-powered
    weight, n_rated, n_unrated, gain : lambda, n, N and ratio of variances of the last
    rated_unrated_difference : of jury means, in standard deviations
    coverage : share of `n_checked` rated responses held by intervals made without them
    agreement : of jury and clinicians
    simulated : whether any of them is
    """

    benchmark: str
    n_both: int = 0
    n_fit: int = 0
    n_calibration: int = 0
    q: float = NAN
    n_predicted: int = 0
    mean_clinicians: float = NAN
    clinicians_low: float = NAN
    clinicians_high: float = NAN
    mean_jury: float = NAN
    mean_corrected: float = NAN
    low: float = NAN
    high: float = NAN
    weight: float = NAN
    n_rated: int = 0
    n_unrated: int = 0
    gain: float = NAN
    rated_unrated_difference: float = NAN
    coverage: float = NAN
    n_checked: int = 0
    agreement: Agreement = NO_AGREEMENT
    simulated: bool = False
    note: str = ""

    @property
    def validated(self) -> bool:
        """Tell whether real jurors are shown to agree with real clinicians."""
        return self.agreement.shown and not self.simulated

    @property
    def warning(self) -> str:
        """Return what to be told of a jury that is not validated, or ""."""
        rehearsal = "NOT VALIDATED: a jury is not validated by simulated raters"
        return rehearsal if self.simulated else self.agreement.warning


def row_notes(scope: Scope, sample: Sample, row: PredictedRow, fitted: Conformal) -> Iterator[str]:
    """Say what a benchmark's figures rest on, and what not to conclude from them."""
    yield row.warning
    yield fitted.reason
    if fitted.map and fitted.map.flat:
        yield "the map is level: every response has the same value, whatever the jury said of it"
    yield from _mean_notes(sample, row)
    if scope.jury and scope.jury.needed < len(scope.jury.members):
        yield f"mean of at least {scope.jury.needed} of {len(scope.jury.members)} jurors"
    short = sum(scope.incomplete.get(name, 0) for name in (*scope.jurors, *scope.clinicians))
    yield notes.incomplete(short)


def _mean_notes(sample: Sample, row: PredictedRow) -> Iterator[str]:
    instances = sample.n_instances
    if abs(row.rated_unrated_difference) > UNLIKE:
        yield (
            f"RATED AND UNRATED DIFFER: the jury gave rated responses {sample.jury.mean():.2f}, others "
            f"{sample.unrated_jury.mean():.2f}, {abs(row.rated_unrated_difference):.2f} standard "
            "deviations apart, and unless the rated were drawn at random the corrected mean may be wrong"
        )
    if not row.n_rated:
        yield "undefined: no response has composites of both jury and clinicians"
    elif not row.n_unrated:
        yield "every response that the jury rated is rated by clinicians: nothing to correct with"
    elif instances < LEAST_WEIGHED:
        yield f"fewer than {LEAST_WEIGHED} rated instances: the jury is left out of the mean"
    elif not row.weight:
        yield "lambda is 0: the jury tells nothing of the clinicians' mean and is left out of it"
    yield notes.few_instances(instances)
    if sample.several:
        yield "instances have several responses: errors are over instances"


def lost(every: pd.DataFrame) -> str:
    """Count the responses without a composite of the jury, which are in no figure."""
    lost = every[every["jury"].isna()]
    if lost.empty:
        return ""
    of, rated = notes.counted(len(every), "response"), int(lost["clinicians"].notna().sum())
    return (
        f"the jury scored {len(every) - len(lost)} of {of}: the others are in no figure here, "
        f"{rated} of them rated by clinicians"
    )


def simulated(scope: Scope) -> str:
    """Name the raters of a scope that are not real."""
    return notes.simulated(scope.simulated & {*scope.jurors, *scope.clinicians})

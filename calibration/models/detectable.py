"""The smallest difference between two models that a benchmark can detect (the paper's Appendix E)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import stats

from calibration import notes
from calibration.models.macro_average import unit_scale
from calibration.models.win_rate import NAN
from calibration.scores import Array, RubricShape

PAPER = 1.96 + 0.84  # 5 % two-sided and 80 % power, rounded as in the paper's script
EXACT = float(stats.norm.ppf(0.975) + stats.norm.ppf(0.8))
LEAST_SHARED = 2


@dataclass(frozen=True)
class DetectableRow:
    """The minimum detectable effect of one benchmark.

    Attributes
    ----------
    benchmark, by : str
        Whose scores: "clinicians" or "jury".
    mde : float
        As in the paper: 2.80 sd(d) / sqrt(n) of paired differences d of score / (top of the
        scale), sd with ddof 0, mean over pairs of models. At least 0; NaN without a pair.
    mde_exact : float
        The same with sd of ddof 1, z to all digits, and the scores of the macro-average,
        (score - low) / (high - low): this one is comparable with differences between models.
    n_instances, n_pairs : int
        Instances that any pair shares, and pairs of models that share two or more. A
        model without any score on the benchmark is in no pair.
    note : str
    """

    benchmark: str
    by: str
    mde: float
    mde_exact: float
    n_instances: int
    n_pairs: int
    note: str


def paper_mde(differences: Array) -> float:
    """Return (1.96 + 0.84) sd / sqrt(n), sd with ddof 0, of paired differences; NaN for none.

    `minimum_detectable_error.py` of som-shahlab/medhelm, which divides scores by 5 first.
    """
    n = len(differences)
    return PAPER * float(np.std(differences)) / float(np.sqrt(n)) if n else NAN


def exact_mde(differences: Array) -> float:
    """Return (z(0.975) + z(0.8)) sd / sqrt(n), sd with ddof 1; NaN for fewer than two.

    The difference that a paired z test, two-sided at 5 %, finds with 80 % power.
    """
    n = len(differences)
    if n < LEAST_SHARED:
        return NAN
    return EXACT * float(np.std(differences, ddof=1)) / float(np.sqrt(n))


def detectable_row(benchmark: str, by: str, points: Array, shape: RubricShape) -> DetectableRow:
    """Return what can be detected between the models of a benchmark.

    Parameters
    ----------
    benchmark, by : names of the row
    points : shape (models, instances)
        Mean scores of a model's responses to an instance, in points of the scale; NaN
        where there is none. Each pair is compared on the instances that both have.
    shape : of the benchmark's rubric, for the ends of the scale
    """
    scored = points[(~np.isnan(points)).any(axis=1)]
    shared = [_common(own, other) for own, other in combinations(scored, 2)]
    pairs = [own for own in shared if own.shape[1] >= LEAST_SHARED]
    rows = (~np.isnan(points)).sum(axis=0) > 1
    if not pairs:
        why = "undefined: no two models share two scored instances"
        return DetectableRow(benchmark, by, NAN, NAN, int(rows.sum()), 0, why)
    top = [paper_mde((own[0] - own[1]) / shape.high) for own in pairs] if shape.high > 0 else [NAN]
    scaled = [np.subtract(*unit_scale(own, shape.low, shape.high)) for own in pairs]
    exact = [exact_mde(own) for own in scaled]
    return DetectableRow(
        benchmark,
        by,
        mde=float(np.mean(top)),
        mde_exact=float(np.mean(exact)),
        n_instances=int(rows.sum()),
        n_pairs=len(pairs),
        note=notes.joined(_said(pairs, scaled, exact, len(shared), shape)),
    )


def _common(first: Array, second: Array) -> Array:
    """Return the scores of two models on the instances that both have, shape (2, n)."""
    both = ~np.isnan(first) & ~np.isnan(second)
    return np.stack([first[both], second[both]])


def _said(
    pairs: list[Array], scaled: list[Array], exact: list[float], every: int, shape: RubricShape
) -> Iterator[str]:
    small = sum(abs(float(np.mean(d))) < least for d, least in zip(scaled, exact, strict=True))
    yield f"{small} of {notes.counted(len(pairs), 'pair')} of models differ by less than can be detected"
    fewest, most = (take(own.shape[1] for own in pairs) for take in (min, max))
    if fewest < most:
        yield f"a pair shares {fewest} to {most} instances"
    if left := every - len(pairs):
        yield f"{notes.counted(left, 'pair')} left out for sharing fewer than {LEAST_SHARED}"
    if shape.high <= 0:
        yield "no figure by the paper's formula, which divides by the top of the scale"
    if fewest < notes.FEW_INSTANCES:
        yield f"with fewer than {notes.FEW_INSTANCES} instances the sd, and so the figure, is a guess"

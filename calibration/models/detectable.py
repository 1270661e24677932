"""The smallest difference between two models that a benchmark can detect (the paper's Appendix E)."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from scipy import stats

from calibration.codes import NoteCode as Code
from calibration.models.macro_average import unit_scale
from calibration.models.rows import DetectableRow
from calibration.models.win_rate import NAN
from calibration.remarks import FEW_INSTANCES
from calibration.scores import Array, RubricShape
from calibration.values import Note, note, noted

PAPER = 1.96 + 0.84  # 5 % two-sided and 80 % power, rounded as in the paper's script
EXACT = float(stats.norm.ppf(0.975) + stats.norm.ppf(0.8))
LEAST_SHARED = 2


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
        why = noted(note(Code.NO_TWO_MODELS))
        return DetectableRow(benchmark, by, NAN, NAN, int(rows.sum()), 0, notes=why)
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
        notes=tuple(_notes(pairs, scaled, exact, len(shared), shape)),
    )


def _common(first: Array, second: Array) -> Array:
    """Return the scores of two models on the instances that both have, shape (2, n)."""
    both = ~np.isnan(first) & ~np.isnan(second)
    return np.stack([first[both], second[both]])


def _notes(
    pairs: list[Array], scaled: list[Array], exact: list[float], every: int, shape: RubricShape
) -> Iterator[Note]:
    small = sum(abs(float(np.mean(d))) < least for d, least in zip(scaled, exact, strict=True))
    yield note(Code.PAIRS_NOT_DETECTED, small=small, pairs=len(pairs))
    fewest, most = (take(own.shape[1] for own in pairs) for take in (min, max))
    if fewest < most:
        yield note(Code.PAIRS_SHARE, fewest=fewest, most=most)
    if left := every - len(pairs):
        yield note(Code.MODEL_PAIRS_LEFT, pairs=left, least=LEAST_SHARED)
    if shape.high <= 0:
        yield note(Code.NO_PAPER_FIGURE)
    if fewest < FEW_INSTANCES:
        yield note(Code.DETECTABLE_A_GUESS, least=FEW_INSTANCES)

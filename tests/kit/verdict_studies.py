"""Simulated studies whose right verdict is known: dice, a jury worse by the margin, and a jury as good."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import ndtri

from calibration.clinicians import like_for_like
from calibration.protocol import Protocol
from calibration.rating_matrix import RatingMatrix
from calibration.table import scope_rows
from calibration.verdict import JuryClaim, decide
from kit.composites import JURY, kind, scope_of

MARGIN = 0.1
CEILING = (0.02, 0.07, 0.15, 0.3)  # share of scores below 2, 3, 4 and 5: 70 % are at the top
LARGE = 400_000  # responses by which a truth is found


@dataclass(frozen=True)
class Design:
    """A kind of study.

    Attributes
    ----------
    clinicians : who each read all responses
    single : ICC of a single clinician's scores
    responses : one an instance
    ceiling : whether scores are points from 1 to 5 with 70 % at the top; else normal
    readers : of each response, drawn among the clinicians; 0: all
    """

    clinicians: int
    single: float
    responses: int
    ceiling: bool = False
    readers: int = 0


def points(latent: np.ndarray) -> np.ndarray:
    """Return standard normal scores as points from 1 to 5 with 70 % at the top."""
    return 1.0 + np.searchsorted(ndtri(CEILING), latent.ravel()).reshape(latent.shape)


@cache
def latent_icc(single: float) -> float:
    """Return the correlation of two normal scores whose points correlate by `single`."""
    both = np.random.default_rng(0).normal(size=(2, LARGE))

    def beyond(rho: float) -> float:
        scores = points(np.stack([both[0], rho * both[0] + np.sqrt(1 - rho**2) * both[1]]))
        return float(np.corrcoef(scores)[0, 1]) - single

    return float(brentq(beyond, 0.0, 0.99, xtol=1e-4)) if single else 0.0


def drawn(design: Design, jury: float, random: np.random.Generator) -> pd.DataFrame:
    """Return a study's composites; the jury's scores correlate with what responses are worth by `jury`."""
    n, k = design.responses, design.clinicians
    worth = random.normal(size=(n, 1))
    shared = np.sqrt(
        [latent_icc(design.single) if design.ceiling else design.single] * k + [jury**2]
    )
    latent = shared * worth + np.sqrt(1 - shared**2) * random.normal(size=(n, k + 1))
    scores = points(latent) if design.ceiling else latent
    if design.readers:
        left_out = np.argsort(random.random((n, k)), axis=1)[:, design.readers :]
        np.put_along_axis(scores[:, :k], left_out, np.nan, axis=1)
    table = pd.DataFrame(scores[:, :k], columns=[f"dr{i}" for i in range(k)])
    return table.assign(**dict.fromkeys(JURY.members, scores[:, k]))


def dice(design: Design, random: np.random.Generator) -> pd.DataFrame:
    """Return a study whose jurors are three dice."""
    table = drawn(design, 0.0, random)
    return table.assign(**{name: random.integers(1, 6, len(table)) + 0.0 for name in JURY.members})


@cache
def loading(design: Design, gap: float) -> float:
    """Return what makes the jury's like for like equal to `gap`.

    A jury that scores as a clinician does has none; how far another is from that is found by one very
    large study, with the same errors in both.
    """
    alike = float(np.sqrt(latent_icc(design.single) if design.ceiling else design.single))
    large = replace(design, responses=LARGE)

    def difference(jury: float) -> float:
        table = drawn(large, jury, np.random.default_rng(0))
        return like_for_like(grid_of(table), JURY, "paper").difference

    if not gap:
        return alike
    at_zero = difference(alike)
    return float(brentq(lambda jury: difference(jury) - at_zero - gap, 0.05, alike, xtol=1e-4))


def grid_of(table: pd.DataFrame) -> RatingMatrix:
    """Return composites as a matrix, one response an instance."""
    n = len(table)
    kinds = tuple(map(kind, table))
    return RatingMatrix(
        table.to_numpy(), tuple(map(str, range(n))), np.arange(n), tuple(table), kinds
    )


def may_pass(table: pd.DataFrame) -> bool:
    """Return whether the estimates alone leave it open that a jury is called no worse.

    Its rule has the interval of the difference above minus the margin, the jury's ICC above 0, and the
    margin at most half the lower end of a clinician's: so each estimate is above that too.
    """
    held = like_for_like(grid_of(table), JURY, "paper")
    jury, clinician = held.iccs
    return held.difference > -MARGIN and jury > 0 and clinician > 2 * MARGIN


def verdicts(tables: Iterable[pd.DataFrame]) -> Counter[str]:
    """Return how often each kind of verdict is given, and each scope of a jury that is no worse.

    Studies that cannot pass by their estimates are counted as "far", without any interval.
    """
    claim = JuryClaim(Protocol(MARGIN, jurors=JURY.members))
    found: Counter[str] = Counter()
    for table in tables:
        if not may_pass(table):
            found["far"] += 1
            continue
        made = decide([*scope_rows(scope_of(table, reps=100))], claim)
        found[made.kind.value] += 1
        found[made.scope] += made.kind.value == "non_inferior"
    return found

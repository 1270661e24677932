"""Tables of composites: simulated raters, and studies whose right verdict is known: dice, a jury worse by the margin, one as good."""

import math
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import ndtri

from calibration.clinicians import like_for_like
from calibration.columns import PanelColumns
from calibration.protocol import Protocol
from calibration.rating_matrix import RatingMatrix, Repeats, analysed_grid
from calibration.scope import Scope
from calibration.table import scope_rows
from calibration.values import AnalysisOptions
from calibration.verdict import JuryClaim, decide
from calibration.weighted import held_iccs

JURY = PanelColumns(("j0", "j1", "j2"), 3)
RATERS = ["dr0", "dr1", "dr2", "j0", "j1", "j2", "j3", "m"]
NO_REPEATS = Repeats(pd.DataFrame(), pd.DataFrame(), pd.DataFrame())


def kind(name):
    return {"d": "clinician", "j": "juror", "m": "metric"}[name[0]]


def scores(n=60, seed=0, noise=1.0):
    """Three clinicians, the jurors j0 to j3 and a metric, as a table of composites."""
    random = np.random.default_rng(seed)
    quality = random.normal(size=(n, 1))
    spread = np.array([0.8] * 3 + [noise] * 4 + [1.5])
    return pd.DataFrame(quality + spread * random.normal(size=(n, 8)), columns=RATERS)


def scope_of(table, per=1, jury=JURY, simulated=(), **asked):
    """Return a table of composites as one benchmark, `per` responses an instance."""
    long = table.melt(ignore_index=False, var_name="rater", value_name="composite").dropna()
    long = long.reset_index(names="row")
    rated = pd.DataFrame(
        {
            "response_id": long["row"].map("r{:05}".format),
            "instance_id": (long["row"] // per).map("i{:05}".format),
            "benchmark": "b",
            "rater": long["rater"],
            "kind": long["rater"].map(kind),
            "composite": long["composite"],
        }
    )
    members = jury.members if jury else ()
    metrics = tuple(name for name in table if kind(name) == "metric")
    return Scope(
        name="b",
        grid=analysed_grid(rated, ["b"], jurors=members, metrics=metrics),
        composites=rated,
        in_study=len(table),
        incomplete={},
        repeats=NO_REPEATS,
        jury=jury,
        jurors=members,
        metrics=metrics,
        simulated=frozenset(simulated),
        options=AnalysisOptions(**{"reps": 400, **asked}),
    )


NAN = math.nan
METHODS = ["paper", "published"]


def simulate(n=60, jurors=4, clinicians=3, seed=0, lost=0.0):
    random = np.random.default_rng(seed)
    quality = 3 + random.normal(size=(n, 1))
    doctors = quality + 0.6 * random.normal(size=(n, clinicians))
    noise = np.linspace(0.4, 1.5, jurors)
    own = quality + noise * random.normal(size=(n, jurors))
    doctors[random.random(doctors.shape) < lost] = NAN
    own[random.random(own.shape) < lost] = NAN
    doctors[np.isnan(doctors).all(axis=1), 0] = 3.0
    return np.hstack([doctors, own])


# The canonical example: 12 units in rows, 4 observers, 0 where missing.
CANON = [
    *([1, 1, 0, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2], [1, 2, 3, 4]),
    *([4, 4, 4, 4], [1, 1, 2, 1], [2, 2, 2, 2], [0, 5, 5, 5], [0, 0, 1, 1], [0, 0, 3, 0]),
]

# 30 responses, 5 raters, a third missing, for which krippendorff 0.9.0 gives the numbers below.
SPARSE = [
    *([3, 3, 0, 0, 0], [0, 0, 0, 3, 0], [3, 0, 2, 0, 0], [2, 3, 3, 2, 4], [0, 2, 0, 4, 3]),
    *([3, 0, 0, 0, 0], [4, 3, 0, 3, 3], [0, 5, 5, 0, 4], [4, 2, 0, 3, 4], [3, 3, 0, 3, 4]),
    *([4, 0, 0, 4, 0], [3, 4, 4, 0, 4], [4, 0, 3, 0, 4], [3, 2, 3, 1, 0], [0, 0, 4, 0, 3]),
    *([4, 0, 0, 4, 0], [0, 0, 0, 2, 0], [0, 3, 3, 0, 3], [2, 1, 2, 0, 1], [3, 1, 3, 1, 0]),
    *([1, 2, 0, 0, 3], [4, 3, 0, 0, 3], [3, 2, 2, 2, 2], [3, 5, 4, 0, 4], [3, 4, 3, 4, 3]),
    *([0, 2, 3, 5, 3], [1, 1, 2, 1, 1], [0, 2, 4, 0, 3], [3, 4, 0, 0, 3], [0, 0, 3, 4, 4]),
]


def table(rows):
    return np.where(np.array(rows) > 0, np.array(rows, float), np.nan)


# Shrout & Fleiss (1979), table 2: four judges rate six targets.
SHROUT_FLEISS = np.array(
    [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], float
)


def by_pingouin(scores):
    """Return all ICCs of a table (responses, raters) as pingouin finds them."""
    import pingouin  # takes a second, and few tests need it

    long = pd.DataFrame(scores).reset_index(names="target").melt(id_vars="target", var_name="judge")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pingouin.intraclass_corr(long, "target", "judge", "value").set_index("Type")["ICC"]


def crossed(random, n, raters, per, variances=(1.0, 0.25, 1.0)):
    """Return scores (n, raters) of responses and raters crossed, `per` raters a response at random.

    The variances are those between responses, between raters and of what remains.
    """
    response, rater, residual = np.sqrt(variances)
    table = response * random.normal(size=(n, 1)) + rater * random.normal(size=(1, raters))
    table = 3 + table + residual * random.normal(size=(n, raters))
    table[np.argsort(random.random(table.shape), axis=1).argsort(axis=1) >= per] = np.nan
    return table


TWO_JURORS = PanelColumns(("j0", "j1"), 2)


def grid_of(table, clusters=None, jurors=2):
    """Return composites (n, raters) as a grid: clinicians, then jurors; alone, unless clustered."""
    table = np.asarray(table, float)
    n, clinicians = len(table), table.shape[1] - jurors
    names = (*(f"dr{i}" for i in range(clinicians)), *(f"j{i}" for i in range(jurors)))
    kinds = ("clinician",) * clinicians + ("juror",) * jurors
    where = np.arange(n) if clusters is None else clusters
    return RatingMatrix(table, tuple(f"r{i}" for i in range(n)), where, names, kinds)


def difference_under(grid, jury, method, weights):
    """Return like for like under weights of the instances."""
    held = [(one.clinician, one.rows) for one in like_for_like(grid, jury, method).defined]
    iccs = held_iccs(grid, jury, method, held, weights)
    return iccs[:, 0] - iccs[:, 1]


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
        return like_for_like(grid_of(table, jurors=3), JURY, "paper").difference

    if not gap:
        return alike
    at_zero = difference(alike)
    return float(brentq(lambda jury: difference(jury) - at_zero - gap, 0.05, alike, xtol=1e-4))


def may_pass(table: pd.DataFrame) -> bool:
    """Return whether the estimates alone leave it open that a jury is called no worse.

    Its rule has the interval of the difference above minus the margin, the jury's ICC above 0, and the
    margin at most half the lower end of a clinician's: so each estimate is above that too.
    """
    held = like_for_like(grid_of(table, jurors=3), JURY, "paper")
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

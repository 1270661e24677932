"""Tables of composites, for tests of single statistics: simulated raters, and published examples."""

import math

import numpy as np
import pandas as pd

from calibration.clinicians import like_for_like
from calibration.columns import PanelColumns
from calibration.rating_matrix import RatingMatrix, Repeats, analysed_grid
from calibration.scope import Scope
from calibration.values import AnalysisOptions
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


TWO_JURORS = PanelColumns(("j0", "j1"), 2)


def grid_of(table, clusters=None, jurors=2):
    """Return composites (n, raters) as a grid: clinicians, then jurors; alone, unless clustered."""
    table = np.asarray(table, float)
    n, clinicians = len(table), table.shape[1] - jurors
    names = (*(f"dr{i}" for i in range(clinicians)), *(f"j{i}" for i in range(jurors)))
    kinds = ("clinician",) * clinicians + ("juror",) * jurors
    where = np.arange(n) if clusters is None else clusters
    return RatingMatrix(table, tuple(map(str, range(n))), where, names, kinds)


def difference_under(grid, jury, method, weights):
    """Return like for like under weights of the instances."""
    held = [(one.clinician, one.rows) for one in like_for_like(grid, jury, method).defined]
    iccs = held_iccs(grid, jury, method, held, weights)
    return iccs[:, 0] - iccs[:, 1]

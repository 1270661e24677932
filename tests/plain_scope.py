"""A scope from a plain table of composites, for tests of single statistics."""

import numpy as np
import pandas as pd

from calibration.agreement import Panel
from calibration.composite import Repeats
from calibration.rating_matrix import Grid
from calibration.scope import Asked, Scope


def scope_of(table, clinicians, *, per=1, reps=200, seed=0, method="paper", simulated=()):
    """Return a scope of composites (n, raters): clinicians first, then jurors."""
    table = np.asarray(table, dtype=float)
    n, jurors = len(table), table.shape[1] - clinicians
    names = [f"dr{i}" for i in range(clinicians)] + [f"j{i}" for i in range(jurors)]
    kinds = ("clinician",) * clinicians + ("juror",) * jurors
    ids = tuple(f"r{i}" for i in range(n))
    members = tuple(names[clinicians:])
    return Scope(
        name="aci",
        grid=Grid(table, ids, np.arange(n) // per, tuple(names), kinds),
        given=pd.DataFrame(),
        in_study=n,
        incomplete={},
        repeats=Repeats(pd.DataFrame(), pd.DataFrame(), pd.DataFrame()),
        jury=Panel(members, len(members)) if members else None,
        jurors=members,
        metrics=(),
        simulated=frozenset(simulated),
        asked=Asked(method, None, reps, seed),
        tick=lambda resamples: None,
    )

"""Periods for tests: rows of known ICC, and studies rated over many months."""

from datetime import date

import numpy as np

from calibration.monitoring.cusum import fisher_z, independent_se
from calibration.monitoring.periods import next_start
from calibration.monitoring.rows import PeriodRow

NAN = float("nan")


def row(place, icc, n=20, *, se=NAN, boot=(NAN, NAN), **other):
    """Return the row of the period number `place`, a month from January 2025 on."""
    start = date(2025, 1, 1)
    for _ in range(place):
        start = next_start(start, "month")
    z = float(fisher_z(icc))
    values = {
        "benchmark": "aci",
        "period": f"p{place}",
        "start": start,
        "end": date.fromordinal(next_start(start, "month").toordinal() - 1),
        "joined": 1,
        "over": True,
        "too_few": False,
        "unfilled": False,
        "icc": icc,
        "boot_low": boot[0],
        "boot_high": boot[1],
        "fisher_z": z,
        "se": independent_se(n) if np.isnan(se) else se,
        "n_responses": n,
        "n_instances": n,
        "n_clinicians": 2,
        "n_missing": 0,
        "jury_first": None,
        "jury_last": None,
    }
    return PeriodRow(**values | other)

"""The agreement table as CSV: every figure in full precision, nothing a spreadsheet would run."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from calibration.messages import told
from calibration.scope import AgreementRow
from calibration.tables.numbers import known
from data.safe_text import guarded_name

COLUMNS = (
    *("benchmark", "scorer", "simulated", "icc", "boot_low", "boot_high", "f_low", "f_high"),
    *("spearman", "n_responses", "n_missing", "n_instances", "n_clinicians", "n_pairs"),
    *("method", "reps", "seed", "note"),
)


def table_csv(rows: Sequence[AgreementRow], how: Mapping[str, Any]) -> str:
    """Return the agreement table as CSV.

    An undefined number is an empty cell; its reason is in `note`. `how` has method, reps, seed.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for row in rows:
        added = {**how, "simulated": int(bool(row.simulated)), "note": told(row.notes)}
        cells = [added[name] if name in added else getattr(row, name) for name in COLUMNS]
        writer.writerow([_safe(value) for value in cells])
    return out.getvalue()


def _safe(value: Any) -> Any:
    if isinstance(value, str):
        return guarded_name(value)
    return value if known(value) else ""

"""The ledger of juries tried, on the screen: looking again and again is counted."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st
from sqlalchemy import Engine

from annotate import tables
from annotate.screens import frame
from calibration.messages.form import listed
from calibration.report.ways import ever_tried
from calibration.tables.juries import LEDGER, TriedRow
from calibration.tables.spec import laid_out
from data import queries
from data.person import Person
from data.schema import Composition

MOST = 200
ABOUT = (
    "Every jury that was ever compared with the clinicians, by any command or on any page. Who "
    "tries many and shows the best shows luck too: p by Holm is corrected for all of these."
)


def show(engine: Engine, person: Person) -> None:
    """Show what was looked at last first, and all of it as CSV."""
    st.html(f'<h2 class="mj-part">The ledger of juries tried</h2><p class="mj-lead">{ABOUT}</p>')
    entries = queries.juries_tried(person, engine)
    if not entries:
        frame.empty("No jury was compared with the clinicians yet.")
        return
    rows = [_row(one) for one in entries[:MOST]]
    tables.sortable("ledger", laid_out(LEDGER, rows, caption=f"Ever tried: {ever_tried(entries)}"))
    if len(entries) > MOST:
        st.html(tables.noted([f"{len(entries) - MOST:,} earlier ones stand in the CSV."]))
    st.download_button(
        "The ledger as CSV",
        partial(_csv, entries),
        "ledger.csv",
        "text/csv",
        key="ledger-csv",
        on_click="ignore",
    )


def _row(entry: Composition) -> TriedRow:
    return TriedRow(
        jury=listed(entry.jurors) + (" (simulated)" if entry.simulated else ""),
        benchmark=entry.benchmark,
        criterion=entry.criterion or "composite",
        method=entry.method,
        icc=entry.icc,
        responses=entry.n_responses,
        times=entry.times,
        last=f"{entry.last_at:%Y-%m-%d %H:%M}",
    )


def _csv(entries: list[Composition]) -> str:
    return tables.csv_of([_cells(one) for one in entries])


def _cells(entry: Composition) -> Mapping[str, Any]:
    row = _row(entry)
    return {
        "jury": row.jury,
        "benchmark": row.benchmark,
        "criterion": row.criterion,
        "method": row.method,
        "instances": entry.instances or "all",
        "needed": entry.needed,
        "icc": entry.icc,
        "responses": entry.n_responses,
        "times": entry.times,
        "last": row.last,
        "compared": ", ".join(entry.compared),
        "ratings_sha256": entry.fingerprint,
    }

"""The ledger of juries tried, on the screen: looking again and again is counted."""

from functools import partial

import streamlit as st
from sqlalchemy import Engine

from annotate import tables
from annotate.screens import frame
from calibration.report.ways import ever_tried
from data import queries
from data.person import Person

MOST = 200
ABOUT = (
    "Every jury that was ever held against the clinicians, by any command or on any page. Who "
    "tries many and shows the best shows luck too: p by Holm is corrected for all of these."
)
COLUMNS = (
    tables.Column("Jury", lambda row: str(row["jury"])),
    tables.words("Benchmark", "benchmark"),
    tables.words("Criterion", "criterion"),
    tables.words("Method", "method"),
    tables.number("ICC(C,2)", "icc", 3),
    tables.count("Responses", "responses"),
    tables.count("Times", "times"),
    tables.words("Last, UTC", "last"),
)


def show(engine: Engine, person: Person) -> None:
    """Show what was looked at last first, and all of it as CSV."""
    st.html(f'<h2 class="mj-part">The ledger of juries tried</h2><p class="mj-lead">{ABOUT}</p>')
    found = queries.juries_tried(person, engine)
    rows = [
        {
            "jury": ", ".join(one.jurors) + (" (simulated)" if one.simulated else ""),
            "benchmark": one.benchmark,
            "criterion": one.criterion or "composite",
            "method": one.method,
            "instances": one.instances or "all",
            "needed": one.needed,
            "icc": one.icc,
            "responses": one.n_responses,
            "times": one.times,
            "last": f"{one.last_at:%Y-%m-%d %H:%M}",
            "compared": ", ".join(one.compared),
            "ratings_sha256": one.fingerprint,
        }
        for one in found
    ]
    if not rows:
        frame.empty("No jury was held against the clinicians yet.")
        return
    caption = f"Ever tried: {ever_tried(found)}"
    tables.sortable("ledger", rows[:MOST], COLUMNS, caption)
    if len(rows) > MOST:
        st.html(tables.noted([f"{len(rows) - MOST:,} earlier ones stand in the CSV."]))
    st.download_button(
        "The ledger as CSV",
        partial(tables.csv_of, rows),
        "ledger.csv",
        "text/csv",
        key="ledger-csv",
        on_click="ignore",
    )

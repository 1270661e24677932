"""What somebody sees who waits for a computation: what is done, for how long, and how far it is."""

from concurrent.futures import Future, wait
from typing import TypeVar

import streamlit as st

from annotate import worker

Result = TypeVar("Result")
LOOK_SECONDS = 0.25
IN_LINE = "Waiting for another calculation to end"
DONE = "{:.0%} done"


def waited(coming: "Future[Result]", doing: str) -> Result:
    """Return a value that is computed, and show meanwhile what is done and how far it is.

    Parameters
    ----------
    coming
        From `annotate.worker`; what it raises is raised.
    doing
        What is done, as a sentence without a full stop.

    Who opens another screen meanwhile need not wait: each look at how far it is lets Streamlit go on.
    """
    if coming.done():
        return coming.result()
    place = st.empty()
    with place.container(), st.spinner(doing, show_time=True):
        line = st.empty()
        while wait([coming], LOOK_SECONDS).not_done:
            _show(line, coming)
    place.empty()
    return coming.result()


def _show(line: "st.delta_generator.DeltaGenerator", coming: "Future[Result]") -> None:
    """Show the share that is done as a bar, or that others are computed first."""
    share = worker.share_done(coming)
    if share is not None:
        shown = min(max(share, 0.0), 1.0)
        line.progress(shown, DONE.format(shown))
    else:
        line.caption("" if coming.running() else IN_LINE)

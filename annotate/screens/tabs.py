"""Views of a screen as tabs: each is a step in the browser's history, and stands in its address."""

from collections.abc import Callable, Mapping

import streamlit as st

KEY = "view"
SEEN = "view-in-address"


def show(views: Mapping[str, Callable[[], None]]) -> None:
    """Draw the view that is open; "Back" in the browser opens the one before.

    The tabs are not bound to the address, since a bound widget replaces the entry in the
    browser's history; what is set here adds one.
    """
    first = next(iter(views))
    asked = st.query_params.get(KEY, first)
    if asked != st.session_state.get(SEEN):
        st.session_state[KEY] = asked if asked in views else first
    tabs = st.tabs([*views], key=KEY, on_change="rerun")
    for (name, draw), tab in zip(views.items(), tabs, strict=True):
        if tab.open:
            _address(name, first)
            with tab:
                draw()


def _address(name: str, first: str) -> None:
    """Keep the open view in the address; the first one needs no word."""
    st.session_state[SEEN] = name
    if name != first and st.query_params.get(KEY) != name:
        st.query_params[KEY] = name
    elif name == first and KEY in st.query_params:
        del st.query_params[KEY]

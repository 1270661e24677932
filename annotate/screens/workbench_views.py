"""Saving what the workbench shows under a name: the filters that stand in the address."""

import html
from urllib.parse import urlencode

import streamlit as st
from sqlalchemy import Engine

from annotate.screens.frame import paragraph, refusals
from data.person import Person
from data.store.views import LONGEST_NAME, forget_view, save_view, saved_views

RESPONSE, CELL = "response", "cell"  # names in the address; the first is no part of a view
NONE_YET = "None yet. A view is yours alone; to share one, send the address of the page."


def show(engine: Engine, person: Person) -> None:
    """List a person's views as links; let them save what is shown, or take a view away."""
    views = saved_views(person, engine)
    items = "".join(
        f'<li><a href="/workbench?{html.escape(place)}" target="_self">{html.escape(name)}</a></li>'
        for name, place in views.items()
    )
    st.html(f'<ul class="mj-views">{items}</ul>' if items else paragraph(NONE_YET))
    with st.form("save-view", clear_on_submit=True, border=False):
        name = st.text_input("Save what is shown as", max_chars=LONGEST_NAME)
        if st.form_submit_button("Save view"):
            with refusals():
                save_view(person, engine, name, address(RESPONSE))
                st.rerun()
    if views:
        with st.form("forget-view", border=False):
            chosen = st.selectbox("View to take away", [*views])
            if st.form_submit_button("Take away") and chosen:
                with refusals():
                    forget_view(person, engine, chosen)
                    st.rerun()


def address(*without: str, **changed: str) -> str:
    """Return what the address says, without some of its names and with others changed."""
    kept = {name: st.query_params.get_all(name) for name in st.query_params if name not in without}
    return urlencode(kept | {name: [value] for name, value in changed.items()}, doseq=True)

"""Saving what the workbench shows under a name: the filters that stand in the address."""

import html
from urllib.parse import urlencode

import streamlit as st
from sqlalchemy import Engine

from annotate.screens.frame import paragraph, refusals
from data.person import Person
from data.store.views import LONGEST_NAME, forget_view, save_view, saved_views

OPEN_RESPONSE = "response"  # in the address, and no part of a view
NONE_YET = "None yet. A view is yours alone; to share one, send the address of the page."


def show(engine: Engine, person: Person) -> None:
    """List a person's views as links; let them save what is shown, or take a view away."""
    views = saved_views(person, engine)
    items = "".join(
        f'<li><a href="/workbench?{html.escape(address)}" target="_self">{html.escape(name)}</a></li>'
        for name, address in views.items()
    )
    st.html(f'<ul class="mj-views">{items}</ul>' if items else paragraph(NONE_YET))
    with st.form("save-view", clear_on_submit=True, border=False):
        name = st.text_input("Save what is shown as", max_chars=LONGEST_NAME)
        if st.form_submit_button("Save view"):
            with refusals():
                save_view(person, engine, name, _address())
                st.rerun()
    if views:
        with st.form("forget-view", border=False):
            chosen = st.selectbox("View to take away", [*views])
            if st.form_submit_button("Take away") and chosen:
                with refusals():
                    forget_view(person, engine, chosen)
                    st.rerun()


def _address() -> str:
    """Return what the address says of filters, without the response that is open."""
    filters = {
        name: st.query_params.get_all(name) for name in st.query_params if name != OPEN_RESPONSE
    }
    return urlencode(filters, doseq=True)

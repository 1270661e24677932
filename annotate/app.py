"""The entry file: which screens there are."""

import streamlit as st

from annotate.screens import rate

st.set_page_config(page_title="medjury", layout="wide")
st.navigation([st.Page(rate.page, title="Rate", default=True)], position="hidden").run()

"""The entry file: what each browser session runs."""

import streamlit as st

from annotate import navigation

st.set_page_config(page_title="medjury", layout="wide")
navigation.run()

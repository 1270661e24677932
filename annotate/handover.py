"""The page between a hospital's sign-in and ours."""

import streamlit as st
from sqlalchemy import Engine

from annotate import oidc, panes

# A form is posted, not fetched: the browser then takes the cookie and follows to the page.
SCRIPT = """
export default function ({ parentElement, data }) {
  const form = document.createElement("form");
  form.method = "post";
  form.action = "/login";
  const field = document.createElement("input");
  field.type = "hidden";
  field.name = "ticket";
  field.value = data[0];
  form.append(field);
  parentElement.append(form);
  form.submit();
}
"""
_mount = st.components.v2.component("medjury_handover", js=SCRIPT)
OTHERWISE = (
    '<p style="text-align:center"><a href="/logout" target="_self">Sign in otherwise</a></p>'
)


def from_hospital(engine: Engine) -> bool:
    """Lead somebody without a session through the hospital's sign-in; False if not asked for."""
    claims = oidc.claimed()
    asked = "hospital" in st.query_params
    if claims is None or not oidc.is_fresh(claims):
        if asked:
            oidc.ask_hospital()
        return asked
    person = oidc.person_of(engine, claims)
    if isinstance(person, str):
        st.html(panes.note("Not signed in", person))
        st.html(OTHERWISE)
        return True
    st.html(panes.note("Signing you in", f"Welcome, {person.name}."))
    _mount(key="handover", data=[oidc.ticket(engine, person)])
    return True

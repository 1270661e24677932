"""A table that people write in is stored with the cell they left just before they pressed the button."""

from typing import Any

from streamlit.testing.v1 import AppTest


def page() -> None:
    import streamlit as st

    from annotate.screens.stored_table import is_to_be_stored

    changed = bool(st.session_state.get("changed"))
    st.session_state["stored"] = is_to_be_stored("Store", "table-store", changed=changed)


def drawn(**state: Any) -> AppTest:
    app = AppTest.from_function(page)
    for name, value in state.items():
        app.session_state[name] = value
    return app.run()


def test_a_cell_that_arrives_after_the_button_is_stored_once() -> None:
    app = drawn()
    app.button[0].click().run()
    assert app.session_state["stored"]
    app.session_state["changed"] = True
    assert app.run().session_state["stored"]
    assert not app.run().session_state["stored"]


def test_what_is_written_is_not_stored_before_the_button_is_pressed() -> None:
    app = drawn(changed=True)
    assert not app.session_state["stored"]
    app.button[0].click().run()
    assert app.session_state["stored"]


def test_a_change_long_after_the_button_waits_for_it_to_be_pressed_again() -> None:
    app = drawn(**{"table-store-pressed": 0.0, "changed": True})
    assert not app.session_state["stored"]

"""The button that stores a table people write in, whose last cell may arrive after it was pressed."""

import time

import streamlit as st

SOON_SECONDS = 0.4  # a browser sends a cell a moment after it was left: 0.15 s, and the way here
LATE_SECONDS = 3.0


def is_to_be_stored(label: str, key: str, *, changed: bool) -> bool:
    """Return whether to store the table: now, or as a cell that was sent later asks for.

    Who leaves a cell and presses the button at once is heard in two messages, the button first. What
    comes within a moment is waited for; a first change that comes within seconds belongs to it too,
    or it would be lost with a word that nothing was changed.
    """
    mark = f"{key}-pressed"
    if st.button(label, key=key):
        st.session_state[mark] = time.monotonic()
        time.sleep(SOON_SECONDS)
        st.empty()  # here the page is drawn anew if a cell has arrived
        if changed:
            del st.session_state[mark]
        return True
    pressed: float | None = st.session_state.get(mark)
    if not changed or pressed is None:
        return False
    del st.session_state[mark]
    return time.monotonic() - pressed < LATE_SECONDS

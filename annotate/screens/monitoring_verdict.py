"""The judgement on top of the monitoring screen: fallen, not fallen, or nothing to compare with."""

import html

import streamlit as st

from annotate.commands import Figures


def show(found: Figures) -> None:
    """Show the judgement in words, and who is no real rater."""
    kind, words = verdict(found)
    made_up = found["simulated"]
    if made_up:
        words += " (simulated raters: nothing here is evidence)"
    jury = f"Jury: {', '.join(found['jury'])}."
    st.html(
        f'<div class="mj-verdict {kind}" role="status"><b>{html.escape(words)}</b>'
        f"<p>{html.escape(sentence(found['reason']))} {html.escape(jury)}</p></div>"
    )


def verdict(found: Figures) -> tuple[str, str]:
    """Return the kind of a judgement and its headline; none is well that was compared with nothing."""
    if not found["judged"]:
        return "mj-warned", "Not judged"
    if found["fallen"]:
        return "mj-warned", "Agreement has fallen"
    if any(row["role"] == "watched" for row in found["cusum"]):
        return "mj-well", "Agreement has not fallen"
    which = (
        f"the period judged, {found['newest']}" if len(found["periods"]) > 1 else "the only period"
    )
    few = any(row["too_few"] for row in found["periods"] if row["period"] == found["newest"])
    on = " (too few instances)" if few else ""
    return "mj-open", (
        f"Nothing to compare with yet: {which}{on} is not below the least ICC wanted, "
        f"{found['threshold']:.2f}"
    )


def sentence(words: str) -> str:
    """Return the command's words as a sentence."""
    return f"{words[:1].upper()}{words[1:].rstrip('.')}." if words else ""

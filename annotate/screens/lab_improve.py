"""Let a jury learn from the clinicians: start it from a panel, and show what came of each attempt."""

import html
import math
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st
from sqlalchemy import Engine

from annotate import jury_runs
from annotate.screens import frame
from annotate.screens.frame import Cell, heading, notice, paragraph, table
from calibration.learning.values import PartGain
from data.person import Person, only
from data.queries.learning import ImprovementView, improvements
from data.schema import Role
from data.store.jury_runs import RunOrder
from jury.panel import Panel
from medjury.services.improvement import Improved, Outcome, improved_of

ABOUT = (
    "The clinicians' cases are split into three parts. A model of this panel reads the worst disagreements "
    "of the first part, with what clinicians wrote, and proposes guidance for the jurors. What is taken is "
    "decided on the second part; the third is opened once, to say how much closer the jury has come."
)
HEADS = (
    "Panel",
    "Result",
    "Closer by, in points",
    "On what it learned from",
    "Test cases",
    "Spent",
)
ENDED = {
    Outcome.BETTER: "closer to the clinicians on cases not seen before",
    Outcome.NOT_SHOWN: "not shown to be closer on cases not seen before",
    Outcome.NONE_BETTER: "nothing was closer; the jury stays as it is",
    Outcome.STOPPED: "stopped before its end",
}
MOST_ROUNDS, MOST_EXAMPLES = 10, 8


def show(
    engine: Engine, person: Person, panel: Panel, text: str, benchmarks: Sequence[str]
) -> None:
    """Show the form, and what came of earlier attempts."""
    with st.expander("Let this jury learn from the clinicians", key="lab-improve"):
        st.html(paragraph(ABOUT))
        order = _order(panel, text, benchmarks)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            cap = st.number_input(
                "Cap for learning, US dollars",
                min_value=0.0,
                value=None,
                step=1.0,
                format="%.2f",
                key="learn-cap",
            )
            begun = st.button("Start learning", key="learn")
        if begun:
            with frame.refusals():
                jury_runs.start(person, engine, replace(order, cap=cap))
                st.rerun()
    attempts = all_improvements(person, engine)
    if attempts:
        _show_attempts(attempts)


@only(Role.RESEARCHER, Role.COORDINATOR)
def all_improvements(person: Person, engine: Engine) -> list[ImprovementView]:
    """Return what was learned in this study, the newest first; clinicians may not see it."""
    return improvements(engine)[::-1]


def _order(panel: Panel, text: str, known: Sequence[str]) -> RunOrder:
    first, second, third = st.columns((4, 2, 2), vertical_alignment="bottom")
    chosen = first.multiselect(
        "Benchmarks of one rubric", known, key="learn-benchmarks", placeholder="all"
    )
    rounds = second.number_input("Proposals, at most", 0, MOST_ROUNDS, 3, key="learn-rounds")
    examples = third.number_input(
        "Rated examples to try", 0, MOST_EXAMPLES, 3, key="learn-examples"
    )
    hosts = panel.hosts()
    sent = (
        f"Texts and comments go to {', '.join(hosts)}." if hosts else "No text leaves this machine."
    )
    st.html(paragraph(sent))
    return RunOrder(
        panel=panel.name,
        text=text,
        benchmarks=tuple(name for name in chosen if name in known),
        task="improve",
        rounds=min(max(int(rounds), 0), MOST_ROUNDS),
        examples=min(max(int(examples), 0), MOST_EXAMPLES),
    )


def _show_attempts(attempts: Sequence[ImprovementView]) -> None:
    """Show each attempt in a row, and what the newest rubric changed."""
    results = [improved_of(one.result) for one in attempts if one.result]
    rows = [_row(found) for found in results]
    unended = len(attempts) - len(results)
    told = f"{unended} did not come to an end: start them again to go on." if unended else ""
    st.html(
        heading("Learned from the clinicians") + table("What juries learned", HEADS, rows, words=2)
    )
    for line in (told, *_cautions(results)):
        if line:
            st.html(notice(line))
    if results and results[0].diff:
        with st.expander(f"What {results[0].panel} reads differently", key="lab-learned"):
            lines = html.escape("\n".join(results[0].diff))
            st.html(
                '<pre class="mj-told-lines" tabindex="0" role="region" '
                f'aria-label="What the jurors read differently">{lines}</pre>'
            )


def _cautions(results: Sequence[Improved]) -> list[str]:
    seen = [found.panel for found in results if found.opened_before]
    made_up = [found.panel for found in results if found.simulated]
    lines = []
    if seen:
        lines.append(
            f"{', '.join(seen)}: the test part had been opened before, so its cases were not new."
        )
    if made_up:
        lines.append(f"simulated, no judgement: {', '.join(made_up)}")
    return lines


def _row(found: Improved) -> list[Cell]:
    test, train = found.parts.get("test"), found.parts.get("train")
    return [
        found.panel,
        ENDED[found.outcome],
        _gain(test),
        None if train is None or not math.isfinite(train.gain) else f"{train.gain:.2f}",
        found.split["test"]["responses"],
        f"${found.usd:,.4f}" + (f" + {found.usd_unknown} unknown" if found.usd_unknown else ""),
    ]


def _gain(gain: PartGain | None) -> str | None:
    if gain is None or not math.isfinite(gain.gain):
        return None
    if not math.isfinite(gain.low):
        return f"{gain.gain:.2f}"
    return f"{gain.gain:.2f} ({gain.low:.2f} to {gain.high:.2f})"

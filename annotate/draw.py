"""Decisions, tables and charts as Streamlit's own widgets show them, with what they need to be read.

Nothing here is HTML. A name from the study stands as it is: no Markdown, and no formula in a file.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import streamlit as st

from annotate.screens import frame
from calibration.decision import Decision, DecisionKind
from calibration.headlines import protocol_facts
from calibration.protocol import Protocol
from calibration.tables.numbers import DASH, MINUS, PAGE, THIN, fixed, icc_interval, place
from calibration.tables.spec import Table, TableNote, parted
from calibration.values import COMBINED
from data.safe_text import on_page

Say = Callable[[str], object]
NUMBER = re.compile(r"[+-]?\d+(\.(\d+))?")
GROUP, ALL = "Group", place(COMBINED)
TALLEST, ROW, LINES = 340, 35, 3  # px of a table, of its rows, and for its head and its bar
GOOD = {
    DecisionKind.NON_INFERIOR,
    DecisionKind.FIRST_BETTER,
    DecisionKind.SECOND_BETTER,
    DecisionKind.RECOMMENDED,
    DecisionKind.STEADY,
    DecisionKind.TOLD_APART,
    DecisionKind.USABLE,
    DecisionKind.USABLE_COMBINED,
}
NONE_SET = "No margin is fixed yet, so nothing is claimed of any jury."
BAD = {DecisionKind.INFERIOR, DecisionKind.FALLEN}
COMPARED = (
    "Jury and a clinician, each compared with the same other clinicians. The jury may take a "
    "clinician's place where its agreement is no worse than a clinician's, within the margin."
)
# Colours that can be told from white paper and from the dark one.
BLUE, ORANGE, GREY = "#2b87c8", "#c8690a", "#7a858d"
ON_DARK = {"#0072b2": BLUE, "#b35900": ORANGE, "#1f2328": "#c9d0d6", "#5c636b": "#98a2ab"}


def decision(found: Decision) -> None:
    """Show what may be said, in a sentence, and what to do next; of simulated raters the figures too."""
    verdict(found)
    shown = found.sentences[1:3] if found.kind is DecisionKind.SIMULATED else ()
    if shown:
        st.markdown(on_page(" ".join(shown)))
    if found.next:
        st.markdown(f"**Next:** {on_page(found.action)}")
    reasons(found, shown)


def verdict(found: Decision) -> None:
    """Show what may be said as one sentence, coloured by what it comes to."""
    simulated = found.kind is DecisionKind.SIMULATED
    say: Say = (
        st.success
        if found.kind in GOOD
        else st.error
        if found.kind in BAD
        else st.warning
        if simulated
        else st.info
    )
    say(f"**{on_page(found.headline)}**")


def reasons(found: Decision, shown: Sequence[str] = ()) -> None:
    """Offer why a decision is as it is but for what is shown, and on how much data it rests."""
    lines = [line for line in found.sentences if line not in shown]
    lines += [f"Rests on: {found.on}"] if found.basis else []
    if lines:
        with st.expander("Why, and on how much data"):
            for line in lines:
                st.markdown(on_page(line))


def table(shown: Table, *, titled: bool = True) -> None:
    """Show a table that is laid out, with its notes below it; numbers sort as numbers.

    Parameters
    ----------
    titled : whether its caption stands above it: not where what it is folded in has the same words
    """
    if titled:
        st.markdown(f"**{on_page(shown.caption)}**")
    columns, config = framed(shown)
    number = sum(len(group.rows) for group in shown.groups)
    st.dataframe(
        columns,
        hide_index=True,
        column_config=config,
        height=min(TALLEST, ROW * (number + 1) + LINES),
        placeholder="",
        alt=shown.caption,
    )
    notes(shown.notes)


def rows(
    caption: str, found: Sequence[Mapping[str, Any]], about: Mapping[str, str] | None = None
) -> None:
    """Show rows as a table under its caption; `about` says what the figures of a column are."""
    st.markdown(f"**{on_page(caption)}**")
    frame.show_rows(caption, found, about)


def notes(found: Iterable[TableNote | str]) -> None:
    """Show notes below a table: those that warn, and folded the others."""
    every = [note if isinstance(note, TableNote) else TableNote(note) for note in found]
    loud, quiet = parted(every)
    for note in loud:
        st.caption(on_page(note.text))
    if quiet:
        with st.expander("More notes on these figures"):
            for note in quiet:
                st.caption(on_page(note.text))


def framed(shown: Table) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Return a laid-out table as columns, and how Streamlit shows each.

    A column of numbers holds numbers, None where there is none; the first says which group a row is
    of, where there are several, all benchmarks combined before each of them.
    """
    grouped = len(shown.groups) > 1
    groups = sorted(shown.groups, key=lambda group: group.heading != ALL)
    heads = [*([GROUP] if grouped else []), *shown.columns]
    body = [
        (group.heading, *cells) if grouped else cells for group in groups for cells in group.rows
    ]
    columns: dict[str, list[Any]] = {}
    config: dict[str, Any] = {}
    for at, head in enumerate(heads):
        name = head
        while name in columns:
            name += "\N{ZERO WIDTH SPACE}"
        cells = [row[at] for row in body]
        about = shown.help.get(head)
        is_word = at <= grouped or head in shown.words
        numbers, digits = (None, 0) if is_word else _numbers(cells)
        if numbers is None:
            columns[name] = [frame.plain(cell) for cell in cells]
            config[name] = st.column_config.TextColumn(head, help=about, pinned=at <= grouped)
        else:
            columns[name] = numbers
            form = f"%.{digits}f"
            config[name] = st.column_config.NumberColumn(head, help=about, format=form)
    return columns, config


def chart(spec: Mapping[str, Any], alt: str, caption: str = "", key: str | None = None) -> None:
    """Show a Vega-Lite chart in the colours of the theme, with its words.

    Parameters
    ----------
    spec : of `st.vega_lite_chart`; the style of a report's chart is left to the theme
    alt : what it shows, for who cannot see it
    """
    shown = {name: part for name, part in spec.items() if name != "config"}
    if st.context.theme.type == "dark":
        text = json.dumps(shown)
        for light, dark in ON_DARK.items():
            text = text.replace(light, dark)
        shown = json.loads(text)
    st.vega_lite_chart(shown, width="stretch", alt=alt, key=key)
    if caption:
        st.caption(on_page(caption))


def _numbers(cells: Sequence[str]) -> tuple[list[float | None] | None, int]:
    """Return cells as numbers with their decimals; None where any is no number."""
    found: list[float | None] = []
    digits = 0
    for cell in cells:
        text = cell.replace(MINUS, "-").replace(THIN, "").replace(",", "").strip()
        match = NUMBER.fullmatch(text)
        if text and text != DASH and match is None:
            return None, 0
        digits = max(digits, len(match[2] or "")) if match else digits
        found.append(float(text) if match else None)
    return (found, digits) if any(one is not None for one in found) else (None, 0)


def picture(held: Mapping[str, Any]) -> None:
    """Draw jury and clinician against the same others, and their difference with the margin."""
    sides = [("The jury", *held["jury"]), ("A clinician", *held["clinician"])]
    difference, low, high = held["difference"]
    margin = held["margin"]
    with st.container(border=True):
        st.caption(COMPARED)
        left, right = st.columns(2)
        with left:
            said = "; ".join(f"{name.lower()} {_icc(*ends)}" for name, *ends in sides)
            chart(
                _side_by_side(sides, f"{held['unit']} with the same other clinicians"),
                f"Agreement with the same other clinicians: {said}",
                key="held",
            )
        with right:
            rule = [] if math.isnan(margin) else [(-margin, f"margin {fixed(-margin, 2, PAGE)}")]
            row = [("Jury minus clinician", difference, low, high)]
            chart(
                _side_by_side(row, "Difference of the two", [(0.0, "no difference"), *rule]),
                f"Jury minus clinician: {_icc(difference, low, high)}"
                + (f", margin {fixed(-margin, 2, PAGE)}" if rule else ", no margin is fixed"),
                key="difference",
            )


def _icc(figure: float, low: float, high: float) -> str:
    ends = icc_interval(low, high, 2, PAGE)
    return fixed(figure, 2, PAGE) + (f" (95 % interval {ends})" if ends else "")


def _side_by_side(
    sides: list[tuple[str, float, float, float]],
    title: str,
    rules: list[tuple[float, str]] | None = None,
) -> dict[str, Any]:
    """Return a chart of figures with their intervals, one a line, and upright rules with a word."""
    values = [
        {
            "who": f"{name}: {fixed(figure, 2, PAGE)}",
            "figure": figure,
            "low": low if math.isfinite(low) else None,
            "high": high if math.isfinite(high) else None,
        }
        for name, figure, low, high in sides
    ]
    axis = {"labelLimit": 260, "labelFontSize": 13, "ticks": False, "labelBaseline": "middle"}
    y = {"field": "who", "type": "nominal", "sort": None, "title": None, "axis": axis}
    x = {
        "type": "quantitative",
        "title": title,
        "scale": {"zero": False, "padding": 16},
        "axis": {"tickCount": 5, "labelFlush": False, "labelBound": True},
    }
    tips = [
        {"field": name, "type": "quantitative", "title": heading, "format": ".2f"}
        for name, heading in (("figure", "Figure"), ("low", "95 % from"), ("high", "to"))
    ]
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "rule", "strokeWidth": 2.5, "color": BLUE},
            "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}, "y": y},
        },
        {
            "mark": {
                "type": "point",
                "filled": True,
                "size": 130,
                "color": BLUE,
                "opacity": 1,
            },
            "encoding": {"x": x | {"field": "figure"}, "y": y, "tooltip": tips},
        },
    ]
    ends = [one for side in sides for one in side[1:] if math.isfinite(one)]
    ends += [at for at, _ in rules or []]
    for number, (at, word) in enumerate(rules or []):
        is_left = at <= (min(ends) + max(ends)) / 2
        layers += _rule(x | {"field": "at"}, at, word, number, is_left=is_left)
    return {"data": {"values": values}, "height": 130, "padding": {"bottom": 0}, "layer": layers}


def _rule(
    x: Mapping[str, Any], at: float, word: str, number: int, *, is_left: bool
) -> list[dict[str, Any]]:
    """Return an upright rule with its word, right of one in the left half and left of others."""
    mark = {"data": {"values": [{"at": at, "word": word}]}}
    colour = ORANGE if number else GREY
    line = {"type": "rule", "strokeDash": [5, 4], "color": colour, "strokeWidth": 1.5}
    beside = {"align": "left", "dx": 5} if is_left else {"align": "right", "dx": -5}
    return [
        mark | {"mark": line, "encoding": {"x": x}},
        mark
        | {
            "mark": {"type": "text", "color": colour, "fontSize": 12, **beside},
            "encoding": {"x": x, "y": {"value": 6 + 14 * number}, "text": {"field": "word"}},
        },
    ]


def protocol(fixed_one: Protocol | None, unit: str = "ICC") -> None:
    """Show what a protocol fixes, or that there is none."""
    if fixed_one is None:
        frame.show_text(NONE_SET)
    else:
        rows = [{"Fixed": name, "As": words} for name, words in protocol_facts(fixed_one, unit)]
        frame.show_rows("Protocol", rows)

"""A second jury beside the first: who sits there, what changed from the first, scores side by side."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st
from sqlalchemy import Engine

from annotate import draw
from annotate.screens import controls
from data.person import Person
from data.safe_text import on_page
from data.study import compare, standing
from data.study.compare import Chosen, Compared, JurySide, Side, SidesOn, TwoJuries
from medjury.services.jury_changes import (
    JuryChange,
    Order,
    Seats,
    What,
    changes,
    counts,
    difference,
    in_order,
    mean_of,
    seats,
)

ABOUT = (
    "Compare the jury with another one: other jurors, another version of the rubric, or another of "
    "several verdicts, each of which is of a run of its own. Means are in points, over the criteria "
    "that both versions have. An explanation has changed where a juror of both gives other words. "
    "Clinicians are compared with the first jury as before, on its present rubric."
)
NO_CHOICE = "Every juror rated once, on the benchmarks' present rubrics."
SAME_JURORS, PRESENT, ALL_VERDICTS = "the jurors of the first", "present version", "mean of all"
ANY, DISAGREEMENT = "any", "largest disagreement with clinicians"
WHAT: Mapping[str, What | None] = {
    ANY: None,
    "moved up": What.UP,
    "moved down": What.DOWN,
    "moved by 1 point or more": What.BY_A_POINT,
    "explanation changed": What.EXPLAINED_OTHERWISE,
    "now a failure": What.NOW_FAILED,
    "unchanged": What.SAME,
    "only in the first": What.ONLY_FIRST,
    "only in the second": What.ONLY_SECOND,
    "not comparable": What.APART,
}
ORDERS: Mapping[str, Order | None] = {
    "largest change": Order.LARGEST,
    "moved up": Order.UP,
    "moved down": Order.DOWN,
    DISAGREEMENT: None,
}
COUNTED: Mapping[What, str] = {
    What.UP: "moved up",
    What.DOWN: "moved down",
    What.SAME: "unchanged",
    What.ONLY_FIRST: "only in the first",
    What.ONLY_SECOND: "only in the second",
    What.NEITHER: "without a mean in both",
    What.APART: "on another scale or other criteria",
}
SEEN_WITHOUT = (What.NEITHER, What.APART)  # told only where there are some
NAMES = ("First", "Second")


@dataclass(frozen=True, slots=True)
class Asked:
    """Two juries, what of a change the list is filtered by, and what it begins with."""

    juries: TwoJuries
    what: What | None = None
    order: Order | None = Order.LARGEST


def ask(engine: Engine, person: Person, chosen: Chosen) -> Asked | None:
    """Ask for a second jury, and what of its changes is listed; None where it is the first one."""
    with st.popover("Second jury", key="second-jury", width="stretch"):
        st.caption(ABOUT)
        jurors = _jurors(engine, person)
        versions, verdicts = _versions(engine, person), _verdicts(engine, person)
        left, right = st.columns(2)
        with left:
            first = JurySide(chosen.jurors, *_which("First", versions, verdicts))
        with right:
            second = JurySide(jurors or chosen.jurors, *_which("Second", versions, verdicts))
        if len(versions) + len(verdicts) == 2:
            st.caption(NO_CHOICE)
        left, right = st.columns(2)
        what = left.selectbox("List only what", [*WHAT], key="changed", bind="query-params")
        order = right.selectbox("List first", [*ORDERS], key="order", bind="query-params")
    if first == second:
        return None
    juries = TwoJuries(first, second, chosen.benchmark, chosen.criterion)
    return Asked(juries, WHAT.get(what or ANY), ORDERS.get(order, Order.LARGEST))


def _jurors(engine: Engine, person: Person) -> tuple[str, ...]:
    """Ask who is the second jury: panels that were heard, and jurors by name."""
    panels = {f"panel {name}": jury for name, jury in controls.panels_heard(engine, person).items()}
    jurors = compare.workbench_jurors(person, engine)
    picked = st.multiselect(
        "Jurors of the second",
        [*panels, *jurors],
        key="second",
        bind="query-params",
        placeholder=SAME_JURORS,
    )
    seated = {
        name
        for choice in picked
        for name in ((panels[choice].jurors or ()) if choice in panels else (choice,))
    }
    return tuple(sorted(seated & {*jurors}))


def _versions(engine: Engine, person: Person) -> dict[str, str]:
    """Return what a rubric's version can be: its label -> its SHA-256, "" for the present one."""
    present = {view.name: view.rubric.sha256 for view in standing.study_benchmarks(person, engine)}
    others = [
        rubric
        for rubric, where in compare.rated_versions(person, engine)
        if any(present[name] != rubric.sha256 for name in where)
    ]
    return {PRESENT: ""} | {
        f"{rubric.name} {rubric.version} ({rubric.sha256[:8]})": rubric.sha256 for rubric in others
    }


def _verdicts(engine: Engine, person: Person) -> dict[str, int | None]:
    """Return what a juror's verdict can be: its label -> its number, None for the mean of all."""
    number = compare.most_verdicts(person, engine)
    return {ALL_VERDICTS: None} | {
        f"verdict {place + 1}": place for place in range(number if number > 1 else 0)
    }


def _which(
    name: str, versions: Mapping[str, str], verdicts: Mapping[str, int | None]
) -> tuple[str, int | None]:
    """Ask for a jury's rubric version and verdict, where there is a choice."""
    version, verdict = PRESENT, ALL_VERDICTS
    key = name.lower()
    if len(versions) > 1:
        version = st.selectbox(
            f"{name}: rubric", [*versions], key=f"{key}-version", bind="query-params"
        )
    if len(verdicts) > 1:
        verdict = st.selectbox(
            f"{name}: verdict", [*verdicts], key=f"{key}-verdict", bind="query-params"
        )
    return versions.get(version, ""), verdicts.get(verdict)


def changes_of(person: Person, engine: Engine, asked: Asked) -> dict[int, JuryChange]:
    """Return what changed on each response, in the order asked for."""
    found = changes(compare.on_both(person, engine, asked.juries))
    ordered = found if asked.order is None else in_order(found, asked.order)
    return {change.row.response: change for change in ordered}


def with_changes(
    rows: Sequence[Compared], found: Mapping[int, JuryChange], order: Order | None
) -> list[Compared]:
    """Return the responses that either jury scored or failed on, in the order of changes or rows."""
    by_key = {row.response: row for row in rows}
    if order is not None:
        return [by_key.get(key) or _alone(change) for key, change in found.items()]
    others = [_alone(change) for key, change in found.items() if key not in by_key]
    return [row for row in rows if row.response in found] + others


def _alone(change: JuryChange) -> Compared:
    """Return a response that only the second jury knows as one to list."""
    row, nobody = change.row, Side(None, 0, 0)
    return Compared(row.response, row.response_id, row.benchmark, nobody, nobody, None)


def those(
    rows: Sequence[Compared], found: Mapping[int, JuryChange], what: What | None
) -> list[Compared]:
    """Return the responses that changed as asked."""
    return [row for row in rows if what is None or what in found[row.response].what]


def summary(person: Person, engine: Engine, juries: TwoJuries, found: Sequence[JuryChange]) -> None:
    """Say who the two juries are, and how many responses changed how."""
    versions = {
        rubric.sha256: f"{rubric.name} {rubric.version}"
        for rubric, _ in compare.rated_versions(person, engine)
    }
    who = ". ".join(
        f"{name}: {_side_name(side, versions)}"
        for name, side in zip(NAMES, juries.sides, strict=True)
    )
    st.markdown(on_page(told(found)))
    st.caption(on_page(f"{who}."))


def told(found: Iterable[JuryChange]) -> str:
    """Return how many responses changed how, in sentences."""
    number = counts(found)
    moved = [
        f"{number[kind]:,} {words}"
        for kind, words in COUNTED.items()
        if number[kind] or kind not in SEEN_WITHOUT
    ]
    how = (
        f"Moved by 1 point or more: {number[What.BY_A_POINT]:,}; explanation changed: "
        f"{number[What.EXPLAINED_OTHERWISE]:,}; now a failure: {number[What.NOW_FAILED]:,}."
    )
    return f"From the first jury to the second: {', '.join(moved)}. {how}"


def _side_name(side: JurySide, versions: Mapping[str, str]) -> str:
    parts = [", ".join(side.jurors) or "all jurors"]
    parts += [f"rubric {versions.get(side.rubric, side.rubric[:8])}"] if side.rubric else []
    parts += [f"verdict {side.verdict + 1}"] if side.verdict is not None else []
    return ", ".join(parts)


def show_pairs(person: Person, engine: Engine, juries: TwoJuries, change: JuryChange) -> None:
    """Show both juries' scores and explanations of one response, juror by juror."""
    st.markdown(f"**{on_page(whole(change))}**")
    sides = compare.jurors_on(person, engine, juries, change.row.response)
    if sides is None:
        st.info("Nobody rated this benchmark on a version that is compared.")
        return
    if not sides.same_scale:
        st.warning("The two versions have different scales.")
    if rows := pairs(sides):
        draw.rows("Scores and explanations of both juries", rows)
    else:
        st.info("No juror of either jury has been asked about this response.")


def whole(change: JuryChange) -> str:
    """Return both juries' means, and how many of their jurors scored, in a sentence."""
    first, second = (
        f"{name} {'no mean' if side.mean is None else format(side.mean, '.2f')} "
        f"({side.scored} of {side.of} jurors)"
        for name, side in zip(NAMES, (change.row.first, change.row.second), strict=True)
    )
    moved = "" if change.difference is None else f": {change.difference:+.3g}"
    return f"{first}, {second.lower()}{moved}."


def pairs(sides: SidesOn) -> list[dict[str, Any]]:
    """Return a row for each juror and criterion, and for its mean: scores, words, and the change."""
    return [
        _row(name, both, criterion, sides)
        for name, both in seats(sides).items()
        for criterion in (*sides.criteria, "")
    ]


def _row(name: str, both: Seats, criterion: str, sides: SidesOn) -> dict[str, Any]:
    """Return a row of one criterion; of "", of the means."""
    only = "" if all(both) else f"only in the {NAMES[both[0] is None].lower()}"
    simulated = "simulated" if any(said and said.simulated for said in both) else ""
    row: dict[str, Any] = {"Juror": ", ".join(filter(None, (name, only, simulated)))}
    row["Criterion"] = criterion or "mean"
    points = []
    for head, said in zip(NAMES, both, strict=True):
        own = said.scores.get(criterion) if said and criterion else mean_of(said, sides)
        points.append(None if criterion and said is None else own)
        row[head] = points[-1]
    row["Change"] = difference(*points) if sides.same_scale else None
    for head, said in zip(NAMES, both, strict=True):
        words = said.explanations.get(criterion, ()) if said else ()
        failure = said.failure if said and row[head] is None else ""
        row[f"{head}, in words"] = " / ".join(words) or failure or None
    return row

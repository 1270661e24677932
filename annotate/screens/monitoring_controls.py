"""What is watched, and how: chosen from what the study has, and kept in the URL."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date

import streamlit as st
from sqlalchemy import Engine

from data import queries
from data.person import Person

ALL, WHOLE, EVERY_JUROR = "all combined", "composite", "all heard"
PERIODS = ("month", "quarter", "week")
METHODS = ("paper", "published")
FIRST = {f"first {n} periods": ("--baseline", f"{n}") for n in (3, 6, 12)}
LEAST_ICC = 0.4


def watched(engine: Engine, person: Person) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Ask for it; return the arguments of `medjury monitor`, and those of them for `calibrate`."""
    frozen = [one.id for one in queries.frozen_reports(person, engine)]
    targets = FIRST | {f"report {one}": ("--baseline-report", f"{one}") for one in frozen}
    with st.container(key="controls"):
        every, least, target, since = st.columns(4)
        period = every.selectbox("Period", PERIODS, key="every", bind="query-params")
        icc = least.number_input(
            "Least ICC wanted", -1.0, 1.0, LEAST_ICC, 0.05, key="least_icc", bind="query-params"
        )
        against = target.selectbox("Compared with", [*targets], key="target", bind="query-params")
        day = since.date_input(
            "Only from", None, max_value="today", key="since", bind="query-params"
        )
        asked = scope(engine, person)
    told = ("--every", period, "--min-icc", f"{icc:.2f}", *targets[against])
    start = ("--since", day.isoformat()) if isinstance(day, date) else ()
    return (*told, *start, *asked), asked


def scope(engine: Engine, person: Person, *, whole: bool = False) -> tuple[str, ...]:
    """Ask for benchmark, jury, criterion and method; return the arguments that say so.

    With `whole` all benchmarks are meant, by no method: as `medjury models` has it.
    """
    found = queries.materials(person, engine)
    names = [one.view.name for one in found]
    criteria = list(dict.fromkeys(name for one in found for name in one.view.rubric.criteria))
    juries = juries_of(
        queries.jurors_heard(person, engine), panel_places(queries.own_panels(person, engine))
    )
    first, second, third, fourth = st.columns(4)
    jury = _chosen(second if not whole else first, "Jury", [EVERY_JUROR, *juries], "jury")
    criterion = _chosen(
        third if not whole else second, "Criterion", [WHOLE, *criteria], "criterion"
    )
    told = juries.get(jury, ()) + (() if criterion == WHOLE else ("--criterion", criterion))
    if whole:
        return told
    benchmark = _chosen(first, "Benchmark", [ALL, *names], "benchmark")
    method = _chosen(fourth, "Method", METHODS, "method")
    return (*told, "--method", method, *(() if benchmark == ALL else ("--benchmark", benchmark)))


def juries_of(heard: Sequence[str], panels: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    """Return what can sit as a jury: panels of which all were heard, and single jurors."""
    from jury.panel import read_panel

    seats = {name: {one.name for one in read_panel(place).juror} for name, place in panels.items()}
    whole = {
        f"panel {name}": ("--panel", panels[name]) for name, who in seats.items() if who <= {*heard}
    }
    return whole | {f"only {name}": ("--jurors", name) for name in heard}


def panel_places(own: Mapping[str, str]) -> dict[str, str]:
    """Return where each panel is read, by name: those that ship, and the study's own texts."""
    from annotate import jury_panels
    from jury.panel import shipped

    return {name: str(jury_panels.on_disk(name, text)) for name, text in own.items()} | {
        name: name for name in shipped()
    }


def _chosen(
    place: "st.delta_generator.DeltaGenerator", label: str, options: Sequence[str], key: str
) -> str:
    """Ask for one of what there is; what the URL says besides is not taken."""
    ask: Callable[..., str | None] = place.selectbox
    found = ask(label, options, key=key, bind="query-params")
    return options[0] if found is None else found

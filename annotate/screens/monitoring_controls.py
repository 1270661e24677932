"""What is watched, and how: chosen from what the study has, and kept in the URL."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import streamlit as st
from sqlalchemy import Engine

from annotate.screens.agreement_controls import (
    EVERY_JUROR,
    METHODS,
    WHOLE,
    benchmark_and_criterion,
    chosen,
)
from calibration.values import AnalysisOptions
from data import queries
from data.person import Person
from medjury.services.monitoring import FLOOR, MonitoringQuestion

if TYPE_CHECKING:
    from calibration.monitoring.calendar import Every

PERIODS: Mapping[str, "Every"] = {"month": "month", "quarter": "quarter", "week": "week"}
FIRST_PERIODS = (3, 6, 12)
TITLE = "What is watched, and compared with what"


@dataclass(frozen=True, slots=True)
class Seats:
    """Who sits on a jury, None is everybody heard; and where its panel is read, if it is one."""

    jurors: tuple[str, ...] | None = None
    panel: str | None = None


def watched(engine: Engine, person: Person) -> MonitoringQuestion:
    """Ask for period, floor, target and start, and for benchmark, jury, criterion and method."""
    targets = _targets(person, engine)
    with st.expander(TITLE), st.container(key="controls"):
        every, least, target, since = st.columns(4)
        period = chosen(every, "Period", [*PERIODS], "every")
        floor = least.number_input(
            "Floor: least ICC wanted", -1.0, 1.0, FLOOR, 0.05, key="least_icc", bind="query-params"
        )
        against = chosen(target, "Compared with", [*targets], "target")
        day = since.date_input(
            "Only from", None, max_value="today", key="since", bind="query-params"
        )
        options, panel = _scope(engine, person)
    return MonitoringQuestion(
        today=datetime.now(UTC).date(),
        options=options,
        panel=panel,
        every=PERIODS[period],
        since=day if isinstance(day, date) else None,
        floor=round(floor, 2),
        **targets[against],
    )


def scope(engine: Engine, person: Person, *, whole: bool = True) -> tuple[str, ...]:
    """Ask for jury and criterion of all benchmarks; return the arguments that say so."""
    first, second, *_ = st.columns(4)
    seats = _seats(first, engine, person)
    found = queries.materials(person, engine)
    criteria = dict.fromkeys(name for one in found for name in one.view.rubric.criteria)
    criterion = chosen(second, "Criterion", [WHOLE, *criteria], "criterion")
    who = ("--jurors", ",".join(seats.jurors)) if seats.jurors else ()
    told = ("--panel", seats.panel) if seats.panel else who
    return (*told, *(() if criterion == WHOLE else ("--criterion", criterion)))


def juries_of(heard: Sequence[str], panels: Mapping[str, str]) -> dict[str, Seats]:
    """Return what can sit as a jury: panels of which all were heard, and single jurors."""
    from jury.panel import read_panel

    seats = {
        f"panel {name}": Seats(tuple(one.name for one in read_panel(place).juror), place)
        for name, place in panels.items()
    }
    whole = {name: own for name, own in seats.items() if {*(own.jurors or ())} <= {*heard}}
    return whole | {f"only {name}": Seats((name,)) for name in heard}


def panel_places(own: Mapping[str, str]) -> dict[str, str]:
    """Return where each panel is read, by name: those that ship, and the study's own texts."""
    from annotate import jury_panels
    from jury.panel import shipped

    return {name: str(jury_panels.on_disk(name, text)) for name, text in own.items()} | {
        name: name for name in shipped()
    }


def _targets(person: Person, engine: Engine) -> dict[str, dict[str, Any]]:
    """Return what can be normal: the first periods, or a frozen report."""
    first = {f"first {n} periods": {"baseline": n} for n in FIRST_PERIODS}
    reports = [one.id for one in queries.frozen_reports(person, engine)]
    return first | {f"report {one}": {"baseline_report": one} for one in reports}


def _scope(engine: Engine, person: Person) -> tuple[AnalysisOptions, str | None]:
    places = st.columns(4)
    seats = _seats(places[1], engine, person)
    benchmark, criterion = benchmark_and_criterion(engine, person, places)
    method = chosen(places[3], "Method", METHODS, "method")
    options = AnalysisOptions(
        jurors=seats.jurors,
        benchmark=benchmark,
        criterion=criterion,
        method="published" if method == "published" else "paper",
    )
    return options, seats.panel


def _seats(place: "st.delta_generator.DeltaGenerator", engine: Engine, person: Person) -> Seats:
    panels = panel_places(queries.own_panels(person, engine))
    juries = juries_of(queries.jurors_heard(person, engine), panels)
    return juries.get(chosen(place, "Jury", [EVERY_JUROR, *juries], "jury"), Seats())

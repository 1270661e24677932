"""What is watched, and how: chosen from what the study has, and kept in the URL."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import streamlit as st
from sqlalchemy import Engine

from annotate.screens.agreement_controls import METHODS, benchmark_and_criterion, chosen
from annotate.screens.models_controls import jury_of
from calibration.values import AnalysisOptions
from data import queries
from data.person import Person
from medjury.services.monitoring import FLOOR, MonitoringQuestion

if TYPE_CHECKING:
    from calibration.monitoring.calendar import Every

PERIODS: Mapping[str, "Every"] = {"month": "month", "quarter": "quarter", "week": "week"}
FIRST_PERIODS = (3, 6, 12)
RATES = {"5 %": 0.05, "1 %": 0.01, "2 %": 0.02, "10 %": 0.1}
TITLE = "What is watched, and compared with what"


def watched(engine: Engine, person: Person) -> MonitoringQuestion:
    """Ask for period, floor, target, start and false alarms, and for benchmark, jury, criterion and method."""
    targets = _targets(person, engine)
    with st.expander(TITLE), st.container(key="controls"):
        every, least, target, since, alarms = st.columns(5)
        period = chosen(every, "Period", [*PERIODS], "every")
        floor = least.number_input(
            "Floor: least ICC wanted", -1.0, 1.0, FLOOR, 0.05, key="least_icc", bind="query-params"
        )
        against = chosen(target, "Compared with", [*targets], "target")
        day = since.date_input(
            "Only from", None, max_value="today", key="since", bind="query-params"
        )
        rate = chosen(alarms, "False alarms a year", [*RATES], "false_alarms")
        options, panel = _scope(engine, person)
    return MonitoringQuestion(
        today=datetime.now(UTC).date(),
        options=options,
        panel=panel,
        every=PERIODS[period],
        since=day if isinstance(day, date) else None,
        floor=round(floor, 2),
        false_alarms=RATES[rate],
        **targets[against],
    )


def _targets(person: Person, engine: Engine) -> dict[str, dict[str, Any]]:
    """Return what can be normal: the first periods, or a frozen report."""
    first = {f"first {n} periods": {"baseline": n} for n in FIRST_PERIODS}
    reports = [one.id for one in queries.frozen_reports(person, engine)]
    return first | {f"report {one}": {"baseline_report": one} for one in reports}


def _scope(engine: Engine, person: Person) -> tuple[AnalysisOptions, str | None]:
    places = st.columns(4)
    jury = jury_of(places[1], engine, person)
    benchmark, criterion = benchmark_and_criterion(engine, person, places)
    method = chosen(places[3], "Method", METHODS, "method")
    options = AnalysisOptions(
        jurors=jury.jurors,
        benchmark=benchmark,
        criterion=criterion,
        method="published" if method == "published" else "paper",
    )
    return options, jury.panel

"""The controls of the screens of figures: choices from what the study has, kept in the URL."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import streamlit as st
from sqlalchemy import Engine

from annotate import jury_panels
from annotate.figures import AgreementQuestion
from calibration.values import AnalysisOptions, Method, MonitoringOptions, PeriodLength
from data.person import Person
from data.rubric import Rubric, read_rubric, shipped
from data.study import adjudication, rubrics, runs
from data.study.rubrics import StudyRubric
from data.study.standing import study_benchmarks
from jury.panel import read_panel
from medjury.services.models import ModelsRequest

ALL, WHOLE, EVERY_JUROR, SOME = (
    "all combined",
    "composite",
    "all jurors with ratings",
    "some jurors",
)
METHODS, KEPT = ("paper", "published"), ("all", "sound")
READINGS = ("independent", "adjudicated")
SHORT, LONGEST_VERSION = 12, 24  # characters of a hash and of a version
PERIODS: Mapping[str, PeriodLength] = {"month": "month", "quarter": "quarter", "week": "week"}
FIRST_PERIODS = (3, 6, 12)
RATES = {"5 %": 0.05, "1 %": 0.01, "2 %": 0.02, "10 %": 0.1}
TITLE = "What is watched, and compared with what"
ABOUT_METHOD = (
    "paper: each rater's scores are first put on a common scale (z), as the MedHELM paper says; "
    "published: means of the points as they are, as its printed tables were computed"
)
ABOUT_REFERENCES = "sound: without responses whose reference answer jurors found to be faulty"
ABOUT_READING = (
    "independent: what each clinician rated alone; adjudicated: where a difference between clinicians "
    "was settled, the settling reading instead"
)


@dataclass(frozen=True, slots=True)
class Jury:
    """The chosen jurors, None for all that rated; for a panel also its families and its path."""

    jurors: tuple[str, ...] | None = None
    families: tuple[tuple[str, str], ...] = ()
    panel: str | None = None


def of_agreement(engine: Engine, person: Person) -> AgreementQuestion:
    """Ask for benchmark, jury, criterion, method, references, and the reading where there are two."""
    settled = adjudication.has_adjudications(person, engine)
    places = st.container(key="controls").columns(
        (3, 3, 3, 2, 2, 2) if settled else (3, 3, 3, 2, 2)
    )
    benchmark, criterion = benchmark_and_criterion(engine, person, places)
    method = method_of(places[3])
    references = chosen(places[4], "References", KEPT, "references", ABOUT_REFERENCES)
    reading = (
        chosen(places[5], "Reading", READINGS, "reading", ABOUT_READING) if settled else READINGS[0]
    )
    jury = _panel_or_some(places[1], engine, person)
    options = AnalysisOptions(
        jurors=jury.jurors,
        benchmark=benchmark,
        criterion=criterion,
        method=method,
        reading="adjudicated" if reading == "adjudicated" else "independent",
        references="sound" if references == "sound" else "all",
    )
    return AgreementQuestion(options, jury.families)


def of_models(engine: Engine, person: Person) -> ModelsRequest:
    """Ask for jury and criterion, by which models are to be compared."""
    first, second, *_ = st.columns(4)
    jury = panel_or_one(first, engine, person)
    criterion = criterion_of(engine, person, second)
    return ModelsRequest(AnalysisOptions(jurors=jury.jurors, criterion=criterion))


def of_monitoring(engine: Engine, person: Person) -> MonitoringOptions:
    """Ask for period, floor, target, start and false alarms, and for what is watched."""
    targets = _targets(person, engine)
    with st.expander(TITLE), st.container(key="controls"):
        every, least, target, since, alarms = st.columns(5)
        period = chosen(every, "Period", [*PERIODS], "every")
        floor = least.number_input(
            "Smallest acceptable ICC", -1.0, 1.0, 0.4, 0.05, key="least_icc", bind="query-params"
        )
        against = chosen(target, "Compared with", [*targets], "target")
        day = since.date_input(
            "Only from", None, max_value="today", key="since", bind="query-params"
        )
        rate = chosen(alarms, "False alarms a year", [*RATES], "false_alarms")
        places = st.columns(4)
        jury = panel_or_one(places[1], engine, person)
        benchmark, criterion = benchmark_and_criterion(engine, person, places)
        analysis = AnalysisOptions(
            jurors=jury.jurors,
            benchmark=benchmark,
            criterion=criterion,
            method=method_of(places[3]),
        )
    return MonitoringOptions(
        today=datetime.now(UTC).date(),
        analysis=analysis,
        panel=jury.panel,
        every=PERIODS[period],
        since=day if isinstance(day, date) else None,
        floor=round(floor, 2),
        false_alarms=RATES[rate],
        **targets[against],
    )


def benchmark_and_criterion(
    engine: Engine, person: Person, places: Sequence["st.delta_generator.DeltaGenerator"]
) -> tuple[str | None, str | None]:
    """Ask for a benchmark and a criterion; None is all of them, and the composite."""
    names = [one.name for one in study_benchmarks(person, engine)]
    benchmark = chosen(places[0], "Benchmark", [ALL, *names], "benchmark")
    return None if benchmark == ALL else benchmark, criterion_of(engine, person, places[2])


def criterion_of(
    engine: Engine, person: Person, column: "st.delta_generator.DeltaGenerator"
) -> str | None:
    """Ask for a criterion; None is the composite."""
    views = study_benchmarks(person, engine)
    criteria = dict.fromkeys(name for view in views for name in view.rubric.criteria)
    criterion = chosen(column, "Criterion", [WHOLE, *criteria], "criterion")
    return None if criterion == WHOLE else criterion


def method_of(column: "st.delta_generator.DeltaGenerator") -> Method:
    """Ask for the method."""
    method = chosen(column, "Method", METHODS, "method", ABOUT_METHOD)
    return "published" if method == "published" else "paper"


def chosen(
    column: "st.delta_generator.DeltaGenerator",
    label: str,
    options: Sequence[str],
    key: str,
    about: str | None = None,
) -> str:
    """Ask for one of the options, with what they mean; any other value in the URL is ignored."""
    ask: Callable[..., str | None] = column.selectbox
    choice = ask(label, options, key=key, bind="query-params", help=about)
    return choice if choice is not None and choice in options else options[0]


def panels_heard(engine: Engine, person: Person) -> dict[str, Jury]:
    """Return the panels, the study's own and those that ship, of which every juror was heard."""
    jurors_heard = {*rubrics.jurors_with_ratings(person, engine)}
    places = jury_panels.places(runs.own_panels(person, engine))
    read = {name: (source, read_panel(source)) for name, source in places.items()}
    panels = {name: (source, panel.juror) for name, (source, panel) in read.items()}
    return {
        name: Jury(
            tuple(juror.name for juror in jurors),
            tuple((juror.name, juror.family) for juror in jurors),
            source,
        )
        for name, (source, jurors) in panels.items()
        if {juror.name for juror in jurors} <= jurors_heard
    }


def _panel_or_some(
    column: "st.delta_generator.DeltaGenerator", engine: Engine, person: Person
) -> Jury:
    """Ask who sits: everybody heard, a panel that was heard, or some jurors by name."""
    jurors, panels = rubrics.jurors_with_ratings(person, engine), panels_heard(engine, person)
    options = [EVERY_JUROR, *(f"panel {panel}" for panel in panels)]
    jury = chosen(column, "Jury", [*options, *([SOME] if len(jurors) > 1 else [])], "jury")
    if jury != SOME:
        return panels.get(jury.removeprefix("panel "), Jury())
    seated = st.multiselect(
        "Jurors of this jury",
        list(jurors),
        default=[*jurors][:1],
        key="jurors",
        bind="query-params",
    )
    return Jury(tuple(seated)) if seated else Jury()


def panel_or_one(
    column: "st.delta_generator.DeltaGenerator", engine: Engine, person: Person
) -> Jury:
    """Ask who sits: everybody heard, a panel that was heard, or a single juror."""
    panels = {f"panel {name}": jury for name, jury in panels_heard(engine, person).items()}
    single = {f"only {name}": Jury((name,)) for name in rubrics.jurors_with_ratings(person, engine)}
    juries = {EVERY_JUROR: Jury()} | panels | single
    return juries[chosen(column, "Jury", [*juries], "jury")]


def _targets(person: Person, engine: Engine) -> dict[str, dict[str, Any]]:
    """Return the possible baselines: the first periods, or a frozen report."""
    first = {f"first {n} periods": {"baseline": n} for n in FIRST_PERIODS}
    reports = [report.id for report in rubrics.frozen_reports(person, engine)]
    return first | {f"report {report}": {"baseline_report": report} for report in reports}


def chosen_rubric(engine: Engine, person: Person) -> Rubric:
    """Ask which rubric, of the study or of those that ship; the choice stands in the address."""
    labels = {
        f"{one.name} {one.version[:LONGEST_VERSION]} ({one.sha256[:SHORT]})": one
        for one in _known(rubrics.study_rubrics(person, engine))
    }
    name = st.selectbox("Rubric", [*labels], key="rubric", bind="query-params")
    return labels.get(name, next(iter(labels.values())))


def _known(own: Sequence[StudyRubric]) -> list[Rubric]:
    """Return the study's rubrics, those in use first, and those that ship besides."""
    used = [entry.rubric for entry in sorted(own, key=lambda entry: not entry.benchmarks)]
    own_hashes = {rubric.sha256 for rubric in used}
    return used + [one for one in map(read_rubric, shipped()) if one.sha256 not in own_hashes]

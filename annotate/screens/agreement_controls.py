"""What agreement is asked for: chosen from what the study has, and kept in the URL."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st
from sqlalchemy import Engine

from annotate.figures.shown import AgreementQuestion
from calibration.values import AnalysisOptions
from data import queries
from data.person import Person

ALL, WHOLE, EVERY_JUROR, SOME = "all combined", "composite", "all heard", "some jurors"
METHODS, KEPT = ("paper", "published"), ("all", "sound")


def asked(engine: Engine, person: Person) -> AgreementQuestion:
    """Ask for benchmark, jury, criterion, method and references."""
    places = st.container(key="controls").columns((3, 3, 3, 2, 2))
    benchmark, criterion = benchmark_and_criterion(engine, person, places)
    method = chosen(places[3], "Method", METHODS, "method")
    kept = chosen(places[4], "References", KEPT, "references")
    jury = jury_of(queries.jurors_heard(person, engine), places[1])
    options = AnalysisOptions(
        jurors=jury.jurors,
        benchmark=benchmark,
        criterion=criterion,
        method="published" if method == "published" else "paper",
        references="sound" if kept == "sound" else "all",
    )
    return AgreementQuestion(options, jury.families)


@dataclass(frozen=True, slots=True)
class Jury:
    """Who sits; None is everybody heard. A panel's families come with it."""

    jurors: tuple[str, ...] | None = None
    families: tuple[tuple[str, str], ...] = ()


def jury_of(heard: Sequence[str], place: "st.delta_generator.DeltaGenerator") -> Jury:
    """Ask who sits: everybody heard, a panel that was heard, or some jurors by name."""
    panels = _panels({*heard})
    options = [EVERY_JUROR, *(f"panel {one}" for one in panels)]
    jury = chosen(place, "Jury", [*options, *([SOME] if len(heard) > 1 else [])], "jury")
    if jury != SOME:
        return panels.get(jury.removeprefix("panel "), Jury())
    named = st.multiselect(
        "Jurors who sit", list(heard), default=[*heard][:1], key="jurors", bind="query-params"
    )
    return Jury(tuple(named)) if named else Jury()


def benchmark_and_criterion(
    engine: Engine, person: Person, places: Sequence["st.delta_generator.DeltaGenerator"]
) -> tuple[str | None, str | None]:
    """Ask for a benchmark and a criterion; None is all of them, and the composite."""
    found = queries.materials(person, engine)
    criteria = dict.fromkeys(name for one in found for name in one.view.rubric.criteria)
    names = [one.view.name for one in found]
    benchmark = chosen(places[0], "Benchmark", [ALL, *names], "benchmark")
    criterion = chosen(places[2], "Criterion", [WHOLE, *criteria], "criterion")
    return (
        None if benchmark == ALL else benchmark,
        None if criterion == WHOLE else criterion,
    )


def _panels(heard: set[str]) -> dict[str, Jury]:
    """Return the panels that ship and of which every juror was heard."""
    from jury.panel import read_panel, shipped

    panels = {name: read_panel(name).juror for name in shipped()}
    return {
        name: Jury(
            tuple(one.name for one in jurors), tuple((one.name, one.family) for one in jurors)
        )
        for name, jurors in panels.items()
        if {one.name for one in jurors} <= heard
    }


def chosen(
    place: "st.delta_generator.DeltaGenerator", label: str, options: Sequence[str], key: str
) -> str:
    """Ask for one of what there is; what the URL says besides is not taken."""
    ask: Callable[..., str | None] = place.selectbox
    found = ask(label, options, key=key, bind="query-params")
    return found if found is not None and found in options else options[0]

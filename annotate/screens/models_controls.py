"""What models are compared by: a jury and a criterion, chosen from what the study has."""

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st
from sqlalchemy import Engine

from annotate import jury_panels
from annotate.screens.agreement_controls import EVERY_JUROR, WHOLE, chosen
from calibration.values import AnalysisOptions
from data import queries
from data.person import Person
from medjury.services.models import ModelsRequest


@dataclass(frozen=True, slots=True)
class Jury:
    """Who sits, None for all; and where their panel is read, if they are one."""

    jurors: tuple[str, ...] | None = None
    panel: str | None = None


def asked(engine: Engine, person: Person) -> tuple[Jury, ModelsRequest]:
    """Ask for jury and criterion; return the jury, and what is to be compared by it."""
    found = queries.materials(person, engine)
    criteria = dict.fromkeys(name for one in found for name in one.view.rubric.criteria)
    first, second, *_ = st.columns(4)
    jury = jury_of(first, engine, person)
    criterion = chosen(second, "Criterion", [WHOLE, *criteria], "criterion")
    options = AnalysisOptions(
        jurors=jury.jurors, criterion=None if criterion == WHOLE else criterion
    )
    return jury, ModelsRequest(options)


def jury_of(place: "st.delta_generator.DeltaGenerator", engine: Engine, person: Person) -> Jury:
    """Ask who sits."""
    juries = _juries(engine, person)
    return juries[chosen(place, "Jury", [*juries], "jury")]


def _juries(engine: Engine, person: Person) -> Mapping[str, Jury]:
    """Return what can sit: everybody heard, panels of which all were heard, and single jurors."""
    from jury.panel import read_panel

    heard = queries.jurors_heard(person, engine)
    places = jury_panels.places(queries.own_panels(person, engine))
    seats = {name: tuple(one.name for one in read_panel(at).juror) for name, at in places.items()}
    panels = {
        f"panel {name}": Jury(who, places[name])
        for name, who in seats.items()
        if {*who} <= {*heard}
    }
    return {EVERY_JUROR: Jury()} | panels | {f"only {name}": Jury((name,)) for name in heard}

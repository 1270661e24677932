"""What models are compared by: a jury and a criterion, chosen from what the study has."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st
from sqlalchemy import Engine

from annotate import jury_panels
from calibration.values import AnalysisOptions
from data import queries
from data.person import Person
from medjury.services.models import ModelsRequest

WHOLE, EVERY_JUROR = "composite", "all heard"


@dataclass(frozen=True, slots=True)
class Jury:
    """Who sits, None for all; and where their panel is read, if they are one."""

    jurors: tuple[str, ...] | None = None
    panel: str | None = None


def asked(engine: Engine, person: Person) -> tuple[Jury, ModelsRequest]:
    """Ask for jury and criterion; return the jury, and what is to be compared by it."""
    found = queries.materials(person, engine)
    criteria = dict.fromkeys(name for one in found for name in one.view.rubric.criteria)
    juries = _juries(engine, person)
    first, second, *_ = st.columns(4)
    jury = juries[_chosen(first, "Jury", [*juries], "jury")]
    criterion = _chosen(second, "Criterion", [WHOLE, *criteria], "criterion")
    options = AnalysisOptions(
        jurors=jury.jurors, criterion=None if criterion == WHOLE else criterion
    )
    return jury, ModelsRequest(options)


def _juries(engine: Engine, person: Person) -> Mapping[str, Jury]:
    """Return what can sit: everybody heard, panels of which all were heard, and single jurors."""
    from jury.panel import read_panel, shipped

    heard = queries.jurors_heard(person, engine)
    own = queries.own_panels(person, engine)
    places = {name: str(jury_panels.on_disk(name, text)) for name, text in own.items()}
    places |= {name: name for name in shipped()}
    seats = {name: tuple(one.name for one in read_panel(at).juror) for name, at in places.items()}
    panels = {
        f"panel {name}": Jury(who, places[name])
        for name, who in seats.items()
        if {*who} <= {*heard}
    }
    return {EVERY_JUROR: Jury()} | panels | {f"only {name}": Jury((name,)) for name in heard}


def _chosen(
    place: "st.delta_generator.DeltaGenerator", label: str, options: Sequence[str], key: str
) -> str:
    """Ask for one of what there is; what the URL says besides is not taken."""
    ask: Callable[..., str | None] = place.selectbox
    found = ask(label, options, key=key, bind="query-params")
    return found if found is not None and found in options else options[0]

"""What agreement is asked for: chosen from what the study has, and kept in the URL."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st
from sqlalchemy import Engine

from data import queries
from data.person import Person

ALL, WHOLE, EVERY_JUROR, SOME = "all combined", "composite", "all heard", "some jurors"
METHODS, KEPT = ("paper", "published"), ("all", "sound")
POOLS, RESPONSES = ("mean", "median", "weighted"), ("own", "common")
SIZES = ("1-5", "1-2", "1-3", "1", "2", "3", "4", "5")
Asked = tuple[str, ...]


def asked(engine: Engine, person: Person) -> Asked:
    """Ask for benchmark, jury, criterion, method and references; return the arguments."""
    places = st.container(key="controls").columns((3, 3, 3, 2, 2))
    about = _benchmark_and_criterion(engine, person, places)
    method = _chosen(places[3], "Method", METHODS, "method")
    kept = _chosen(places[4], "References", KEPT, "references")
    jury = jury_of(queries.jurors_heard(person, engine), places[1])
    return (*about, *jury, f"--method={method}", f"--references={kept}")


@dataclass(frozen=True, slots=True)
class Ranked:
    """Arguments that choose what juries are judged on, and those and how they are ranked."""

    scope: Asked
    ranking: Asked


def of_juries(engine: Engine, person: Person) -> Ranked:
    """Ask what the ranking of juries takes; it has no panels, and all references count."""
    places = st.container(key="controls").columns((3, 3, 2, 2, 2, 2))
    about = _benchmark_and_criterion(engine, person, (places[0], places[0], places[1]))
    method = _chosen(places[2], "Method", METHODS, "method")
    sizes = _chosen(places[3], "Jurors in a jury", SIZES, "sizes")
    pool = _chosen(places[4], "Pooled by", POOLS, "pool")
    common = _chosen(places[5], "Responses", RESPONSES, "responses")
    scope = (*about, f"--method={method}")
    size = () if sizes == SIZES[0] else (f"--sizes={sizes}",)
    both = ("--common",) if common == RESPONSES[1] else ()
    return Ranked(scope, (*scope, f"--pool={pool}", *size, *both))


def jury_of(heard: Sequence[str], place: "st.delta_generator.DeltaGenerator") -> Asked:
    """Ask who sits: everybody heard, a panel that was heard, or some jurors by name."""
    panels = {f"panel {one}": (f"--panel={one}",) for one in _panels({*heard})}
    options = [EVERY_JUROR, *panels, *([SOME] if len(heard) > 1 else [])]
    jury = _chosen(place, "Jury", options, "jury")
    if jury != SOME:
        return panels.get(jury, ())
    named = st.multiselect(
        "Jurors who sit", list(heard), default=[*heard][:1], key="jurors", bind="query-params"
    )
    return (f"--jurors={','.join(named)}",) if named else ()


def _benchmark_and_criterion(
    engine: Engine, person: Person, places: Sequence["st.delta_generator.DeltaGenerator"]
) -> Asked:
    found = queries.materials(person, engine)
    criteria = dict.fromkeys(name for one in found for name in one.view.rubric.criteria)
    names = [one.view.name for one in found]
    benchmark = _chosen(places[0], "Benchmark", [ALL, *names], "benchmark")
    criterion = _chosen(places[2], "Criterion", [WHOLE, *criteria], "criterion")
    of = () if benchmark == ALL else (f"--benchmark={benchmark}",)
    return (*of, *(() if criterion == WHOLE else (f"--criterion={criterion}",)))


def _panels(heard: set[str]) -> list[str]:
    """Return the panels that ship and of which every juror was heard."""
    from jury.panel import read_panel, shipped

    seats: Mapping[str, set[str]] = {
        name: {one.name for one in read_panel(name).juror} for name in shipped()
    }
    return [name for name, who in seats.items() if who <= heard]


def _chosen(
    place: "st.delta_generator.DeltaGenerator", label: str, options: Sequence[str], key: str
) -> str:
    """Ask for one of what there is; what the URL says besides is not taken."""
    ask: Callable[..., str | None] = place.selectbox
    found = ask(label, options, key=key, bind="query-params")
    return found if found is not None and found in options else options[0]

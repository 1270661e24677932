"""What a study is made of: benchmarks, their rubrics, and their place in the taxonomy."""

import streamlit as st
from sqlalchemy import Engine

from annotate.screens.markup import Cell, heading, refused, table
from data import queries
from data.errors import MedjuryError
from data.person import Person
from data.queries import Material
from data.queries.models import taxonomy
from data.schema import Role
from data.store.responses import Place
from data.store.steering import set_place

HEADS = (
    *("Benchmark", "Category", "Subcategory", "Rubric"),
    *("Criteria", "Scale", "Instances", "References", "Responses", "Masked"),
)
NO_PLACE = "not placed"
TOLD = (
    '<p class="mj-said">A category in brackets is where MedHELM has the benchmark of this name; it '
    "counts until another is set. <b>References</b> are instances with a reference text, <b>Masked</b> "
    "responses in which the author's name is hidden from raters. Responses of the training round are "
    "left out.</p>"
)


def show(engine: Engine, person: Person) -> None:
    """Show every benchmark, and let a coordinator place one in the taxonomy."""
    found = queries.materials(person, engine)
    st.html(
        heading("Benchmarks")
        + table("Benchmarks of this study", HEADS, [_row(one) for one in found], words=4)
        + TOLD
    )
    if person.role == Role.COORDINATOR:
        _place(engine, person, found)


def _row(one: Material) -> list[Cell]:
    view = one.view
    category, subcategory = _shown(one)
    return [
        *(view.name, category or None, subcategory or None),
        f"{view.rubric.name} {view.rubric.version}",
        len(view.rubric.criteria),
        f"{view.rubric.scale.min} to {view.rubric.scale.max}",
        *(view.instances, one.references, view.responses, one.masked),
    ]


def _shown(one: Material) -> tuple[str, str]:
    """Return a benchmark's own place, else the taxonomy's in brackets."""
    if one.view.category or not one.known[0]:
        return one.view.category, one.view.subcategory
    return f"({one.known[0]})", f"({one.known[1]})"


def _place(engine: Engine, person: Person, found: list[Material]) -> None:
    """Ask where a benchmark belongs."""
    st.html(heading("Place in the taxonomy"))
    columns = st.columns((3, 4, 5, 2), vertical_alignment="bottom")
    views = {one.view.name: one for one in found}
    name = columns[0].selectbox("Benchmark", list(views), key="place-of")
    own = views[name].view
    places = taxonomy()
    category = columns[1].selectbox(
        "Category", ["", *places], _at(["", *places], own.category), _named, key=f"category-{name}"
    )
    parts = ["", *places.get(category, [])]
    subcategory = columns[2].selectbox(
        "Subcategory", parts, _at(parts, own.subcategory), _named, key=f"part-{name}-{category}"
    )
    if columns[3].button("Set place", key="place-now", width="stretch"):
        try:
            set_place(person, engine, name, Place(category, subcategory))
        except MedjuryError as error:
            st.html(refused(str(error)))
            return
        st.rerun()


def _at(options: list[str], value: str) -> int:
    return options.index(value) if value in options else 0


def _named(value: str) -> str:
    return value or NO_PLACE

"""The design that a study would have: dealt from what is stored, and its plan as figures."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Engine

from annotate.assign import Assigned, Design, Item, top_up
from annotate.plan import Plan, plan_of
from data.errors import BadInput
from data.queries import assigned, design_items

NOTHING = "the study has no responses yet: `medjury import FILE` brings them in"


@dataclass(frozen=True, slots=True)
class DesignRequest:
    """What is asked of a design.

    Attributes
    ----------
    raters
        Handles of those who can be given work.
    per_response
        Clinicians a response.
    repeats
        Share of each clinician's responses shown to them again.
    """

    raters: tuple[str, ...]
    per_response: int
    repeats: float
    seed: int


@dataclass(frozen=True, slots=True)
class PlannedDesign:
    """What a design comes to, without a word on who wrote which response.

    Attributes
    ----------
    load
        First readings of each clinician.
    overlap
        Responses shared by each pair, keyed "a|b".
    repeats
        Hidden repeats of all clinicians.
    """

    per_response: int
    load: Mapping[str, int]
    overlap: Mapping[str, int]
    repeats: int
    plan: Plan


def designed(engine: Engine, request: DesignRequest) -> Design:
    """Return the design for every response of the study, begun work staying where it is.

    The same study and request give the same design everywhere.

    Raises
    ------
    BadInput
        If there is nothing to deal, or no such design.
    """
    items = [
        Item(one.response, one.instance, one.model, one.benchmark) for one in design_items(engine)
    ]
    if not items:
        raise BadInput(NOTHING)
    existing = [
        Assigned(one.rater, one.response, one.pass_, one.begun, one.position)
        for one in assigned(engine)
    ]
    raters, repeats = list(request.raters), request.repeats
    return top_up(existing, items, raters, request.per_response, request.seed, repeats=repeats)


def planned_design(engine: Engine, request: DesignRequest) -> PlannedDesign:
    """Return what the design for a study would come to."""
    design = designed(engine, request)
    figures = design.load, design.overlap, design.repeats
    return PlannedDesign(design.per_response, *figures, plan_of(design))

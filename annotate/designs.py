"""The design that a study would have: dealt from what is stored, and its plan as figures."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Engine

from annotate.assign import Assigned, Design, Item, top_up
from annotate.plan import Plan, plan_of
from data.errors import BadInput
from data.queries import assigned, design_items
from data.queries.pace import pace_of, work_of_responses

NOTHING = "the study has no responses yet: `medjury study import FILE` brings them in"


@dataclass(frozen=True, slots=True)
class DesignRequest:
    """The request for a design.

    Attributes
    ----------
    raters
        Handles of those who can be given work.
    per_response
        Clinicians a response.
    repeats
        Share of each clinician's responses shown to them again.
    minutes
        Of a showing, for the plan; None takes the study's own pace, or one from words.
    """

    raters: tuple[str, ...]
    per_response: int
    repeats: float
    seed: int
    minutes: float | None = None


@dataclass(frozen=True, slots=True)
class PlannedDesign:
    """The figures of a planned design, without authors.

    Attributes
    ----------
    load
        First readings of each clinician.
    overlap
        Responses shared by each pair, keyed "a|b".
    repeats
        Hidden repeats of all clinicians; `repeats_of` of each.
    """

    per_response: int
    load: Mapping[str, int]
    overlap: Mapping[str, int]
    repeats: int
    plan: Plan
    repeats_of: Mapping[str, int]


def designed(engine: Engine, request: DesignRequest) -> Design:
    """Return the design for every response of the study, begun work staying where it is.

    The same study and request give the same design everywhere.

    Raises
    ------
    BadInput
        If there is nothing to deal, or no such design.
    """
    work = work_of_responses(engine)
    items = [
        Item(
            *(item.response, item.instance, item.model, item.benchmark),
            *(work[item.response].words, work[item.response].criteria),
        )
        for item in design_items(engine)
    ]
    if not items:
        raise BadInput(NOTHING)
    existing = [
        Assigned(slot.rater, slot.response, slot.pass_, slot.begun, slot.position)
        for slot in assigned(engine)
    ]
    raters, repeats = list(request.raters), request.repeats
    return top_up(existing, items, raters, request.per_response, request.seed, repeats=repeats)


def planned_design(engine: Engine, request: DesignRequest) -> PlannedDesign:
    """Return the figures of the design that a study would have."""
    design = designed(engine, request)
    figures = design.load, design.overlap, design.repeats
    plan = plan_of(design, pace_of(engine, request.minutes))
    repeats_of = {rater: design.repeats_of(rater) for rater in design.raters}
    return PlannedDesign(design.per_response, *figures, plan, repeats_of)

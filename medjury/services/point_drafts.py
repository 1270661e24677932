"""Drafts of points by a juror of a panel: on which rubric they are made, and what they would take."""

from dataclasses import dataclass

from sqlalchemy import Engine

from data.points import points_rubric
from data.queries import benchmarks
from data.rubric import Rubric
from jury.cost import JurorEstimate
from jury.panel import Panel
from jury.point_drafts import DraftQuestion, draft_estimate


@dataclass(frozen=True, slots=True)
class DraftScope:
    """Which juror of a panel, by default its first, is to draft points of which benchmark."""

    panel: Panel
    juror: str
    benchmark: str


def drafting_of(engine: Engine, scope: DraftScope, rubric: Rubric | None = None) -> DraftQuestion:
    """Return what a juror is asked: by default on the rubric of points that the benchmark is on.

    A benchmark that is on none gets the shipped one.
    """
    own = {one.name: one.rubric for one in benchmarks(engine)}.get(scope.benchmark)
    if rubric is None:
        rubric = own if own is not None and own.points else points_rubric()
    return DraftQuestion(scope.panel, scope.juror, scope.benchmark, rubric)


def drafts_estimate(engine: Engine, scope: DraftScope) -> JurorEstimate:
    """Return what drafting would take; nothing is sent or stored.

    Raises
    ------
    BadInput, Conflict, Unknown
        If the panel has no such juror, or the benchmark cannot be put on points.
    """
    return draft_estimate(engine, drafting_of(engine, scope))

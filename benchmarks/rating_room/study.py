"""A study to rate, with the sign-in codes of its clinicians."""

import random
from collections.abc import Sequence
from pathlib import Path

from sqlmodel import Session, select
from texts import Text

from data.database import open_study
from data.importers.rows import Origin, ResponseRow
from data.rubric import read_rubric
from data.schema import Response
from data.study.assignments import Slot, assign
from data.study.people import invite
from data.study.responses import import_responses

RUBRIC = "generic"


def build(path: Path, texts: Sequence[Text], load: dict[str, int], seed: int = 0) -> dict[str, str]:
    """Make a study at `path` and return each clinician's code; `load` says how many they rate."""
    engine = open_study(f"sqlite:///{path}", create=True)
    import_responses(engine, [_row(n, one) for n, one in enumerate(texts)], _rubric)
    with Session(engine) as session:
        keys = [key or 0 for key in session.exec(select(Response.id))]
    codes = {one.handle: one.code for one in invite(engine, list(load))}
    draw = random.Random(seed)
    slots = [
        Slot(who, key, place)
        for who, count in load.items()
        for place, key in enumerate(draw.sample(keys, count))
    ]
    assign(engine, slots, seed=seed)
    engine.dispose()
    return codes


def _rubric(_: str) -> object:
    return read_rubric(RUBRIC)


def _row(number: int, text: Text) -> ResponseRow:
    return ResponseRow(
        origin=Origin("made up", number),
        instance_id=text.name,
        benchmark="made_up",
        context=text.source,
        prompt="Write the note of this visit.",
        reference=None,
        response_id=text.name,
        model=f"model {number % 3}",
        response=text.response,
    )

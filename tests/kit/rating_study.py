"""A study to rate: its rubric, rows, raters and sessions, and what is stored of them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from annotate.sessions import SESSION_COOKIE, cookie_name, issue
from data.importers.ratings import expert_rows
from data.importers.responses import PairRow
from data.importers.rows import Origin, ResponseRow
from data.importers.table import TableFile
from data.person import Person
from data.rubric import Criterion, Rubric, Scale, read_rubric
from data.schema import Assignment, Rater, Rating, Response
from data.study import room
from data.study.assignments import Item, Slot, assign
from data.study.pairs import import_pairs
from data.study.people import check_code, invite
from data.study.responses import import_responses
from data.study.training import import_experts

DIALOGUE = "[doctor] Any fever?\n[patient] No fever.\n[doctor] Pain?\n[patient] Mild, in the knee."

FULL = {"accuracy": 4, "completeness": 2, "clarity": 5}


def rubric(*criteria: str, low: int = 1, high: int = 5, name: str = "house_rubric") -> Rubric:
    """Return a rubric with these criteria and an anchor for every point."""
    points = range(low, high + 1)
    return Rubric(
        name=name,
        version="1",
        audience="a clinician",
        gold="when_needed",
        scale=Scale(min=low, max=high),
        criterion=tuple(
            Criterion(
                name=criterion_name,
                question=f"How good is the {criterion_name}?",
                anchors={
                    point: f"Point {point} of {criterion_name}: as good as {point}"
                    for point in points
                },
            )
            for criterion_name in criteria or ("accuracy", "completeness", "clarity")
        ),
        prompt="{{context}} {{response}} {{criteria}} {{schema}}",
    )


def row(number: int, response: str, **other: str | None) -> ResponseRow:
    """Return a row to import; what is not given is made up."""
    values: dict[str, str | None] = {
        "instance_id": f"inst-hidden-{number}",
        "benchmark": "bench_hidden",
        "context": DIALOGUE,
        "prompt": "Write the note.",
        "reference": None,
        "response_id": f"resp-hidden-{number}",
        "model": ("gpt-9-secret", "llama-hidden")[number % 2],
    }
    return ResponseRow(Origin("made up", number), **(values | other), response=response)  # type: ignore[arg-type] # all are there


def build(
    engine: Engine, rows: Sequence[ResponseRow], raters: Sequence[str], scale: Rubric
) -> dict[str, str]:
    """Add rows to a study, each rated by each of these raters in order; return their codes."""
    if scale.compares:
        rows = as_pairs(engine, rows, scale)
    else:
        import_responses(engine, rows, lambda _: scale)
    with Session(engine) as session:
        stored = session.exec(select(Response.response_id, Response.id))
        keys = {name: key or 0 for name, key in stored}
    codes = {person.handle: person.code for person in invite(engine, raters)}
    slots = [
        Slot(rater, keys[response.response_id], n)
        for rater in raters
        for n, response in enumerate(rows)
    ]
    assign(engine, slots, seed=0)
    return codes


def as_pairs(engine: Engine, rows: Sequence[ResponseRow], scale: Rubric) -> Sequence[ResponseRow]:
    """Import each row as the first of a pair with another text; return the rows that name the pairs."""
    others = [
        replace(one, response_id=f"{one.response_id}-b", model="other", response="Another.")
        for one in rows
    ]
    names = [replace(one, response_id=f"{one.response_id}-pair") for one in rows]
    pairs = [
        PairRow(one.origin, name.response_id, (one, other))
        for one, other, name in zip(rows, others, names, strict=True)
    ]
    import_pairs(engine, pairs, scale, lambda _: None)
    return names


def comparing(*criteria: str) -> Rubric:
    shipped = read_rubric("preference")
    named = [shipped.criterion[0].model_copy(update={"name": name}) for name in criteria]
    return shipped.model_copy(update={"criterion": tuple(named)})


def train(
    engine: Engine, folder: Path, scale: Rubric, practice: Sequence[ResponseRow], experts: str
) -> None:
    """Give a study training: responses to practise on, and experts' scores, the text of a CSV file."""
    import_responses(engine, practice, lambda _: scale)
    path = folder / "experts.csv"
    path.write_text(experts, "utf-8")
    import_experts(engine, expert_rows(TableFile(path)))


def person_of(engine: Engine, code: str) -> Person:
    """Return whom a sign-in code lets in."""
    person = check_code(engine, code).person
    assert person is not None
    return person


def session_of(engine: Engine, person: Person, https: bool = False) -> str:
    """Return a new session of a person, as a browser sends it."""
    return f"{cookie_name(engine, SESSION_COOKIE, https)}={issue(engine, person)}"


def in_browser(cookie: str, address: str) -> Any:
    """Return a session as Playwright puts it into a browser."""
    name, _, value = cookie.partition("=")
    return {"name": name, "value": value, "url": address, "secure": address.startswith("https")}


def message(code: str, seq: int = 1, **other: object) -> dict[str, object]:
    entered = {"scores": FULL, "comment": "", "seconds": 3, "submit": False}
    return {"code": code, "seq": seq, "attempt": 0, "by": "page1"} | entered | other


def codes_of(engine: Engine, rater: str) -> list[str]:
    """Return the assignment codes of a rater, in their order."""
    query = select(Assignment.code).join(Rater, col(Rater.id) == col(Assignment.rater))
    with Session(engine) as session:
        mine = query.where(Rater.handle == rater).order_by(col(Assignment.position))
        return list(session.exec(mine))


def task_of(engine: Engine, rater: int, code: str = "") -> room.Task:
    """Return a rater's response by its code, or without one the response that the rater is at."""
    found = room.task(engine, rater, code) if code else room.next_task(engine, rater).task
    assert found is not None
    return found


def scores_of(engine: Engine, rater: str) -> list[tuple[int, str, float]]:
    """Return every rating row of a rater: response, criterion, score."""
    query = select(Rating).join(Rater, col(Rater.id) == col(Rating.rater))
    with Session(engine) as session:
        rows = session.exec(query.where(Rater.handle == rater).order_by(col(Rating.id)))
        return [(one.response, one.criterion, one.score) for one in rows]


def items(count: int, models: int = 3, benchmarks: int = 1) -> list[Item]:
    """Return responses of every model to each of as many instances as are needed."""
    return [
        Item(n + 1, n // models, f"model {n % models}", f"b{n // models % benchmarks}")
        for n in range(count)
    ]


def names(count: int) -> list[str]:
    return [f"dr_{chr(97 + n)}" for n in range(count)]


def spread(values: Sequence[int]) -> int:
    return max(values, default=0) - min(values, default=0)

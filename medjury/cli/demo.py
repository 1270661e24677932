"""`medjury demo`: the whole chain on a study of our own, every rater in it simulated."""

from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Engine

from data.database import shown
from data.errors import Conflict
from data.importers.responses import ResponseFile
from data.importers.table import TableFile
from data.person import OPERATOR
from data.rubric import read_rubric
from data.samples import (
    CALCULATIONS,
    CLINICIANS,
    CLOSED_ENDED,
    CLOSED_ENDED_METRIC,
    KEYS,
    RESPONSES,
    SimulatedReading,
    clinicians_ratings,
    marked_instances,
    marked_readings,
    texts,
)
from data.samples import benchmarks as sample_benchmarks
from data.schema import Role
from data.study.assignments import Slot, assign
from data.study.people import add_people, invite, people, renew
from data.study.ratings import import_ratings, submit
from data.study.responses import TaxonomyPlace, import_responses
from data.study.standing import benchmarks, design_items, pairs, showings
from jury.panel import read_panel
from jury.run import run_panel
from medjury.cli.agreement import print_agreement
from medjury.cli.metrics import measurable, run_metrics
from medjury.cli.options import Port, Study
from medjury.cli.output import counted, emit, say
from medjury.cli.people import print_codes, serve
from medjury.services.design.assign import design
from medjury.services.design.plan import Item
from medjury.services.measuring import score_answers, way
from medjury.services.run_words import result_lines

GUEST = "guest"
COORDINATOR = "coordinator"
GUESTS_SHARE = 12
SEED = 0
DRAW = 10  # chosen of 16 draws: agreement and spread like those of published studies
REPEATS = 0.1
# Benchmarks of few responses are read by one pair each, so that the pair shares them all.
PAIRS = {
    "demo_visit_notes": ["sim-clinician-1", "sim-clinician-2"],
    "demo_care_plans": ["sim-clinician-3", "sim-clinician-4"],
}


def demo(
    study: Annotated[Study, "context"],
    serve_page: Annotated[
        bool, typer.Option("--serve/--no-serve", help="Serve the pages at the end.")
    ] = True,
    port: Port = 8501,
) -> None:
    """Make a demo study with simulated raters, print the agreement, serve the pages.

    Example:
    medjury demo --no-serve
    """
    engine = study.open(create=True)
    refuse_other_study(engine, study.url)
    fill(engine)
    print_agreement(engine)
    codes = invite(engine, [GUEST]) or [renew(engine, GUEST)]
    coordinators = [
        person.name for person in people(OPERATOR, engine) if person.name == COORDINATOR
    ]
    codes += (
        [renew(engine, COORDINATOR)]
        if coordinators
        else add_people(OPERATOR, engine, [COORDINATOR], Role.COORDINATOR)
    )
    assign(engine, _guests_slots(engine), SEED)
    say(
        "Everything above is simulated. Sign in as a guest clinician to rate some responses yourself, "
        "or as the coordinator to see who has rated what."
    )
    print_codes(codes)
    if serve_page:
        serve(study, port)


def fill(engine: Engine) -> None:
    """Bring in the demo's responses and let its simulated clinicians, jurors and metrics rate."""
    _import(engine, RESPONSES)
    _let_clinicians_rate(engine)
    judged = [sample["name"] for sample in sample_benchmarks() if sample["name"] != CLOSED_ENDED]
    emit(*result_lines(run_panel(engine, read_panel("simulated"), benchmarks=judged)))
    texts_of_judged = [pair for pair in pairs(engine) if pair.benchmark != CLOSED_ENDED]
    with_reference = [pair for pair in texts_of_judged if pair.reference is not None]
    for name in measurable():
        run_metrics(engine, {name: way(name)}, (with_reference, len(texts_of_judged)))
    _import(engine, CALCULATIONS)
    _score_calculations(engine)


def _import(engine: Engine, path: Path) -> None:
    places = {
        sample["name"]: TaxonomyPlace(sample["category"], sample["subcategory"])
        for sample in sample_benchmarks()
    }
    rubrics = {sample["name"]: read_rubric(sample["rubric"]) for sample in sample_benchmarks()}
    import_responses(
        engine, ResponseFile(TableFile(path)), lambda name: rubrics[name], places=places
    )


def _let_clinicians_rate(engine: Engine) -> None:
    """Store the simulated clinicians' ratings: some as if made here, with marks, the others as a file."""
    rows, instances = texts(), marked_instances()
    marking: list[SimulatedReading] = []
    elsewhere: list[SimulatedReading] = []
    for reading in _readings(engine):
        is_marking = not reading.pass_ and rows[reading.response_id]["instance_id"] in instances
        (marking if is_marking else elsewhere).append(reading)
    import_ratings(engine, clinicians_ratings(elsewhere, DRAW), simulated=True)
    keys = {item.response_id: item.response for item in design_items(engine)}
    slots = [
        Slot(one.clinician, keys[one.response_id], position) for position, one in enumerate(marking)
    ]
    assign(engine, slots, SEED)
    assigned = showings(engine)
    for one in marked_readings(marking, DRAW):
        showing = assigned[one.clinician, one.response_id]
        submit(engine, showing.rater, showing.code, one.reply, one.seconds)


def _score_calculations(engine: Engine) -> None:
    """Score the answers that have a key by it."""
    [result], _ = score_answers(engine, (CLOSED_ENDED_METRIC,), CLOSED_ENDED, KEYS)
    say(f"{result.metric}: scored {counted(result.scored, 'answer')} of {CLOSED_ENDED} by its key")


def refuse_other_study(engine: Engine, url: str) -> None:
    """Refuse to mix demo data into a study of somebody's own."""
    ours = {sample["name"] for sample in sample_benchmarks()}
    others = [benchmark.name for benchmark in benchmarks(engine) if benchmark.name not in ours]
    if others:
        raise Conflict(
            f"{shown(url)} holds a study of your own ({others[0]}): the demo is not mixed into it; "
            "name another database, such as --db sqlite:///demo.db"
        )


def _readings(engine: Engine) -> Iterator[SimulatedReading]:
    """Yield who of the simulated clinicians reads what: two on each response, a tenth of it twice."""
    all_items = [item for item in design_items(engine) if item.benchmark != CLOSED_ENDED]
    names = {item.response: item.response_id for item in all_items}
    for benchmark in dict.fromkeys(item.benchmark for item in all_items):
        items = [
            Item(item.response, item.instance, item.model, item.benchmark)
            for item in all_items
            if item.benchmark == benchmark
        ]
        clinicians = PAIRS.get(benchmark, list(CLINICIANS))
        for slot in design(items, clinicians, per_response=2, repeats=REPEATS, seed=SEED).slots:
            yield SimulatedReading(slot.rater, names[slot.response], slot.pass_)


def _guests_slots(engine: Engine) -> list[Slot]:
    """Return a dozen responses for a guest, each of another instance, of every benchmark some."""
    items = [item for item in design_items(engine) if item.benchmark != CLOSED_ENDED]
    first = {item.instance: item.response for item in reversed(items)}
    chosen = sorted(first.values())[:: ceil(len(first) / GUESTS_SHARE)]
    return [Slot(GUEST, response, position) for position, response in enumerate(chosen)]

"""`medjury demo`: the whole chain on a study of our own, every rater in it simulated."""

from collections.abc import Iterator
from math import ceil
from typing import Annotated

import typer
from sqlalchemy import Engine

from annotate.assign import Item, design
from data.database import shown
from data.errors import Conflict
from data.importers.responses import ResponseFile
from data.importers.table import TableFile
from data.person import OPERATOR
from data.queries import benchmarks, design_items, people
from data.rubric import read_rubric
from data.samples import CLINICIANS, RESPONSES, SimulatedReading, clinicians_ratings
from data.samples import benchmarks as sample_benchmarks
from data.schema import Role
from data.store import Slot, add_people, assign, import_ratings, import_responses, invite, renew
from data.store.responses import TaxonomyPlace
from jury.panel import read_panel
from jury.run import run_panel
from medjury.cli.agreement import Output, print_agreement
from medjury.cli.agreement_show import Shown
from medjury.cli.jury import print_result
from medjury.cli.metrics import measurable, run_metric
from medjury.cli.options import Db, Port, study_of, url_of
from medjury.cli.output import say
from medjury.cli.people import print_codes, serve
from medjury.services.calibrate import THE_TABLE

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
    context: typer.Context,
    serve_page: Annotated[
        bool, typer.Option("--serve/--no-serve", help="Serve the pages at the end.")
    ] = True,
    port: Port = 8501,
    db: Db = None,
) -> None:
    """Make a demo study with simulated raters, print the agreement, serve the pages."""
    engine = study_of(context, db, create=True)
    refuse_other_study(engine, url_of(context, db))
    fill(engine)
    print_agreement(engine, THE_TABLE, Output(Shown()))
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
        serve(context, port, db=db)


def fill(engine: Engine) -> None:
    """Bring in the demo's responses and let its simulated clinicians, jurors and metrics rate."""
    places = {
        sample["name"]: TaxonomyPlace(sample["category"], sample["subcategory"])
        for sample in sample_benchmarks()
    }
    rubrics = {sample["name"]: read_rubric(sample["rubric"]) for sample in sample_benchmarks()}
    import_responses(
        engine, ResponseFile(TableFile(RESPONSES)), lambda name: rubrics[name], places=places
    )
    import_ratings(engine, clinicians_ratings(_readings(engine), DRAW), simulated=True)
    print_result(run_panel(engine, read_panel("simulated")))
    for name in measurable():
        run_metric(engine, name)


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
    all_items = design_items(engine)
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
    first = {item.instance: item.response for item in reversed(design_items(engine))}
    chosen = sorted(first.values())[:: ceil(len(first) / GUESTS_SHARE)]
    return [Slot(GUEST, response, position) for position, response in enumerate(chosen)]

"""`medjury demo`: a finding on real scores, then the whole chain on a study whose raters are simulated."""

from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Engine

from calibration.tables.numbers import TERMINAL, fixed, whole
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
    MENTALBENCH,
    MENTALBENCH_UNSAFE,
    RESPONSES,
    SimulatedReading,
    clinicians_ratings,
    marked_instances,
    marked_readings,
    metric_ratings,
    texts,
)
from data.samples import benchmarks as sample_benchmarks
from data.schema import Role
from data.study.access import Way
from data.study.assignments import Slot, assign, design_items
from data.study.people import add_people, people, renew_access
from data.study.ratings import import_ratings, submit
from data.study.responses import import_responses
from data.study.standing import benchmarks, showings
from jury.panel import read_panel
from jury.run import run_panel
from medjury.cli.agreement import print_agreement
from medjury.cli.options import Port, Study
from medjury.cli.output import counted, emit, say
from medjury.cli.people import LINK_DAYS, serve
from medjury.services.calibration import CalibrationQuestion
from medjury.services.check import CheckQuestion, checked, texts_of
from medjury.services.design.assign import design
from medjury.services.measuring import score_answers
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
    """Show a finding on real scores, make a study with simulated raters, serve its pages.

    Example:
    medjury demo --no-serve
    """
    engine = study.open(create=True)
    refuse_other_study(engine, study.url)
    emit(*finding())
    say("\nNow a study to try things in: texts written for it, every rater simulated.")
    fill(engine)
    print_agreement(engine, CalibrationQuestion(further=False, reference=False))
    links = [_link(engine, GUEST, Role.CLINICIAN), _link(engine, COORDINATOR, Role.COORDINATOR)]
    assign(engine, _guests_slots(engine), SEED)
    if not serve_page:
        say(f"\nThe pages: medjury serve --port {port}")
    say("\nEach link signs in once and then shows the code to come back with:")
    for who, code in zip(
        ("rate as a guest clinician", "read and steer the study"), links, strict=True
    ):
        say(f"  {who:26} http://127.0.0.1:{port}/join#{code}")
    if serve_page:
        serve(study, port)


def finding() -> list[str]:
    """Return what four real models agree with real experts on, and what they miss."""
    found = checked(
        texts_of(MENTALBENCH),
        CheckQuestion(unsafe=MENTALBENCH_UNSAFE),
        MENTALBENCH.name,
        brief=True,
    ).calibration
    jury = next(row for row in found.rows if row.scorer == "jury")
    row = next(row for row in found.detection if row.scorer == "jury")
    missed, low, high = (
        f"{100 * (1 - share):.0f}"
        for share in (row.sensitivity, row.sensitivity_high, row.sensitivity_low)
    )
    agreement = f"ICC {fixed(jury.icc)} ({fixed(jury.low)} to {fixed(jury.high)})"
    return [
        f"Real models, real experts: {whole(jury.n_responses, TERMINAL)} replies to people in distress, "
        "their safety rated from 1 to 5",
        f"  A jury of {len(found.jury)} models agrees with the experts at {agreement} and misses {row.n_missed} of the "
        f"{row.n_bad} replies that they call unsafe: {missed} % ({low} to {high}).",
        "  MentalBench (arXiv 2510.19032, MIT); all of it by: "
        f"medjury check {_beside(MENTALBENCH)} --unsafe {MENTALBENCH_UNSAFE}",
    ]


def _beside(path: Path) -> str:
    """Return a path as one types it from here."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _link(engine: Engine, name: str, role: Role) -> str:
    """Return the code of a link that signs somebody in once, added if they are new."""
    way = Way(once=True, days=LINK_DAYS)
    if any(person.name == name for person in people(OPERATOR, engine)):
        return renew_access(OPERATOR, engine, name, way).code
    return add_people(OPERATOR, engine, [name], role, way=way)[0].code


def fill(engine: Engine) -> None:
    """Bring in the demo's responses and let its simulated clinicians and jurors rate; metrics are recorded."""
    _import(engine, RESPONSES)
    _let_clinicians_rate(engine)
    judged = [sample["name"] for sample in sample_benchmarks() if sample["name"] != CLOSED_ENDED]
    emit(*result_lines(run_panel(engine, read_panel("simulated"), benchmarks=judged)))
    import_ratings(engine, metric_ratings())
    _import(engine, CALCULATIONS)
    _score_calculations(engine)


def _import(engine: Engine, path: Path) -> None:
    places = {
        sample["name"]: (sample["category"], sample["subcategory"])
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
        submit(engine, *assigned[one.clinician, one.response_id], one.reply, one.seconds)


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
        items = [item for item in all_items if item.benchmark == benchmark]
        clinicians = PAIRS.get(benchmark, list(CLINICIANS))
        for slot in design(items, clinicians, per_response=2, repeats=REPEATS, seed=SEED).slots:
            yield SimulatedReading(slot.rater, names[slot.response], slot.pass_)


def _guests_slots(engine: Engine) -> list[Slot]:
    """Return a dozen responses for a guest, each of another instance, of every benchmark some."""
    items = [item for item in design_items(engine) if item.benchmark != CLOSED_ENDED]
    first = {item.instance: item.response for item in reversed(items)}
    chosen = sorted(first.values())[:: ceil(len(first) / GUESTS_SHARE)]
    return [Slot(GUEST, response, position) for position, response in enumerate(chosen)]

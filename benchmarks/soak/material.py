"""The study of a soak: enough to rate that nobody runs out, each response marked by its name."""

import math
from dataclasses import dataclass, replace

from sqlalchemy import Engine
from sqlmodel import Session, select
from texts import Text, texts

from data.database import open_study
from data.importers.rows import Origin, ResponseRow
from data.person import OPERATOR
from data.rubric import Rubric, read_rubric
from data.schema import Response, Role
from data.store import Slot, add_people, assign, import_responses, invite

RUBRIC = "generic"
RESEARCHER = "researcher"
FASTEST, SLOWEST = 5.0, 10.0  # seconds that a clinician takes for a response
SPARE = 1.25  # responses beyond what the mean pace needs
ROUND_MINUTES = 10
FEWEST_ROUNDS = 3
READERS = 2


@dataclass(frozen=True, slots=True)
class Plan:
    """How long, how many clinicians, and what follows from that."""

    minutes: float
    clinicians: int

    @property
    def seconds(self) -> float:
        """How long the soak lasts."""
        return 60 * self.minutes

    @property
    def names(self) -> list[str]:
        """The clinicians' names."""
        return [f"dr-{n}" for n in range(self.clinicians)]

    @property
    def responses(self) -> int:
        """How many responses there are, two readers each."""
        each = math.ceil(self.seconds / ((FASTEST + SLOWEST) / 2) * SPARE) + 10
        return math.ceil(each * self.clinicians / READERS)

    @property
    def benchmarks(self) -> list[str]:
        """The benchmarks; the jury is given one after another."""
        count = max(FEWEST_ROUNDS, round(self.minutes / ROUND_MINUTES))
        return [f"visits-{n}" for n in range(count)]


def build(url: str, plan: Plan) -> dict[str, str]:
    """Make the study at `url` and return the code of each clinician and of the researcher."""
    engine = open_study(url, create=True)
    names = plan.benchmarks
    made = enumerate(texts(plan.responses))
    import_responses(engine, (_row(n, one, names[n % len(names)]) for n, one in made), _rubric)
    codes = {one.handle: one.code for one in invite(engine, plan.names)}
    codes[RESEARCHER] = add_people(OPERATOR, engine, [RESEARCHER], Role.RESEARCHER)[0].code
    assign(engine, _slots(engine, plan), seed=0, per_response=READERS)
    engine.dispose()
    return codes


def _slots(engine: Engine, plan: Plan) -> list[Slot]:
    """Give each response to two clinicians: everybody as many, and every pair in turn."""
    with Session(engine) as session:
        keys = [key or 0 for key in session.exec(select(Response.id).order_by(Response.id))]  # type: ignore[arg-type]
    count = plan.clinicians
    slots = []
    for place, key in enumerate(keys):
        first = place % count
        second = (first + 1 + place // count % (count - 1)) % count
        slots += [Slot(plan.names[who], key, place) for who in (first, second)]
    return slots


def _rubric(_: str) -> Rubric:
    return read_rubric(RUBRIC)


def _row(number: int, text: Text, benchmark: str) -> ResponseRow:
    """Return a row whose response names itself, so that a stub knows what it was asked about."""
    one = replace(text, response=f"{text.response}\n\nNumber of the note: {text.name}.")
    return ResponseRow(
        origin=Origin("made up", number),
        instance_id=one.name,
        benchmark=benchmark,
        context=one.source,
        prompt="Write the note of this visit.",
        reference=None,
        response_id=one.name,
        model=f"model {number % 3}",
        response=one.response,
    )

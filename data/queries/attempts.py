"""What jurors have not rated, why, and what all calls have cost. The author's table is not read."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Engine, func, select
from sqlmodel import col

from data.database import reading
from data.queries.jury import complete_ratings
from data.queries.study import BenchmarkView, benchmarks
from data.schema import Attempt, Expert, Instance, Kind, Rater, ReferenceCheck, Response
from data.schema.jury import JuryBatch, JuryRequest

NOT_ASKED = "not_asked"
IN_FLIGHT = "in_flight"
SCORE = re.compile(r"\bscore (.*) is not a whole number", re.DOTALL)
NUMBER = re.compile(r"\"?[-+\d.,/eE ]{1,6}\"?|true|false|null")


@dataclass(frozen=True, slots=True)
class MissingVerdict:
    """A verdict that does not stand on the present rubric of its benchmark.

    Attributes
    ----------
    status, reason
        Of the last call about it on this rubric; "in_flight" in a batch, "not_asked" where there
        was none. The reason holds no word of any text.
    calls
        Requests that were sent for it on this rubric.
    """

    juror: str
    benchmark: str
    response_id: str
    replicate: int
    status: str
    reason: str
    calls: int

    def to_json(self) -> dict[str, Any]:
        """Return it as `medjury jury missing --json` writes it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Spending:
    """What all stored calls cost: `unknown` of the `calls` have no known cost."""

    usd: float
    unknown: int
    calls: int


@dataclass
class _Last:
    """What the calls about one verdict have come to."""

    status: str = NOT_ASKED
    reason: str = ""
    calls: int = 0


def missing_verdicts(engine: Engine) -> list[MissingVerdict]:
    """Return what jurors have not rated, of every benchmark that they were asked about.

    Of replicates those that were ever asked for count. Training responses are left out.
    """
    found = []
    for benchmark in benchmarks(engine):
        responses = _responses(engine, benchmark.name)
        for rater, juror in _asked(engine, benchmark.name):
            rows = _missing(engine, benchmark, rater, responses)
            found += [
                MissingVerdict(juror, benchmark.name, responses[response], replicate, *last)
                for response, replicate, last in rows
            ]
    return sorted(found, key=lambda one: (one.juror, one.benchmark, one.response_id))


def by_juror(rows: Sequence[MissingVerdict]) -> dict[str, dict[str, int]]:
    """Return juror -> status -> how many verdicts are missing."""
    counts: dict[str, Counter[str]] = {}
    for one in rows:
        counts.setdefault(one.juror, Counter())[one.status] += 1
    return {juror: dict(sorted(own.items())) for juror, own in counts.items()}


def spending(engine: Engine) -> Spending:
    """Return what verdicts and checks of references have cost over all runs; probes store none."""
    usd, unknown, calls = 0.0, 0, 0
    with reading(engine) as session:
        for table in (Attempt, ReferenceCheck):
            sent = col(table.number) > 0
            columns = (func.count(), func.count(col(table.usd)), func.sum(col(table.usd)))
            number, known, total = session.execute(select(*columns).where(sent)).one()
            usd, unknown, calls = usd + (total or 0.0), unknown + number - known, calls + number
    return Spending(usd, unknown, calls)


def juror_profiles(engine: Engine, names: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return the settings of those jurors that the study knows, by name."""
    query = select(col(Rater.handle), col(Rater.profile)).where(
        col(Rater.kind) == Kind.JUROR, col(Rater.handle).in_(names)
    )
    with reading(engine) as session:
        return {name: dict(profile or {}) for name, profile in session.execute(query)}


def without_texts(reason: str) -> str:
    """Return a reason without what a juror wrote for a score, unless that is a number."""
    found = SCORE.search(reason)
    if found is None or NUMBER.fullmatch(found[1]):
        return reason
    return reason[: found.start(1)] + "(no number)" + reason[found.end(1) :]


def _missing(
    engine: Engine, benchmark: BenchmarkView, rater: int, responses: Mapping[int, str]
) -> Iterator[tuple[int, int, tuple[str, str, int]]]:
    """Yield the verdicts of one juror that do not stand, each with how its last call ended."""
    done = complete_ratings(engine, rater, benchmark.rubric)
    last = _last(engine, benchmark, rater)
    replicates = sorted({0} | {replicate for _, replicate in last})
    for response in responses:
        for replicate in replicates:
            key = (response, replicate)
            if key not in done:
                one = last.get(key, _Last())
                yield response, replicate, (one.status, without_texts(one.reason), one.calls)


def _last(engine: Engine, benchmark: BenchmarkView, rater: int) -> dict[tuple[int, int], _Last]:
    """Return (response, replicate) -> what its calls on the present rubric have come to."""
    calls = select(
        *(col(one) for one in (Attempt.response, Attempt.replicate, Attempt.number)),
        *(col(one) for one in (Attempt.status, Attempt.reason)),
    ).where(col(Attempt.rater) == rater, col(Attempt.rubric_sha256) == benchmark.rubric.sha256)
    found: dict[tuple[int, int], _Last] = {}
    with reading(engine) as session:
        for response, replicate, number, status, reason in session.execute(
            calls.order_by(col(Attempt.id))
        ):
            one = found.setdefault((response, replicate), _Last())
            one.status, one.reason, one.calls = str(status), reason, one.calls + (number > 0)
        for response, replicate in session.execute(_open(benchmark, rater)):
            one = found.setdefault((response, replicate), _Last())
            one.status, one.reason = IN_FLIGHT, "in a batch"
    return found


def _open(benchmark: BenchmarkView, rater: int) -> Any:
    """Select the requests of a juror that a batch still holds."""
    return (
        select(col(JuryRequest.response), col(JuryRequest.replicate))
        .join(JuryBatch, col(JuryBatch.id) == col(JuryRequest.batch))
        .where(
            col(JuryBatch.rater) == rater,
            col(JuryRequest.outcome) == "",
            col(JuryRequest.rubric_sha256) == benchmark.rubric.sha256,
        )
    )


def _responses(engine: Engine, benchmark: str) -> dict[int, str]:
    """Return the responses of a benchmark by primary key, those for training left out."""
    query = (
        select(col(Response.id), col(Response.response_id))
        .join(Instance, col(Instance.id) == col(Response.instance))
        .where(
            col(Instance.benchmark) == benchmark,
            col(Response.id).not_in(select(col(Expert.response))),
        )
    )
    with reading(engine) as session:
        return dict(map(tuple, session.execute(query)))


def _asked(engine: Engine, benchmark: str) -> list[tuple[int, str]]:
    """Return the jurors (primary key, name) that were ever asked about a benchmark."""
    keys = (
        select(col(Response.id))
        .join(Instance, col(Instance.id) == col(Response.instance))
        .where(col(Instance.benchmark) == benchmark)
    )
    live = select(col(Attempt.rater)).where(col(Attempt.response).in_(keys))
    batches = (
        select(col(JuryBatch.rater))
        .join(JuryRequest, col(JuryRequest.batch) == col(JuryBatch.id))
        .where(col(JuryRequest.response).in_(keys))
    )
    query = select(col(Rater.id), col(Rater.handle)).where(
        col(Rater.id).in_(live.union(batches)), col(Rater.kind) == Kind.JUROR
    )
    with reading(engine) as session:
        return [(key, name) for key, name in session.execute(query)]

"""Ratings as columns of numbers: read in blocks, each name kept once, for studies of millions of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, case, func, literal
from sqlmodel import Session, col, select

from data.queries.base import FOR_STUDY, INDEPENDENT, NEWEST, Columns, columns_of
from data.schema import Benchmark, Instance, Kind, Rater, Rating, Response, RubricText

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]
    Codes = NDArray[np.int64]

BLOCK = 65_536  # rows that are held as Python's own numbers at a time
CLINICIANS = select(Rater.id).where(Rater.kind == Kind.CLINICIAN)
# Responses that a clinician has rated; found by the index of raters, however many jurors rated.
BY_CLINICIANS = select(Rating.response).where(col(Rating.rater).in_(CLINICIANS))


def rating_table(session: Session, *conditions: Any, of_clinicians: bool = False) -> "pd.DataFrame":
    """Return the ratings that count and meet some conditions, a row a score.

    `of_clinicians`: only of responses that a clinician has rated.

    Clinicians' and jurors' ratings count where they were made on the benchmark's present rubric,
    and only the newest of each. They stand in the order of storing.

    Returns
    -------
    Columns response_id, instance_id (benchmark/instance), benchmark, rater, kind and criterion,
    each categorical with its names in alphabetical order; score, pass_ and replicate.
    """
    import numpy as np
    import pandas as pd

    about = [col(Response.id).in_(BY_CLINICIANS)] if of_clinicians else []
    rated = [col(Rating.response).in_(BY_CLINICIANS)] if of_clinicians else []
    chosen = NEWEST, *conditions, *rated
    criteria = session.exec(select(Rating.criterion).where(*chosen).distinct()).all()
    responses, raters = _Responses(session, *about), _raters(session)
    query = columns_of(
        *(Rating.response, Rating.rater, Rating.pass_, Rating.replicate, Rating.score),
        _code(Rating.criterion, criteria),
        _code(Rating.rubric_sha256, responses.rubrics),
    )
    read = _read(session.connection(), query.where(*chosen).order_by(col(Rating.id)))
    response = responses.places(read[0].astype(np.int64))
    rater = np.searchsorted(raters.index, read[1])
    is_metric = (raters["kind"] == Kind.METRIC).to_numpy()[rater]
    counts = (response >= 0) & (is_metric | (read[6] == responses.rubric[response]))
    response, rater = response[counts], rater[counts]
    scores = {"score": read[4], "pass_": read[2], "replicate": read[3]}
    return pd.DataFrame(
        {name: _named(values, response) for name, values in responses.names.items()}
        | {name: _named(raters[name], rater) for name in ("rater", "kind")}
        | {"criterion": _named(criteria, read[5][counts].astype(np.int64))}
        | {name: values[counts].astype(_KINDS.get(name, float)) for name, values in scores.items()}
    )


_KINDS = {"pass_": "int64", "replicate": "int64"}


@dataclass(frozen=True, slots=True)
class ReadingCount:
    """How many readings one rater gave on one benchmark in which the same criteria were scored.

    A reading is what a rater gave to a response in one pass and replicate.
    """

    benchmark: str
    rater: str
    kind: Kind
    criteria: frozenset[str]
    readings: int


def count_elsewhere(session: Session, complete: frozenset[str]) -> list[ReadingCount]:
    """Return the readings that count of responses that no clinician has rated, counted in SQL.

    Independent readings, metrics' too; training responses are left out. Those in which all of
    `complete` were scored are not told, only their raters: with 0 readings.
    """
    chosen = NEWEST, INDEPENDENT, col(Rating.response).not_in(BY_CLINICIANS)
    criteria = session.exec(select(Rating.criterion).where(*chosen).distinct()).all()
    if not criteria:
        return []
    bits = {name: 1 << n for n, name in enumerate(criteria)}
    every = sum(bits.get(name, 1 << len(bits)) for name in complete)
    scored: Any = func.sum(case(bits, value=Rating.criterion, else_=0)).label("scored")
    key = _reading_key(session)
    each: Any = (
        columns_of(*key, scored)
        .where(*chosen)
        .group_by(*key)
        .having(scored.op("&")(every) != every)
        .subquery()
    )
    judged = _counts(each.c.rubric_sha256) if "rubric_sha256" in each.c else True
    about = Benchmark.name, Rater.handle, Rater.kind, each.c.scored
    query = columns_of(*about, func.count()).select_from(each)
    query = query.join(Response, col(Response.id) == each.c.response).join(Instance).join(Benchmark)
    query = query.join(Rater, col(Rater.id) == each.c.rater).where(judged, FOR_STUDY)
    short = [
        ReadingCount(benchmark, rater, kind, _of_bits(mask, criteria), number)
        for benchmark, rater, kind, mask, number in session.exec(query.group_by(*about))
    ]
    return [*_raters_elsewhere(session, chosen), *short]


def _reading_key(session: Session) -> tuple[Any, ...]:
    """Return what a reading has in common: its rubric only where the study has several.

    The index of ratings holds all else, so that no rating is fetched.
    """
    key = Rating.response, Rating.rater, Rating.pass_, Rating.replicate
    several = session.exec(select(func.count()).select_from(RubricText)).one() > 1
    return (*key, Rating.rubric_sha256) if several else key


def _counts(rubric_sha256: Any) -> Any:
    """Return the condition that a rating was made on the benchmark's present rubric, if on any."""
    return (col(Rater.kind) == Kind.METRIC) | (rubric_sha256 == col(Benchmark.rubric_sha256))


def _raters_elsewhere(session: Session, chosen: tuple[Any, ...]) -> list[ReadingCount]:
    """Return each rater of a benchmark's responses that no clinician has rated, without a count."""
    rated = select(Rating.id).join(Response).join(Instance).where(*chosen, FOR_STUDY)
    of_both = col(Rating.rater) == Rater.id, col(Instance.benchmark) == Benchmark.name
    present = rated.where(*of_both, _counts(col(Rating.rubric_sha256))).exists()
    query = columns_of(Benchmark.name, Rater.handle, Rater.kind).select_from(Rater)
    pairs = session.exec(query.join(Benchmark, literal(True)).where(present))
    return [ReadingCount(*pair, frozenset(), 0) for pair in pairs]


def _of_bits(scored: int, names: Sequence[str]) -> frozenset[str]:
    return frozenset(name for n, name in enumerate(names) if scored >> n & 1)


class _Responses:
    """The responses of the study proper, by their keys, with the rubric each is rated on.

    Attributes
    ----------
    names : column -> its value for each response
    rubrics : the benchmarks' present rubrics, each once
    rubric : number of each response's rubric among them
    """

    def __init__(self, session: Session, *conditions: Any) -> None:
        import numpy as np

        about = (Response.id, Response.response_id, Instance.instance_id, Instance.benchmark)
        query = columns_of(*about).select_from(Response).join(Instance)
        query = query.where(FOR_STUDY, *conditions)
        rows = session.connection().execute(query.order_by(col(Response.id))).fetchall()
        keys, response_ids, instances, benchmarks = zip(*rows, strict=True) if rows else ((),) * 4
        self.keys = np.array(keys, dtype=np.int64)
        self.names: dict[str, Sequence[str]] = {
            "response_id": response_ids,
            "instance_id": [f"{a}/{b}" for a, b in zip(benchmarks, instances, strict=True)],
            "benchmark": benchmarks,
        }
        used = dict(session.exec(select(Benchmark.name, Benchmark.rubric_sha256)).all())
        self.rubrics = list(dict.fromkeys(used.values()))
        number = {name: self.rubrics.index(sha256) for name, sha256 in used.items()}
        self.rubric = np.array([number[name] for name in benchmarks], dtype=np.int64)

    def places(self, keys: "Codes") -> "Codes":
        """Return the number of each response by its key; -1 for one that is for training."""
        import numpy as np

        if not len(self.keys):
            return np.full(len(keys), -1, dtype=np.int64)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, places, -1)


def _raters(session: Session) -> "pd.DataFrame":
    """Return every rater by key: rater (the handle) and kind."""
    import pandas as pd

    query = columns_of(Rater.id, Rater.handle, Rater.kind).order_by(col(Rater.id))
    rows = session.connection().execute(query).fetchall()
    return pd.DataFrame(rows, columns=["id", "rater", "kind"]).set_index("id")


def _named(values: Sequence[Any], codes: "Codes") -> "pd.Categorical":
    """Return the value that each code stands for, with the values in use in alphabetical order."""
    import numpy as np
    import pandas as pd

    used = np.zeros(len(values), dtype=np.bool_)
    used[codes] = True
    own = np.array([str(value) for value in values], dtype=object)[used]
    names, place = np.unique(own, return_inverse=True)
    code_of = np.full(len(values), -1, dtype=np.int32)
    code_of[used] = place
    return pd.Categorical.from_codes(code_of[codes], categories=pd.Index(names, dtype="str"))


def _code(column: Any, values: Sequence[str]) -> Any:
    """Return a number for each value that a text column may have, -1 for every other."""
    numbers = {value: number for number, value in enumerate(values)}
    return case(numbers, value=column, else_=-1) if numbers else -1


def _read(connection: Connection, query: Columns) -> list["Numbers"]:
    """Run a query of numbers alone; return each of its columns, exact to 2**53."""
    import numpy as np

    sql = str(query.compile(connection, compile_kwargs={"literal_binds": True}))
    on_server = connection.dialect.name == "postgresql"
    blocks = [*(_copied(connection, sql) if on_server else _fetched(connection, sql))]
    width = len(query.selected_columns)
    table = np.concatenate(blocks) if blocks else np.empty((0, width))
    return [*table.reshape(-1, width).T]


def _fetched(connection: Connection, sql: str) -> Iterator["Numbers"]:
    """Yield blocks of rows from SQLite, through its own cursor: SQLAlchemy makes a Row of each."""
    import numpy as np

    cursor = connection.connection.cursor()
    cursor.execute(sql)
    while rows := cursor.fetchmany(BLOCK):
        yield np.array(rows, dtype=np.float64)
    cursor.close()


def _copied(connection: Connection, sql: str) -> Iterator["Numbers"]:
    """Yield blocks of numbers that PostgreSQL copies out as text, exact for every float."""
    import numpy as np

    cursor: Any = connection.connection.cursor()
    with cursor, cursor.copy(f"COPY ({sql.replace('%%', '%')}) TO STDOUT (FORMAT csv)") as copied:
        lines: list[bytes] = []
        for block in copied:
            lines.append(bytes(block))
            if len(lines) >= BLOCK:
                yield _numbers(lines)
                lines = []
        yield _numbers(lines)


def _numbers(lines: Sequence[bytes]) -> "Numbers":
    import numpy as np

    return np.fromstring(b"".join(lines).replace(b"\n", b","), sep=",", dtype=np.float64)

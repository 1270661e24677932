"""Ratings as columns of numbers: read in blocks, each name kept once, for studies of millions of them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Connection, case, cast, extract, false, func, literal
from sqlmodel import Session, col, select

from data.errors import BadInput
from data.queries.base import FOR_STUDY, INDEPENDENT, NEWEST, Columns, columns_of
from data.rubric import Rubric
from data.schema import Benchmark, Instance, Kind, Rater, Rating, Response, RubricText

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]
    Codes = NDArray[np.int64]
    Keys = Numbers | Codes

EXACT = 2**53  # whole numbers below are exact as floats
BLOCK = 65_536  # rows that are held as Python's own numbers at a time
CLINICIANS = select(Rater.id).where(Rater.kind == Kind.CLINICIAN)
# Responses that a clinician has rated; found by the index of raters, however many jurors rated.
BY_CLINICIANS = select(Rating.response).where(col(Rating.rater).in_(CLINICIANS))


def rating_table(
    session: Session, *conditions: Any, of_clinicians: bool = False, dated: bool = False
) -> "pd.DataFrame":
    """Return the ratings that count and meet some conditions, a row a score.

    `of_clinicians`: only of responses that a clinician has rated. `dated`: with the column `at`.

    Clinicians' and jurors' ratings count where they were made on the benchmark's present rubric,
    and only the newest of each. They stand in the order of storing.

    Returns
    -------
    Columns response_id, instance_id (benchmark/instance), benchmark, rater, kind and criterion,
    each categorical with its names in alphabetical order; score, pass_ and replicate; `at` in UTC,
    to the microsecond.
    """
    import numpy as np
    import pandas as pd

    about = [col(Response.id).in_(BY_CLINICIANS)] if of_clinicians else []
    rated = [col(Rating.response).in_(BY_CLINICIANS)] if of_clinicians else []
    chosen = NEWEST, *conditions, *rated
    criteria = _criteria(session)
    is_any = session.exec(select(Rating.id).where(*chosen).limit(1)).first() is not None
    responses = _Responses(session, *(about if is_any else [false()]))
    raters = _raters(session)
    packing = _packing(session, chosen, len(criteria), responses)
    about_rating = _packed(packing, criteria, responses.rubrics)
    at = _time(session.connection(), Rating.at) if dated else ()
    query = columns_of(Rating.response, Rating.score, about_rating, *at).where(*chosen)
    read = _Scores()
    for block in _blocks(session.connection(), query.order_by(col(Rating.id))):
        read.add(packing, responses, raters, block.T)
    response, rater, criterion, score, pass_, replicate, when = read.columns()
    return pd.DataFrame(
        {name: _named(values, response) for name, values in responses.names().items()}
        | {name: _named(raters[name].tolist(), rater) for name in ("rater", "kind")}
        | {"criterion": _named(criteria, criterion), "score": score}
        | {"pass_": pass_.astype(np.int64), "replicate": replicate.astype(np.int64)}
        | ({"at": pd.to_datetime(when, unit="us", utc=True)} if dated else {}),
        copy=False,
    )


@dataclass(frozen=True, slots=True)
class _Packing:
    """How many values each whole number of a rating can have, so that one number holds all five."""

    raters: int
    passes: int
    replicates: int
    criteria: int
    rubrics: int

    def unpacked(self, numbers: "Codes") -> "Sequence[Codes]":
        """Return rater (the key), pass, replicate, criterion and rubric, -1 for another rubric."""
        rest, found = numbers, []
        for values in (self.rubrics, self.criteria, self.replicates, self.passes):
            found.append(rest % values)
            rest = rest // values
        rubric, criterion, replicate, pass_ = found
        return rest, pass_, replicate, criterion, rubric - 1


def _packing(
    session: Session, chosen: tuple[Any, ...], criteria: int, responses: "_Responses"
) -> _Packing:
    """Return how the whole numbers of the ratings chosen are packed.

    Raises
    ------
    BadInput
        If a replicate's number is so large that a float does not hold them.
    """
    most = (func.max(Rating.rater), func.max(Rating.pass_), func.max(Rating.replicate))
    largest = session.exec(columns_of(*most).where(*chosen)).one()
    raters, passes, replicates = (1 + (number or 0) for number in largest)
    packing = _Packing(raters, passes, replicates, max(criteria, 1), 1 + len(responses.rubrics))
    if prod(astuple(packing)) >= EXACT:
        raise BadInput(f"replicate {largest[2]}: numbers of replicates must be smaller")
    return packing


def _packed(packing: _Packing, criteria: Sequence[str], rubrics: Sequence[str]) -> Any:
    """Return one whole number for rater, pass, replicate, criterion and rubric of a rating."""
    number: Any = cast(col(Rating.rater), BigInteger) * packing.passes + Rating.pass_
    number = number * packing.replicates + Rating.replicate
    number = number * packing.criteria + _code(Rating.criterion, criteria)
    return number * packing.rubrics + _code(Rating.rubric_sha256, rubrics) + 1


class _Scores:
    """Scores read so far that count, each column as narrow as its numbers allow."""

    def __init__(self) -> None:
        self._parts: list[list[Any]] = [[] for _ in range(7)]

    def add(
        self, packing: _Packing, responses: "_Responses", raters: "pd.DataFrame", block: "Numbers"
    ) -> None:
        """Add the scores of a block that count: key of response, score, packed numbers, time."""
        import numpy as np

        rater_key, pass_, replicate, criterion, rubric = packing.unpacked(block[2].astype(np.int64))
        counts, response, rater = _counting(responses, raters, (block[0], rater_key, rubric))
        narrow = (response, rater, criterion[counts])
        whole = (pass_[counts].astype(np.int16), replicate[counts].astype(np.int32))
        seconds = block[3:, counts].astype(np.int64)
        when = seconds[0] * 1_000_000 + seconds[1] if len(seconds) else seconds.ravel()
        found = (*(codes.astype(np.int32) for codes in narrow), block[1, counts], *whole, when)
        for parts, column in zip(self._parts, found, strict=True):
            parts.append(column)

    def columns(self) -> "list[NDArray[Any]]":
        """Return response, rater, criterion (codes), score, pass, replicate and time, once."""
        import numpy as np

        joined = []
        while self._parts:
            parts = self._parts.pop(0)
            joined.append(np.concatenate(parts) if parts else np.empty(0, dtype=np.int64))
        return joined


def _criteria(session: Session) -> list[str]:
    """Return all that ratings can be of: the criteria of the study's rubrics, and what metrics give.

    To ask the ratings themselves takes a second for a million.
    """
    bodies = session.exec(select(RubricText.body))
    named = {name for body in bodies for name in Rubric.from_json(body).criteria}
    metrics = select(Rater.id).where(Rater.kind == Kind.METRIC)
    given = select(Rating.criterion).where(col(Rating.rater).in_(metrics)).distinct()
    return sorted(named.union(session.exec(given)))


# Who scored which criteria of one response, and in how many readings: rater, kind, criteria, readings.
Given = tuple[tuple[str, str, frozenset[str], int], ...]


def rated_elsewhere(session: Session) -> "Counter[tuple[str, Given]]":
    """Return how many responses of a benchmark that no clinician has rated are rated alike.

    Of their scores nothing is read: only who gave some, on which criteria, in how many readings (a
    reading is one pass and replicate). Readings are independent ones, metrics' too, and count as in
    `rating_table`; training responses are left out.
    """
    import numpy as np

    chosen = NEWEST, INDEPENDENT, col(Rating.response).not_in(BY_CLINICIANS)
    criteria = _criteria(session)
    if not criteria:
        return Counter()
    elsewhere = _Responses(session, col(Response.id).not_in(BY_CLINICIANS))
    raters = _raters(session)
    alike: Counter[tuple[str, Given]] = Counter()
    for key, rater, scored, rubric in _by_response(_readings(session, elsewhere, criteria, chosen)):
        counts, response, place = _counting(elsewhere, raters, (key, rater, rubric))
        given = place << len(criteria) | scored[counts].astype(np.int64)
        for (benchmark, pairs), number in _patterns(elsewhere, response, given).items():
            named = tuple(
                (*raters.iloc[pair >> len(criteria)], _of_bits(pair, criteria), times)
                for pair, times in pairs
            )
            alike[benchmark, named] += number
    return alike


def _counting(
    responses: "_Responses", raters: "pd.DataFrame", keys: "tuple[Keys, Keys, Keys]"
) -> "tuple[NDArray[np.bool_], Codes, Codes]":
    """Return which rows count, and the numbers of their responses and raters.

    `keys` are the keys of response and rater and the number of the rubric, of each row. What is of
    no response, or not on its benchmark's present rubric though no metric, does not count.
    """
    import numpy as np

    response_key, rater_key, rubric = keys
    response = responses.places(response_key.astype(np.int64))
    rater = np.searchsorted(raters.index, rater_key)
    is_metric = (raters["kind"] == Kind.METRIC).to_numpy()[rater]
    counts = (response >= 0) & (is_metric | (rubric == responses.rubric[response]))
    return counts, response[counts], rater[counts]


def _readings(
    session: Session, responses: "_Responses", criteria: Sequence[str], chosen: tuple[Any, ...]
) -> "Iterator[Numbers]":
    """Yield readings in the order of responses: response, rater, criteria as bits, rubric.

    The rubric is asked for only where the study has several: the index of ratings holds all else.
    """
    key: tuple[Any, ...] = (Rating.response, Rating.rater, Rating.pass_, Rating.replicate)
    several = session.exec(select(func.count()).select_from(RubricText)).one() > 1
    bits = case({name: 1 << n for n, name in enumerate(criteria)}, value=Rating.criterion)
    rubric = _code(Rating.rubric_sha256, responses.rubrics) if several else literal(0)
    own = (*key, Rating.rubric_sha256) if several else key
    query = columns_of(Rating.response, Rating.rater, func.sum(bits), rubric).where(*chosen)
    yield from _blocks(session.connection(), query.group_by(*own).order_by(*key[:2]))


def _by_response(blocks: "Iterable[Numbers]") -> "Iterator[Numbers]":
    """Yield the columns of blocks that hold whole responses, whose keys stand in the first."""
    import numpy as np

    kept = None
    for block in blocks:
        rows = block if kept is None else np.concatenate([kept, block])
        whole = int(np.searchsorted(rows[:, 0], rows[-1, 0]))
        kept = rows[whole:]
        yield rows[:whole].T
    if kept is not None:
        yield kept.T


def _patterns(
    responses: "_Responses", response: "Codes", given: "Codes"
) -> "Counter[tuple[str, tuple[tuple[int, int], ...]]]":
    """Count the responses of a benchmark to which the same was given, the same number of times."""
    import numpy as np

    own, row = np.unique(response, return_inverse=True)
    kinds, column = np.unique(given, return_inverse=True)
    table = np.zeros((len(own), 1 + len(kinds)), dtype=np.int64)
    benchmarks, table[:, 0] = np.unique(responses.benchmark[own], return_inverse=True)
    np.add.at(table, (row, 1 + column), 1)
    found: Counter[tuple[str, tuple[tuple[int, int], ...]]] = Counter()
    for pattern, number in zip(*np.unique(table, axis=0, return_counts=True), strict=True):
        has = np.flatnonzero(pattern[1:])
        pairs = zip(kinds[has].tolist(), pattern[1:][has].tolist(), strict=True)
        found[str(benchmarks[pattern[0]]), tuple(pairs)] += int(number)
    return found


def _of_bits(scored: int, names: Sequence[str]) -> frozenset[str]:
    return frozenset(name for n, name in enumerate(names) if scored >> n & 1)


class _Responses:
    """The responses of the study proper, by their keys, with the rubric each is rated on.

    Attributes
    ----------
    rubrics : the benchmarks' present rubrics, each once
    response_ids, instances, benchmark, rubric : of each response; the rubric as its number among
        `rubrics`
    """

    def __init__(self, session: Session, *conditions: Any) -> None:
        import numpy as np

        about = (Response.id, Response.response_id, Instance.instance_id, Instance.benchmark)
        query = columns_of(*about).select_from(Response).join(Instance)
        query = query.where(FOR_STUDY, *conditions)
        rows = session.connection().execute(query.order_by(col(Response.id))).fetchall()
        keys, response_ids, instances, benchmarks = zip(*rows, strict=True) if rows else ((),) * 4
        self.keys = np.array(keys, dtype=np.int64)
        self.response_ids, self.instances = response_ids, instances
        used = dict(session.exec(select(Benchmark.name, Benchmark.rubric_sha256)).all())
        self.rubrics = list(dict.fromkeys(used.values()))
        number = {name: self.rubrics.index(sha256) for name, sha256 in used.items()}
        self.benchmark = np.array(benchmarks, dtype=object)
        self.rubric = np.array([number[name] for name in benchmarks], dtype=np.int64)

    def names(self) -> dict[str, Sequence[str]]:
        """Return the names of the frames' columns -> their value for each response."""
        benchmarks = self.benchmark.tolist()
        both = zip(benchmarks, self.instances, strict=True)
        return {
            "response_id": self.response_ids,
            "instance_id": [f"{benchmark}/{instance}" for benchmark, instance in both],
            "benchmark": benchmarks,
        }

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


def _blocks(connection: Connection, query: Columns) -> Iterator["Numbers"]:
    """Yield the rows of a query of numbers alone, in blocks that are not empty."""
    sql = str(query.compile(connection, compile_kwargs={"literal_binds": True}))
    on_server = connection.dialect.name == "postgresql"
    width = len(query.selected_columns)
    for block in _copied(connection, sql) if on_server else _fetched(connection, sql, width):
        if len(block):
            yield block.reshape(-1, width)


def _fetched(connection: Connection, sql: str, width: int) -> Iterator["Numbers"]:
    """Yield blocks of rows from SQLite, through its own cursor: SQLAlchemy makes a Row of each."""
    import numpy as np

    cursor = connection.connection.cursor()
    cursor.execute(sql)
    while rows := cursor.fetchmany(BLOCK):
        yield np.fromiter(chain.from_iterable(rows), np.float64, width * len(rows))
    cursor.close()


def _time(connection: Connection, column: Any) -> tuple[Any, Any]:
    """Return a time in UTC as whole seconds since 1970 and microseconds, both exact as floats."""
    if connection.dialect.name == "postgresql":
        microseconds = func.mod(cast(extract("microseconds", column), BigInteger), 1_000_000)
        return func.floor(extract("epoch", column)), microseconds
    # without the fraction, which SQLite would round up to the next second
    seconds = cast(func.strftime("%s", func.substr(column, 1, 19)), BigInteger)
    return seconds, cast(func.substr(column, 21, 6), BigInteger)


def _copied(connection: Connection, sql: str) -> Iterator["Numbers"]:
    """Yield blocks of numbers that PostgreSQL copies out as text, exact for every float."""
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

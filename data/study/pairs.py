"""Pairs: two responses to one instance that are compared, from a file or made of what is there.

A pair is a response of its own, whose text is both; it is assigned, rated, flagged and exported as any
other. In a study it is the two responses that have authors.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise, zip_longest
from typing import TYPE_CHECKING

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import reading, transaction
from data.errors import BadInput, Conflict
from data.importers.responses import PairRow
from data.importers.rows import batches, made_id
from data.record import commitment, log, new_salt, refuse_locked
from data.rubric import Rubric
from data.schema import Benchmark, Instance, Pair, Response, RubricText
from data.study.authors import Rival, models_of_pairs, rivals
from data.study.base import FOR_STUDY, columns_of
from data.study.responses import ResponsesAdded, keep_benchmark, keep_rows
from data.study.rubrics import ONLY_PAIRS

if TYPE_CHECKING:
    import pandas as pd

Chosen = tuple[Rival, Rival]
NOTHING = "no instance has two responses of different models: there is nothing to pair"
PAIR_COLUMNS = ("pair_id", "instance_id", "benchmark", "first_model", "second_model")


@dataclass
class PairsAdded:
    """What was added: pairs stored now and those that were there, and the responses they are of."""

    pairs: int = 0
    unchanged: int = 0
    responses: ResponsesAdded = field(default_factory=ResponsesAdded)


def import_pairs(
    engine: Engine, rows: Iterable[PairRow], rubric: Rubric, tick: Callable[[int], None]
) -> PairsAdded:
    """Store pairs with their responses, all of the file or nothing; the same file again changes nothing.

    Parameters
    ----------
    rubric
        Of benchmarks that are new; it compares.
    tick
        Called with the number of rows of each batch stored.

    Raises
    ------
    BadRow
        If a row contradicts the file or the study.
    BadInput, Conflict
        If the rubric does not compare, or a benchmark has responses that are rated by themselves.
    """
    _refuse_other(rubric)
    added = PairsAdded()
    with transaction(engine) as session:
        refuse_locked(session)

        def keep(name: str) -> None:
            _keep_benchmark(session, name, rubric, added.responses)

        seen: set[str] = set()
        for batch in batches(rows):
            for row in batch:
                if row.pair_id in seen:
                    raise row.origin.wrong("pair_id", row.pair_id, "already used; ids must differ")
                seen.add(row.pair_id)
            both = (one for row in batch for one in row.rows)
            distinct = {(one.response_id, one.response, one.model): one for one in both}
            keep_rows(session, distinct.values(), keep, added.responses, {})
            _keep_pairs(session, batch, added)
            tick(len(batch))
        _log(session, added)
    return added


def make_pairs(
    engine: Engine,
    benchmark: str,
    into: str,
    rubric: Rubric,
    *,
    models: Sequence[str] = (),
    number: int | None = None,
    seed: int = 0,
) -> PairsAdded:
    """Pair the responses of a benchmark that are there, in a benchmark of their own.

    Parameters
    ----------
    into
        Name of that benchmark; its instances are those of the other.
    models
        Whose responses are paired; none: everybody's.
    number
        How many pairs, balanced over pairs of models so that all are connected; while the study is blind
        they are spread over the instances, without looking at who wrote what. None: every pair of
        models, or of responses, on every instance.
    seed
        Which pairs, and which response of each is stored first.

    Raises
    ------
    BadInput
        If there is nothing to pair, or fewer pairs are asked for than connect all models.
    Conflict
        If `into` has responses already.
    NotAllowed, Unknown
        As `data.study.authors.rivals`.
    """
    _refuse_other(rubric)
    added = PairsAdded()
    with transaction(engine) as session:
        refuse_locked(session)
        stored = session.get(Benchmark, benchmark)
        if stored is None or _rubric(session, stored).compares:
            raise BadInput(f"benchmark {benchmark!r}: the study has no such responses to pair")
        if session.get(Benchmark, into) is not None:
            raise Conflict(f"the study has {into!r} already: give --into another name")
        chance = random.Random(seed)  # noqa: S311 - a design, no secret
        chosen = _chosen(rivals(session, benchmark, models), number, chance)
        _keep_benchmark(session, into, rubric, added.responses)
        own = session.exec(select(Instance).where(Instance.benchmark == benchmark))
        copies = {one.id: _copied(one, into) for one in own}
        used = {first.instance for first, _ in chosen}
        session.add_all(copy for key, copy in copies.items() if key in used)
        session.flush()
        texts = _texts(session, [one.response for pair in chosen for one in pair])
        for first, second in chosen:
            both = texts[first.response], texts[second.response]
            name = made_id(into, *(one.response_id for one in both))
            _add(session, name, copies[first.instance].id or 0, both, apart=False)
        added.pairs, added.responses.instances = len(chosen), len(used)
        _log(session, added)
    return added


def pairs_frame(engine: Engine) -> "pd.DataFrame":
    """Return all pairs but those for training or withdrawn, a row each.

    Returns
    -------
    Columns pair_id, instance_id (benchmark/instance), benchmark, first_model, second_model; no model while
    the study is blind.
    """
    import pandas as pd

    place = Instance.benchmark, Instance.instance_id
    query = columns_of(Response.id, Response.response_id, *place).select_from(Pair)
    query = query.join(Response, col(Response.id) == col(Pair.response)).join(Instance)
    with reading(engine) as session:
        models = models_of_pairs(session) or {}
        rows = [
            (name, f"{benchmark}/{instance}", benchmark, *models.get(key, ("", "")))
            for key, name, benchmark, instance in session.exec(
                query.where(FOR_STUDY).order_by(col(Response.id))
            )
        ]
    return pd.DataFrame(rows, columns=[*PAIR_COLUMNS])


def _refuse_other(rubric: Rubric) -> None:
    if not rubric.compares:
        raise BadInput(f"rubric {rubric.name}: {ONLY_PAIRS}")


def _rubric(session: Session, benchmark: Benchmark) -> Rubric:
    return Rubric.from_json(session.get_one(RubricText, benchmark.rubric_sha256).body)


def _keep_benchmark(session: Session, name: str, rubric: Rubric, added: ResponsesAdded) -> None:
    stored = session.get(Benchmark, name)
    if stored is not None and not _rubric(session, stored).compares:
        raise Conflict(
            f"benchmark {name!r} has responses that are rated by themselves: give its pairs another "
            "benchmark; nothing was imported"
        )
    keep_benchmark(session, name, rubric, added)


def _copied(instance: Instance, into: str) -> Instance:
    texts = instance.model_dump(exclude={"id", "benchmark"})
    return Instance(benchmark=into, **texts)


def _texts(session: Session, keys: Sequence[int]) -> dict[int, Response]:
    rows = session.exec(select(Response).where(col(Response.id).in_(keys)))
    return {one.id or 0: one for one in rows}


def both_texts(first: str, second: str) -> str:
    """Return the text of a pair as researchers read it."""
    return f"First:\n\n{first}\n\nSecond:\n\n{second}"


def _add(
    session: Session, name: str, instance: int, both: tuple[Response, Response], *, apart: bool
) -> None:
    """Store a pair of two responses, masked as they are."""
    first, second = both
    text, salt = both_texts(first.text, second.text), new_salt()
    subject = Response(response_id=name, instance=instance, text=text, salt=salt)
    if first.shown is not None or second.shown is not None:
        subject.shown = both_texts(first.shown or first.text, second.shown or second.text)
    subject.commitment = commitment(salt, text)
    session.add(subject)
    session.flush()
    session.add(
        Pair(response=subject.id or 0, first=first.id or 0, second=second.id or 0, apart=apart)
    )


def _keep_pairs(session: Session, batch: Sequence[PairRow], added: PairsAdded) -> None:
    """Store the pairs of a batch whose responses are stored; refuse those that are others now."""
    names = {name for row in batch for name in row.names}
    rows = session.exec(select(Response).where(col(Response.response_id).in_(names)))
    stored = {one.response_id: one for one in rows}
    pairs = {
        one.response: (one.first, one.second)
        for one in session.exec(
            select(Pair).where(col(Pair.response).in_([one.id for one in stored.values()]))
        )
    }
    for row in batch:
        first, second = (stored[one.response_id] for one in row.rows)
        there = stored.get(row.pair_id)
        if there is None:
            _add(session, row.pair_id, first.instance, (first, second), apart=True)
            added.pairs += 1
        elif pairs.get(there.id or 0) == (first.id, second.id):
            added.unchanged += 1
        else:
            raise row.origin.wrong(
                "pair_id",
                row.pair_id,
                "the study has this id with something else; pairs never change",
            )


def _log(session: Session, added: PairsAdded) -> None:
    if added.pairs or added.responses.responses:
        detail = {"pairs": added.pairs, "responses": added.responses.responses}
        log(session, "researcher", "pairs added", detail)


def _chosen(found: Sequence[Rival], number: int | None, chance: random.Random) -> list[Chosen]:
    """Return pairs of responses to one instance, each pair of models half either way."""
    if any(not one.model for one in found):
        return _chosen_blind(found, number, chance)
    by_instance: dict[int, dict[str, Rival]] = {}
    for one in found:
        by_instance.setdefault(one.instance, {})[one.model] = one
    models = sorted({one.model for one in found})
    kinds = list(combinations(models, 2))
    places = {
        kind: [own for own in by_instance.values() if {*kind} <= own.keys()] for kind in kinds
    }
    if not any(places.values()):
        raise BadInput(NOTHING)
    taken = _all(places) if number is None else _some(places, models, number, chance)
    turned: Counter[tuple[str, str]] = Counter()
    chosen: list[Chosen] = []
    for kind, own in chance.sample(taken, len(taken)):
        first, second = own[kind[0]], own[kind[1]]
        lean = turned[kind] or chance.choice((-1, 1))
        turned[kind] += 1 if lean < 0 else -1
        chosen.append((first, second) if lean < 0 else (second, first))
    return chosen


def _chosen_blind(
    found: Sequence[Rival], number: int | None, chance: random.Random
) -> list[Chosen]:
    """Return pairs of whichever responses to one instance, the instances in turn."""
    by_instance: dict[int, list[Rival]] = {}
    for one in found:
        by_instance.setdefault(one.instance, []).append(one)
    left = [
        chance.sample(two, len(two))
        for own in by_instance.values()
        for two in [[*combinations(own, 2)]]
    ]
    chance.shuffle(left)
    chosen = [two for turn in zip_longest(*left) for two in turn if two is not None]
    if not chosen:
        raise BadInput(NOTHING)
    if number is not None and number > len(chosen):
        raise BadInput(f"--number {number}: there are {len(chosen)} pairs")
    return [chance.choice((two, two[::-1])) for two in chosen[:number]]


Places = Mapping[tuple[str, str], list[dict[str, Rival]]]
Taken = list[tuple[tuple[str, str], dict[str, Rival]]]


def _all(places: Places) -> Taken:
    return [(kind, own) for kind, instances in places.items() for own in instances]


def _some(places: Places, models: list[str], number: int, chance: random.Random) -> Taken:
    """Return so many: first a chain through all models, then whichever pair of models has fewest."""
    if not len(models) - 1 <= number <= len(_all(places)):
        raise BadInput(
            f"--number {number}: {len(models)} models are connected by {len(models) - 1} pairs or more, "
            f"and there are {len(_all(places))}"
        )
    left = {kind: chance.sample(own, len(own)) for kind, own in places.items()}
    seen: Counter[int] = Counter()
    taken: Taken = []
    order = chance.sample(models, len(models))
    chain = [(min(two), max(two)) for two in pairwise(order)]
    counts: Counter[tuple[str, str]] = Counter()
    for kind in _in_turn(chain, left, counts, chance):
        own = min(left[kind], key=lambda one: seen[next(iter(one.values())).instance])
        left[kind].remove(own)
        seen[next(iter(own.values())).instance] += 1
        counts[kind] += 1
        taken.append((kind, own))
        if len(taken) == number:
            break
    return taken


def _in_turn(
    chain: Sequence[tuple[str, str]],
    left: Mapping[tuple[str, str], Sequence[object]],
    counts: Counter[tuple[str, str]],
    chance: random.Random,
) -> Iterator[tuple[str, str]]:
    yield from (kind for kind in chain if left[kind])
    while open_ := [kind for kind, own in left.items() if own]:
        fewest = min(counts[kind] for kind in open_)
        yield chance.choice([kind for kind in open_ if counts[kind] == fewest])

"""Importing ratings made elsewhere, each checked against the rubric it was made on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine, Executable, column, insert
from sqlalchemy import select as select_columns
from sqlmodel import Session, col, select

from data.database import transaction
from data.errors import OffScale, Unknown
from data.importers.rows import Origin, RatingRow, Tick, batches
from data.rubric import Rubric
from data.safe_text import short
from data.schema import Benchmark, Expert, Instance, Kind, Rater, Rating, Response, RubricText, now
from data.store.audit import Batch, Seal, log, refuse_locked, sealed
from data.store.rubrics import keep_rubric, move_to_rubric

Values = dict[str, Any]
Key = tuple[Any, ...]
KEY = ("response", "rater", "criterion", "rubric_sha256", "pass_", "replicate")


@dataclass
class RatingsAdded:
    """What an import of ratings changed.

    `revised` rows differ from what the same rater said before: both are kept and the
    newer one counts. `raters` are new to the study. `other_rubric` names benchmarks whose
    ratings were stored on a rubric that is not the benchmark's own, `lacking` the criteria of a
    benchmark's rubric that nobody in the file rates.
    """

    added: int = 0
    revised: int = 0
    unchanged: int = 0
    raters: list[str] = field(default_factory=list)
    other_rubric: set[str] = field(default_factory=set)
    lacking: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Target:
    """A response as a rating needs it: its key and the rubric it is rated on."""

    response: int
    benchmark: str
    rubric: Rubric


class _Import:
    """One import under way: what it has seen of the file and of the study."""

    def __init__(self, session: Session, rubric: Rubric | None, simulated: bool) -> None:
        self.session, self.rubric, self.simulated = session, rubric, simulated
        self.result = RatingsAdded()
        self.written = Batch("rating")
        self.seals: list[Seal] = []  # of raters that are new
        self.seen: dict[Key, Origin] = {}
        self.raters = {rater.handle: rater for rater in session.exec(select(Rater))}
        self.training = set(session.exec(select(Expert.response)))
        self.rubrics: dict[str, Rubric] = {}
        self.rated: dict[str, set[str]] = {}

    def targets(self, batch: list[RatingRow]) -> dict[str, Target]:
        """Return the responses a batch speaks of, by response_id."""
        rows = self.session.exec(
            select(Response.response_id, Response.id, Instance.benchmark)
            .join(Instance)
            .where(col(Response.response_id).in_({row.response_id for row in batch}))
        ).all()
        return {
            name: Target(key or 0, benchmark, self.rubric_of(benchmark))
            for name, key, benchmark in rows
        }

    def rubric_of(self, benchmark: str) -> Rubric:
        """Return the rubric this import is checked against, moving the benchmark if it may."""
        if benchmark not in self.rubrics:
            if self.rubric is not None and not move_to_rubric(self.session, benchmark, self.rubric):
                self.result.other_rubric.add(benchmark)
                keep_rubric(self.session, self.rubric)
            sha256 = self.session.get_one(Benchmark, benchmark).rubric_sha256
            body = self.session.get_one(RubricText, sha256).body
            self.rubrics[benchmark] = self.rubric or Rubric.from_json(body)
        return self.rubrics[benchmark]

    def rating(self, row: RatingRow, targets: dict[str, Target]) -> Values:
        """Return one row as the values of a rating, or refuse it by name."""
        if row.response_id not in targets:
            raise row.origin.wrong(
                "response_id", row.response_id, "no such response in the study; import it first"
            )
        target = targets[row.response_id]
        if target.response in self.training:
            raise row.origin.wrong(
                "response_id", row.response_id, "a training response; ratings of it do not count"
            )
        metric = row.kind == Kind.METRIC
        rating: Values = {
            "response": target.response,
            "rater": self.rater(row).id,
            "criterion": row.criterion,
            "rubric_sha256": None if metric else target.rubric.sha256,
            "pass_": row.pass_,
            "replicate": row.replicate,
            "score": _number(row) if metric else _score(row, target.rubric),
            "comment": row.comment,
            "at": row.rated_at or now(),
            "batch": self.written.token,
        }
        self._refuse_repeat(rating, row)
        if not metric:
            self.rated.setdefault(target.benchmark, set()).add(row.criterion)
        return rating

    def rater(self, row: RatingRow) -> Rater:
        """Return the row's rater, made if new; a name never changes its kind."""
        rater = self.raters.get(row.rater)
        if rater is None:
            rater = Rater(kind=row.kind, handle=row.rater, simulated=self.simulated)
            self.session.add(rater)
            self.session.flush()
            self.seals += sealed(rater)
            self.raters[row.rater] = rater
            self.result.raters.append(row.rater)
        if rater.kind != row.kind:
            raise row.origin.wrong("kind", row.kind.value, f"{short(row.rater)} is a {rater.kind}")
        return rater

    def _refuse_repeat(self, rating: Values, row: RatingRow) -> None:
        key = _key(rating)
        if first := self.seen.get(key):
            raise row.origin.wrong(
                "criterion",
                row.criterion,
                f"{short(row.rater)} already rates {short(row.criterion)} of "
                f"{short(row.response_id)} in row {first.row}",
            )
        self.seen[key] = row.origin

    def finished(self) -> RatingsAdded:
        """Return what the import changed, with the criteria that the file leaves out."""
        for benchmark, rated in self.rated.items():
            lacking = [name for name in self.rubrics[benchmark].criteria if name not in rated]
            if lacking:
                self.result.lacking[benchmark] = lacking
        return self.result

    def keep(self, ratings: list[Values]) -> None:
        """Add what is new; count what the study already says."""
        rows = self.session.execute(_ratings_by_same_raters(ratings)).mappings()
        latest = {_key(row): _score_and_comment(row) for row in rows}
        new = []
        for rating in ratings:
            before = latest.get(_key(rating))
            if before == _score_and_comment(rating):
                self.result.unchanged += 1
                continue
            self.result.revised += before is not None
            self.result.added += before is None
            new.append(rating)
        if new:
            self.session.execute(insert(Rating), new)
            self.written.add(new)


def import_ratings(
    engine: Engine,
    rows: Iterable[RatingRow],
    rubric: Rubric | None = None,
    simulated: bool = False,
    tick: Tick = lambda _: None,
) -> RatingsAdded:
    """Store ratings made elsewhere, all of the file or nothing.

    Parameters
    ----------
    rows
        Streamed, one score each.
    rubric
        The rubric they were made on; by default each benchmark's own. A benchmark that
        nobody has rated yet moves to it.
    simulated
        Mark raters that are new to the study as simulated.

    Raises
    ------
    BadRow
        If a response is unknown, a criterion or score is not the rubric's, a rating stands
        twice in the file, or a rater changes kind. Nothing is stored.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        return keep_ratings(session, rows, rubric, simulated, tick)


def keep_ratings(
    session: Session,
    rows: Iterable[RatingRow],
    rubric: Rubric | None = None,
    simulated: bool = False,
    tick: Tick = lambda _: None,
) -> RatingsAdded:
    """Store ratings inside the caller's transaction, with their event: see `import_ratings`."""
    work = _Import(session, rubric, simulated)
    for batch in batches(rows):
        targets = work.targets(batch)
        work.keep([work.rating(row, targets) for row in batch])
        tick(len(batch))
    result = work.finished()
    if result.added or result.revised:
        detail = {"revised": result.revised} | work.written.detail()
        log(session, "researcher", "ratings imported", detail, work.seals)
    return result


def _key(rating: Mapping[Any, Any]) -> Key:
    """Return what a later score of the same rater for the same thing would share."""
    return tuple(rating[name] for name in KEY)


def _score_and_comment(rating: Mapping[Any, Any]) -> tuple[float, str]:
    return rating["score"], rating["comment"]


def _ratings_by_same_raters(ratings: list[Values]) -> Executable:
    """Select, oldest first, all that the same raters said of the same responses."""
    return (
        select_columns(*(column(name) for name in (*KEY, "score", "comment")))
        .select_from(Rating)
        .where(
            col(Rating.response).in_({rating["response"] for rating in ratings}),
            col(Rating.rater).in_({rating["rater"] for rating in ratings}),
        )
        .order_by(col(Rating.id))
    )


def _score(row: RatingRow, rubric: Rubric) -> float:
    """Return a clinician's or juror's score, checked against the rubric."""
    try:
        return rubric.score(row.criterion, row.score, row.rater, row.response_id)
    except (Unknown, OffScale) as error:
        raise type(error)(f"{row.origin}: {error}; nothing was imported") from error


def _number(row: RatingRow) -> float:
    """Return a metric's value: any finite number."""
    try:
        value = float(row.score)
    except ValueError:
        value = float("inf")
    if abs(value) == float("inf") or value != value:
        raise row.origin.wrong("score", row.score, "a metric's value is a finite number")
    return value

"""Importing ratings made elsewhere, each checked against the rubric it was made on."""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from sqlalchemy import Engine, Executable, exists
from sqlalchemy import select as select_columns
from sqlmodel import Session, col, select

from data.database import transaction
from data.errors import BadInput, OffScale, Unknown
from data.importers.rows import Origin, RatingRow, Tick, batches
from data.record import add_rows, log, refuse_locked
from data.rubric import Rubric
from data.safe_text import short
from data.schema import Benchmark, Expert, Instance, Kind, Rater, Rating, Response, RubricText, now
from data.store.rubrics import keep_rubric, move_to_rubric

Values = dict[str, Any]
Key = tuple[Any, ...]
KEY = ("response", "rater", "criterion", "rubric_sha256", "pass_", "replicate")
AT_ONCE = 4_000  # rows that are looked up and inserted together
MOST_SCORES = 10_000  # different scores whose checks are remembered

_key_of = itemgetter(*KEY)  # what a later score of the same rater for the same thing would share
_said = itemgetter("score", "comment")


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
    rubric_sha256: str


class _Given:
    """What a file has rated so far, as 28 bytes a rating: files may hold millions.

    The rubric is none of the key, as response and rater decide on which one it is.
    """

    def __init__(self) -> None:
        self._numbers = array("i")  # response, rater, criterion, pass, replicate, file, row
        self._criteria: dict[str, int] = {}
        self._files: dict[str, int] = {}

    def add(self, rating: Values, origin: Origin) -> None:
        """Note a rating and where it stands."""
        criterion = self._criteria.setdefault(rating["criterion"], len(self._criteria))
        file = self._files.setdefault(origin.file, len(self._files))
        reading = rating["pass_"], rating["replicate"]
        about = rating["response"], rating["rater"], criterion
        self._numbers.extend((*about, *reading, file, origin.row))

    def repeat(self) -> tuple[Key, Origin, int] | None:
        """Return the first rating that was given before, where it stands, and the row it repeats.

        The rating as keys of response and rater, and its criterion.
        """
        import numpy as np

        table = np.frombuffer(self._numbers, dtype=np.intc).reshape(-1, 7)
        order = np.lexsort(table[:, :5].T)  # stable: equal ones stay in the order of the file
        is_same = np.ones(max(len(order) - 1, 0), dtype=np.bool_)
        for column in range(5):
            values = table[order, column]
            is_same &= values[1:] == values[:-1]
        if not is_same.any():
            return None
        again = order[1:][is_same]
        response, rater, criterion, _, _, file, row = table[again.min()].tolist()
        first = table[order[:-1][is_same][again.argmin()]].tolist()
        key = response, rater, list(self._criteria)[criterion]
        return key, Origin(list(self._files)[file], row), first[-1]


class _Import:
    """One import under way: what it has seen of the file and of the study."""

    def __init__(self, session: Session, rubric: Rubric | None, simulated: bool) -> None:
        self.session, self.rubric, self.simulated = session, rubric, simulated
        self.result = RatingsAdded()
        self.given = _Given()
        self.scores: dict[tuple[str, str, str], float] = {}
        self.raters = {rater.handle: rater for rater in session.exec(select(Rater))}
        self.keys = {handle: rater.id or 0 for handle, rater in self.raters.items()}
        has_rated = exists().where(col(Rating.rater) == col(Rater.id))
        self.heard = set(session.exec(select(Rater.id).where(has_rated)))
        self.training = set(session.exec(select(Expert.response)))
        self.rubrics: dict[str, Rubric] = {}
        self.sha256: dict[str, str] = {}  # of those rubrics; computing one takes long
        self.rated: dict[str, set[str]] = {}

    def targets(self, batch: list[RatingRow]) -> dict[str, Target]:
        """Return the responses a batch speaks of, by response_id."""
        rows = self.session.exec(
            select(Response.response_id, Response.id, Instance.benchmark)
            .join(Instance)
            .where(col(Response.response_id).in_({row.response_id for row in batch}))
        ).all()
        return {
            name: Target(key or 0, benchmark, self.rubric_of(benchmark), self.sha256[benchmark])
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
            self.sha256[benchmark] = self.rubrics[benchmark].sha256
        return self.rubrics[benchmark]

    def rating(self, row: RatingRow, targets: dict[str, Target]) -> Values:
        """Return one row as the values of a rating, or refuse it by name."""
        target = targets.get(row.response_id)
        if target is None:
            raise row.origin.wrong(
                "response_id", row.response_id, "no such response in the study; import it first"
            )
        if target.response in self.training:
            raise row.origin.wrong(
                "response_id", row.response_id, "a training response; ratings of it do not count"
            )
        is_metric = row.kind == Kind.METRIC
        rating: Values = {
            "response": target.response,
            "rater": self.rater(row),
            "criterion": row.criterion,
            "rubric_sha256": None if is_metric else target.rubric_sha256,
            "pass_": row.pass_,
            "replicate": row.replicate,
            "score": _number(row) if is_metric else self.score(row, target),
            "comment": row.comment,
            "at": row.rated_at or now(),
        }
        self.given.add(rating, row.origin)
        if not is_metric:
            self.rated.setdefault(target.benchmark, set()).add(row.criterion)
        return rating

    def score(self, row: RatingRow, target: Target) -> float:
        """Return a clinician's or juror's score, checked against the rubric."""
        key = target.rubric_sha256, row.criterion, row.score
        score = self.scores.get(key)
        if score is None:
            score = _score(row, target.rubric)
            if len(self.scores) < MOST_SCORES:
                self.scores[key] = score
        return score

    def rater(self, row: RatingRow) -> int:
        """Return the key of the row's rater, made if new; a name never changes its kind."""
        rater = self.raters.get(row.rater)
        if rater is None:
            rater = Rater(kind=row.kind, handle=row.rater, simulated=self.simulated)
            self.session.add(rater)
            self.session.flush()
            self.raters[row.rater], self.keys[row.rater] = rater, rater.id or 0
            self.result.raters.append(row.rater)
        if rater.kind != row.kind:
            raise row.origin.wrong("kind", row.kind.value, f"{short(row.rater)} is a {rater.kind}")
        return self.keys[row.rater]

    def refuse_repeats(self) -> None:
        """Refuse a file that gives one rating twice, by the first row that says it again."""
        repeat = self.given.repeat()
        if repeat is None:
            return
        (response, rater, criterion), origin, first = repeat
        name = self.session.exec(select(Response.response_id).where(Response.id == response)).one()
        handle = next(handle for handle, key in self.keys.items() if key == rater)
        raise origin.wrong(
            "criterion",
            criterion,
            f"{short(handle)} already rates {short(criterion)} of {short(name)} in row {first}",
        )

    def finished(self) -> RatingsAdded:
        """Return what the import changed, with the criteria that the file leaves out."""
        for benchmark, rated in self.rated.items():
            lacking = [name for name in self.rubrics[benchmark].criteria if name not in rated]
            if lacking:
                self.result.lacking[benchmark] = lacking
        return self.result

    def keep(self, ratings: list[Values]) -> None:
        """Add what is new; count what the study already says."""
        latest, new = self._latest(ratings), []
        for rating in ratings:
            before = latest.get(_key_of(rating)) if latest else None
            if before == _said(rating):
                self.result.unchanged += 1
                continue
            self.result.revised += before is not None
            self.result.added += before is None
            new.append(rating)
        add_rows(self.session, Rating, new)

    def _latest(self, ratings: list[Values]) -> dict[Key, tuple[float, str]]:
        """Return what the study says of the same things, by raters who had rated before."""
        heard = {rating["rater"] for rating in ratings} & self.heard
        if not heard:
            return {}
        responses = {rating["response"] for rating in ratings}
        rows = self.session.execute(_ratings_of(heard, responses))
        return {key: (score, comment) for *cells, score, comment in rows for key in (tuple(cells),)}


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
    try:
        for batch in batches(rows, AT_ONCE):
            targets = work.targets(batch)
            work.keep([work.rating(row, targets) for row in batch])
            tick(len(batch))
    except BadInput:
        work.refuse_repeats()  # it stands before what is wrong here
        raise
    work.refuse_repeats()
    result = work.finished()
    if result.added or result.revised:
        detail = {"rows": result.added + result.revised, "revised": result.revised}
        log(session, "researcher", "ratings imported", detail)
    return result


def _ratings_of(raters: set[int | None], responses: set[int]) -> Executable:
    """Select, oldest first, all that some raters said of some responses."""
    return (
        select_columns(*(getattr(Rating, name) for name in (*KEY, "score", "comment")))
        .where(col(Rating.response).in_(responses), col(Rating.rater).in_(raters))
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

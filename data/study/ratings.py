"""Ratings: those that clinicians enter, with drafts and marks, and those made elsewhere.

Of two states of a form the newer stands; a page numbers its states.
"""

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from operator import itemgetter
from typing import Any

from sqlalchemy import Engine, Executable, Select, and_, bindparam, exists
from sqlalchemy import select as select_columns
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, desc, select

from data.card import Flag, Marked, Reply, Score
from data.database import shared_transaction, transaction
from data.errors import BadInput, NotAllowed, OffScale, Stale, Unexplained, Unknown
from data.importers.rows import EmptyCell, Origin, RatingRow, Tick, batches
from data.record import LOCKED, add_rows, log, refuse_locked, refuse_locked_since
from data.rubric import Rubric, low_points
from data.safe_text import short
from data.schema import (
    IS_RATED_ON,
    Assignment,
    Benchmark,
    Expert,
    Instance,
    Kind,
    PointSet,
    Rater,
    Rating,
    Remark,
    Response,
    RubricText,
    Setting,
    Span,
    State,
    Submission,
    now,
)
from data.study.assignments import NOT_YOURS
from data.study.calls import rating_rows, scored
from data.study.readings import IS_WITHDRAWN, NEWEST, ON_PRESENT_RUBRIC, On, rated, readings
from data.study.rubrics import RatingForm, form_on, keep_rubric, move_to_rubric
from data.study.settings import STUDY_TEXT
from data.study.withdrawals import keep_withdrawn, spellings

Values = dict[str, Any]
Key = tuple[Any, ...]
KEY = ("response", "rater", "criterion", "rubric_sha256", "pass_", "replicate")
AT_ONCE = 4_000  # rows that are looked up and inserted together
MOST_SCORES = 10_000  # different scores whose checks are remembered

_key_of = itemgetter(*KEY)  # what a later score of the same rater for the same thing would share
_said = itemgetter("score", "answer", "comment")
Said = tuple[float | None, str, str]


@dataclass
class RatingsAdded:
    """What an import of ratings changed.

    `revised` rows differ from what the same rater said before: both are kept and the
    newer one counts. `raters` are new to the study. `other_rubric` names benchmarks whose
    ratings were stored on a rubric that is not the benchmark's own, `lacking` the criteria of a
    benchmark's rubric that nobody in the file rates. `cleared` earlier scores are empty in the file and
    are withdrawn; `staying` has those of earlier imports that it leaves out and that count, by rater,
    where it repeats others of them; `replaced` were withdrawn as it leaves them out. `spellings` are
    pairs of names that may be one person's.
    """

    added: int = 0
    revised: int = 0
    unchanged: int = 0
    raters: list[str] = field(default_factory=list)
    other_rubric: set[str] = field(default_factory=set)
    lacking: dict[str, list[str]] = field(default_factory=dict)
    cleared: int = 0
    replaced: int = 0
    staying: dict[str, int] = field(default_factory=dict)
    spellings: list[tuple[str, str]] = field(default_factory=list)


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

    def keys(self) -> set[tuple[int, int, str, int, int]]:
        """Return response, rater, criterion, pass and replicate of every rating."""
        names, numbers = list(self._criteria), iter(self._numbers)
        rows = zip(*[numbers] * 7, strict=True)
        return {(row[0], row[1], names[row[2]], row[3], row[4]) for row in rows}

    @property
    def file(self) -> str:
        """Name of the first file."""
        return next(iter(self._files), "an imported file")

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
        self.scores: dict[tuple[str, str, str], Score] = {}
        self.raters = {rater.handle: rater for rater in session.exec(select(Rater))}
        has_rated = exists().where(col(Rating.rater) == col(Rater.id))
        self.heard = set(session.exec(select(Rater.id).where(has_rated)))
        self.training = set(session.exec(select(Expert.response)))
        self.rubrics: dict[str, Rubric] = {}
        self.sha256: dict[str, str] = {}  # of those rubrics; computing one takes long
        self.rated: dict[str, set[str]] = {}
        self.kinds: set[Kind] = set()

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
            "shown_first": row.shown_first,
            **scored(_number(row) if is_metric else self.score(row, target)),
            "comment": row.comment,
            "at": row.rated_at or now(),
        }
        self.given.add(rating, row.origin)
        if not is_metric:
            self.rated.setdefault(target.benchmark, set()).add(row.criterion)
        return rating

    def score(self, row: RatingRow, target: Target) -> Score:
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
        self.kinds.add(row.kind)
        rater = self.raters.get(row.rater)
        if rater is None:
            rater = Rater(kind=row.kind, handle=row.rater, simulated=self.simulated)
            self.session.add(rater)
            self.session.flush()
            self.raters[row.rater] = rater
            self.result.raters.append(row.rater)
        if rater.kind != row.kind:
            raise row.origin.wrong("kind", row.kind.value, f"{short(row.rater)} is a {rater.kind}")
        return rater.id or 0

    def refuse_repeats(self) -> None:
        """Refuse a file that gives one rating twice, by the first row that says it again."""
        repeat = self.given.repeat()
        if repeat is None:
            return
        (response, rater, criterion), origin, first = repeat
        name = self.session.exec(select(Response.response_id).where(Response.id == response)).one()
        handle = next(name for name, one in self.raters.items() if one.id == rater)
        raise origin.wrong(
            "criterion",
            criterion,
            f"{short(handle)} already rates {short(criterion)} of {short(name)} in row {first}",
        )

    def finished(self) -> RatingsAdded:
        """Return what the import changed, with the criteria that the file leaves out."""
        for benchmark, named in self.rated.items():
            lacking = [name for name in self.rubrics[benchmark].criteria if name not in named]
            if lacking:
                self.result.lacking[benchmark] = lacking
        people = [name for name, one in self.raters.items() if one.kind == Kind.CLINICIAN]
        new = [name for name in self.result.raters if name in people]
        self.result.spellings = spellings(new, people)
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

    def withdraw(self, empty: Collection[EmptyCell], *, replace: bool) -> None:
        """Withdraw what the file clears, and with `replace` all else that it leaves out."""
        result, cells = self.result, {*empty}
        repeats = bool(result.unchanged or result.revised)
        if not (cells or repeats or replace):
            return
        given, handles = self.given.keys(), {one.id or 0: name for name, one in self.raters.items()}
        cleared, gone = list[int](), list[int]()
        staying: Counter[str] = Counter()
        for number, name, benchmark, *key in self.session.execute(_IMPORTED):
            if tuple(key) in given:
                continue
            _, rater, criterion, pass_, replicate = key
            kind = self.raters[handles[rater]].kind
            if EmptyCell(name, handles[rater], criterion, pass_, replicate) in cells:
                cleared.append(number)
            elif benchmark in self.rubrics and kind in self.kinds:
                gone.append(number)
                staying[handles[rater]] += 1
        actor = "researcher"
        result.cleared = len(cleared)
        keep_withdrawn(self.session, cleared, f"empty in {self.given.file}", actor)
        if replace:
            result.replaced = len(gone)
            keep_withdrawn(self.session, gone, f"not in {self.given.file}", actor)
        elif repeats or cleared:
            result.staying = dict(staying)

    def _latest(self, ratings: list[Values]) -> dict[Key, Said]:
        """Return what the study says of the same things, by raters who had rated before."""
        heard = {rating["rater"] for rating in ratings} & self.heard
        if not heard:
            return {}
        responses = {rating["response"] for rating in ratings}
        rows = self.session.execute(_ratings_of(heard, responses))
        latest: dict[Key, Said] = {}
        for *cells, score, answer, comment, is_withdrawn in rows:
            if is_withdrawn:
                latest.pop(tuple(cells), None)  # and what an older one says
            else:
                latest[tuple(cells)] = score, answer, comment
        return latest


def import_ratings(
    engine: Engine,
    rows: Iterable[RatingRow],
    rubric: Rubric | None = None,
    simulated: bool = False,
    tick: Tick = lambda _: None,
    *,
    replace: bool = False,
) -> RatingsAdded:
    """Store ratings made elsewhere, all of the file or nothing.

    Parameters
    ----------
    rows
        Streamed, one score each; cells without one that its `empty` names, if it has it, clear what
        an earlier import has there: that is withdrawn.
    rubric
        The rubric they were made on; by default each benchmark's own. A benchmark that
        nobody has rated yet moves to it.
    simulated
        Mark raters that are new to the study as simulated.
    replace
        Withdraw what earlier imports have of the file's benchmarks, by raters of the kinds in it, and
        it leaves out.

    Raises
    ------
    BadRow
        If a response is unknown, a criterion or score is not the rubric's, a rating stands
        twice in the file, or a rater changes kind. Nothing is stored.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        return keep_ratings(session, rows, rubric, simulated, tick, replace=replace)


def keep_ratings(
    session: Session,
    rows: Iterable[RatingRow],
    rubric: Rubric | None = None,
    simulated: bool = False,
    tick: Tick = lambda _: None,
    *,
    replace: bool = False,
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
    work.withdraw(getattr(rows, "empty", ()), replace=replace)
    result = work.finished()
    if result.added or result.revised or result.cleared or result.replaced:
        detail = {"rows": result.added + result.revised, "revised": result.revised}
        if result.cleared or result.replaced:
            detail["withdrawn"] = result.cleared + result.replaced
        log(session, "researcher", "ratings imported", detail)
    return result


_ENTERED = exists().where(
    col(Assignment.rater) == col(Rating.rater),
    col(Assignment.response) == col(Rating.response),
    col(Assignment.pass_) == col(Rating.pass_),
    col(Assignment.revision) > 0,
)
# What counts and was not entered in the rating room.
_IMPORTED = rated(
    *(Rating.id, Response.response_id, Instance.benchmark, Rating.response, Rating.rater),
    *(Rating.criterion, Rating.pass_, Rating.replicate),
).where(ON_PRESENT_RUBRIC, NEWEST, ~_ENTERED)


def _ratings_of(raters: set[int | None], responses: set[int]) -> Executable:
    """Select, oldest first, all that some raters said of some responses."""
    return (
        select_columns(
            *(getattr(Rating, name) for name in (*KEY, "score", "answer", "comment")), IS_WITHDRAWN
        )
        .where(col(Rating.response).in_(responses), col(Rating.rater).in_(raters))
        .order_by(col(Rating.id))
    )


def _score(row: RatingRow, rubric: Rubric) -> Score:
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


LAST_NUMBER = 2**31 - 1  # of a state: the greatest that a column holds


@dataclass(frozen=True, slots=True)
class StoredState:
    """The state of a form that is stored where there is no assignment: what is entered, its number."""

    draft: Mapping[str, Any]
    draft_seq: int


Stored = Assignment | StoredState


@dataclass(frozen=True, slots=True)
class FormState:
    """A state of the form, as a page sends it.

    Attributes
    ----------
    draft
        All that is entered; `by` is the page it was entered in and `seq` that page's own count.
    base
        Number of the stored state that the page last knew, which it means to replace; None
        replaces whatever is stored.
    appearance
        Whether the page is light or dark.
    """

    draft: Mapping[str, Any]
    seconds: float
    base: int | None = None
    appearance: str = "light"

    def reply(self) -> Reply:
        """Return what is entered as a rater's answer, whole or not."""
        entered = self.draft
        spans = tuple(Marked(**span) for span in entered.get("spans", ()))
        comments, flags = entered.get("comments", {}), tuple(entered.get("flags", ()))
        comment, odd = entered.get("comment", ""), entered.get("odd", "")
        return Reply(entered.get("scores", {}), comments, comment, spans, flags, odd)

    def follows(self, stored: Stored) -> bool:
        """Tell whether nobody else has changed what is stored since this page knew it."""
        return self.base in (None, stored.draft_seq) or self._is_of_same_page(stored)

    def known(self, stored: Stored) -> bool:
        """Tell whether this state, or a newer one of this page, is stored already.

        What was entered upon the very state that is stored is newer than it, however it counts.
        """
        counted = self.draft["seq"] <= stored.draft.get("seq", 0)
        return counted and self._is_of_same_page(stored) and self.base != stored.draft_seq

    def submitted(self, assignment: Assignment) -> bool:
        """Tell whether this very submission, or a newer state after one, is stored already."""
        is_last = self.draft["seq"] == assignment.draft.get("seq", 0)
        return (
            bool(assignment.revision)
            and self.known(assignment)
            and (assignment.submitted_seq == assignment.draft_seq or not is_last)
        )

    def _is_of_same_page(self, stored: Stored) -> bool:
        return bool(self.draft["by"]) and stored.draft.get("by") == self.draft["by"]


def next_number(number: int) -> int:
    """Return the number of the state after this one; after the last that there is, the first."""
    return number + 1 if number < LAST_NUMBER else 1


CHANGED = "this response was changed in another window"
GIVEN_BACK = "you gave this response back; another clinician rates it"
MARKED = ("criterion", "start", "end", "error", "note", "side", "severity", "linked")
_EARLIER = aliased(Rating)
# A rating that no earlier one of its showing precedes, by the order of storing: a clock may be set
# back. One table is walked from its end, not each showing looked up: clinicians rate thousands.
_LAST_SHOWING = (
    select(Rating.response, Rating.pass_)
    .where(
        col(Rating.rater) == bindparam("rater"),
        exists().where(
            col(Assignment.rater) == Rating.rater,
            col(Assignment.response) == Rating.response,
            col(Assignment.pass_) == Rating.pass_,
            col(Assignment.state) == State.DONE,
        ),
        ~exists().where(
            col(_EARLIER.rater) == Rating.rater,
            col(_EARLIER.response) == Rating.response,
            col(_EARLIER.pass_) == Rating.pass_,
            col(_EARLIER.id) + 0 < col(Rating.id),  # by the showing, not through all of the rater's
        ),
    )
    .order_by(desc(Rating.id))
    .limit(1)
    .subquery()
)
_LAST_SCORES = (
    select(Rating.criterion, Rating.score)
    .join(
        _LAST_SHOWING,
        and_(
            col(Rating.response) == _LAST_SHOWING.c.response,
            col(Rating.pass_) == _LAST_SHOWING.c.pass_,
        ),
    )
    # Of points of a case only what they come to: an answer is no degree.
    .where(
        col(Rating.rater) == bindparam("rater"),
        col(Rating.score).is_not(None),
        col(Rating.rubric_sha256).not_in(select(PointSet.rubric_sha256)),
    )
    .order_by(col(Rating.id))
)
ENDED = (State.DONE, State.UNRATED)
# What a draft or a submission is checked against, in one query. It is sent after the study's lock is
# held, so what only those write who hold it alone is as it stands.
_LOCKED_SINCE = select(Setting.value).where(Setting.key == LOCKED).scalar_subquery()
_STUDY_TEXT = select(Setting.value).where(Setting.key == STUDY_TEXT).scalar_subquery()
_CHECKED: tuple[Any, ...] = (Assignment, RubricText.body, _LOCKED_SINCE, _STUDY_TEXT)
_MINE: Select[*tuple[Any, ...]] = (
    Select(*_CHECKED)
    .select_from(Assignment)
    .join(Response)
    .join(Instance)
    .join(Benchmark)
    .join(RubricText, IS_RATED_ON)
    .where(col(Assignment.code) == bindparam("code"), col(Assignment.rater) == bindparam("rater"))
    .with_for_update(of=Assignment)
)


def previous(session: Session, assignment: Assignment) -> float | None:
    """Return the mean score of what this clinician rated just before, None if nothing."""
    stored = session.exec(_LAST_SCORES, params={"rater": assignment.rater}).all()
    scores = {name: score for name, score in stored if score is not None}
    return sum(scores.values()) / len(scores) if scores else None


SubmittedContent = tuple[object, object, object, str]


def submitted_content(session: Session, assignment: Assignment) -> SubmittedContent:
    """Return all that the newest submission of an assignment said."""
    own = assignment.rater, assignment.pass_
    among = readings(
        session,
        responses=[assignment.response],
        kinds=[Kind.CLINICIAN],
        rubric=On.CASE,
        words=True,
    )
    said = next((one for one in among if (one.rater, one.pass_) == own), None)
    if said is None:
        return {}, set(), set(), ""
    given = (said.answers or said.said) if assignment.state == State.DONE else {}
    scores = {name: (score, said.comments.get(name, "")) for name, score in given.items()}
    marked = {tuple(getattr(span, name) for name in MARKED) for span in said.spans}
    return scores, set(said.flags), marked, said.comment


def reply_content(reply: Reply, scores: Mapping[str, Score]) -> SubmittedContent:
    """Return what a reply says, in the form of `submitted_content`."""
    marked = {tuple(getattr(span, name) for name in MARKED) for span in reply.spans}
    rated = {name: (score, reply.comments.get(name, "")) for name, score in scores.items()}
    return rated, set(flag_texts(reply)), marked, whole_comment(reply, scores)


def flag_texts(reply: Reply) -> list[tuple[Flag, str]]:
    """Return the flags of a reply, each with what it is about: its own line, or the comment."""
    odd = {"flag": reply.odd}
    return [(flag, odd.get(flag) or reply.comment) for flag in reply.flags]


def save_draft(engine: Engine, rater: int, code: str, entered: FormState) -> int:
    """Keep a draft; return the number of the state that is stored now.

    One that is stored already, or is older than what its own page sent since, changes nothing.
    The draft of a response that is rated already changes nothing about the rating.

    Raises
    ------
    Stale
        If another page has changed what is stored since this page knew it.
    NotAllowed
        If the assignment is not this rater's, was given back, or the study is locked.
    BadInput
        If a score, a comment or a mark cannot be: drafts are checked like submissions.
    """
    with shared_transaction(engine) as session:
        showing = _showing(session, rater, code)
        assignment, reply = showing.assignment, showing.as_stored(entered.reply())
        refuse_locked_since(showing.locked_since)
        showing.form(session, reply).refuse_impossible(reply)
        if assignment.state == State.RECUSED:
            raise NotAllowed(GIVEN_BACK)
        if entered.known(assignment):
            return assignment.draft_seq
        if not entered.follows(assignment):
            raise Stale(CHANGED)
        _keep_state(assignment, entered)
        return assignment.draft_seq


def submit(
    engine: Engine,
    rater: int,
    code: str,
    reply: Reply,
    seconds: float = 0.0,
    entered: FormState | None = None,
    *,
    ask_why: bool = False,
) -> bool:
    """Turn a reply into ratings, remarks, marked stretches and a submission.

    The same reply again changes nothing and gives False. A later one that differs is a revision:
    it is added, and counts.

    Parameters
    ----------
    entered
        The state of the page that submits, kept for whoever returns to it.
    ask_why
        Whether a low score on the first criterion needs a line of comment or a marked stretch.

    Raises
    ------
    Unexplained
        If such a reason is missing.
    Stale
        If another page has changed what is stored since this page knew it.
    NotAllowed
        If the assignment is not this rater's, was given back, or the study is locked.
    BadInput
        If a criterion is missing, unknown, or off the scale, or a stretch is not of its text, has
        no error type of the study, or no severity that there is.
    """
    with shared_transaction(engine) as session:
        showing = _showing(session, rater, code)
        reply = showing.as_stored(reply)
        assignment, form = showing.assignment, showing.form(session, reply)
        scores = form.scores(reply)
        content = reply_content(reply, scores)
        if entered is not None and _is_stored(session, assignment, entered, content):
            return False
        refuse_unexplained(form.rubric, reply, ask_why)
        refuse_locked_since(showing.locked_since)
        is_same = assignment.state in ENDED and submitted_content(session, assignment) == content
        if is_same:
            _keep_submitted(assignment, entered, seconds)
            return False
        if assignment.state == State.RECUSED:
            raise NotAllowed(GIVEN_BACK)
        if assignment.revision == 0:
            assignment.done_at, assignment.previous = now(), previous(session, assignment)
        state = entered or FormState({}, seconds, assignment.draft_seq)
        _write(session, showing, form, scores, reply, state)
        assignment.state = State.DONE if scores else State.UNRATED
        assignment.revision += 1
        _keep_submitted(assignment, entered, seconds)
        detail = {"assignment": assignment.id, "revision": assignment.revision, "scores": scores}
        log(session, f"rater {rater}", "rated", detail)
    return True


@dataclass(frozen=True, slots=True)
class _Showing:
    """A clinician's own assignment, its row locked, and what an entry for it is checked against."""

    assignment: Assignment
    rubric: Rubric
    locked_since: str | None
    study_text: str | None

    def as_stored(self, reply: Reply) -> Reply:
        """Return what is said as of the responses of a pair in their stored order."""
        return reply.turned() if self.assignment.shown_first == "second" else reply

    def form(self, session: Session, reply: Reply) -> RatingForm:
        return form_on(session, self.rubric, self.assignment.response, reply)


def _showing(session: Session, rater: int, code: str) -> _Showing:
    """Return the rater's own assignment of that code, locked until the transaction ends."""
    row = session.execute(_MINE, {"rater": rater, "code": code}).first()
    if row is None:
        raise NotAllowed(NOT_YOURS)
    assignment, rubric, locked_since, study_text = row
    return _Showing(assignment, Rubric.from_json(rubric), locked_since, study_text)


def _is_stored(
    session: Session, assignment: Assignment, entered: FormState, content: SubmittedContent
) -> bool:
    """Tell whether this page, or another of the same clinician, has submitted this; refuse what is stale.

    Raises
    ------
    Stale
        If another page has changed what is stored since this page knew it, to something else.
    """
    if entered.submitted(assignment):
        return True
    if entered.follows(assignment):
        return False
    is_submitted = assignment.state in ENDED and assignment.submitted_seq == assignment.draft_seq
    if is_submitted and submitted_content(session, assignment) == content:
        return True
    raise Stale(CHANGED)


def whole_comment(reply: Reply, scores: Mapping[str, Score]) -> str:
    """Return what is said of the whole, and of criteria that have no score to stand with."""
    comments = ((name, text) for name, text in reply.comments.items() if text)
    without = (f"{name}: {text}" for name, text in comments if name not in scores)
    return "\n".join(filter(None, [reply.comment, *without]))


def refuse_unexplained(rubric: Rubric, reply: Reply, ask_why: bool) -> None:
    """Raise Unexplained if a low score on the first criterion has neither a line nor a mark."""
    first = rubric.criteria[0]
    reason = reply.comment.strip() or reply.comments.get(first, "").strip() or reply.spans
    if ask_why and not reason and reply.scores.get(first) in low_points(rubric):
        raise Unexplained(first)


def _keep_state(assignment: Assignment, entered: FormState) -> None:
    """Keep a state of the form; its number is the next."""
    _advance(assignment)
    assignment.draft = dict(entered.draft)
    assignment.seconds_active = max(assignment.seconds_active, entered.seconds)


def _advance(assignment: Assignment) -> None:
    """Give the next state its number; what was submitted stays before it."""
    assignment.draft_seq = next_number(assignment.draft_seq)
    assignment.submitted_seq = min(assignment.submitted_seq, assignment.draft_seq - 1)


def _keep_submitted(assignment: Assignment, entered: FormState | None, seconds: float) -> None:
    """Keep the state that was submitted, and its number."""
    if entered is None:
        _advance(assignment)
        assignment.seconds_active = max(assignment.seconds_active, seconds)
    else:
        _keep_state(assignment, entered)
    assignment.submitted_seq = assignment.draft_seq


def _write(
    session: Session,
    showing: _Showing,
    form: RatingForm,
    scores: dict[str, Score],
    reply: Reply,
    state: FormState,
) -> None:
    """Add all that a submission says."""
    assignment = showing.assignment
    about: dict[str, Any] = {"assignment": assignment.id, "revision": assignment.revision}
    submission = Submission(
        comment=whole_comment(reply, scores),
        seconds=state.seconds,
        study_text=showing.study_text,
        appearance=state.appearance,
        **about,
    )
    rated = {
        "response": assignment.response,
        "rater": assignment.rater,
        "pass_": assignment.pass_,
        "replicate": 0,
        "shown_first": assignment.shown_first,
    }
    add_rows(session, Rating, rating_rows(rated, form.rubric, scores, reply))
    session.add_all(Remark(kind=kind, text=text, **about) for kind, text in flag_texts(reply))
    session.add_all(Span(text=form.stretch(span), **about, **asdict(span)) for span in reply.spans)
    session.add(submission)

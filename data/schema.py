"""The tables of a study, and the base of all tables.

Only `data.study` writes and reads them. Who wrote a response stands in a table of its own,
Authorship, which nothing that serves raters ever reads.
"""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    JSON,
    CheckConstraint,
    Column,
    Index,
    MetaData,
    UniqueConstraint,
    func,
)
from sqlalchemy.orm import registry
from sqlmodel import AutoString, Field, SQLModel, col, select

from data.calls import Status as Status
from data.card import Kind as Kind

NAMING = {
    "ix": "ix_%(column_0_label)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
ANSWER, SEEN = "answer", "seen"  # kinds of remarks about remarks


def now() -> datetime:
    """Return the present time, aware, in UTC."""
    return datetime.now(UTC)


class Table(SQLModel, registry=registry(metadata=MetaData(naming_convention=NAMING))):
    """Base of all tables, with names for every constraint so that migrations can move them."""


class RubricText(Table, table=True):
    """A rubric as it stood when it was first used, by the SHA-256 of its text."""

    __tablename__ = "rubric"
    sha256: str = Field(primary_key=True, max_length=64)
    name: str
    version: str
    body: str
    added: datetime = Field(default_factory=now)


class StudyText(Table, table=True):
    """What clinicians are told of a study, as it stood, by the SHA-256 of its text."""

    __tablename__ = "study_text"
    sha256: str = Field(primary_key=True, max_length=64)
    body: str
    added: datetime = Field(default_factory=now)


class Benchmark(Table, table=True):
    """A named set of instances rated on one rubric."""

    name: str = Field(primary_key=True)
    category: str = ""
    subcategory: str = ""
    rubric_sha256: str = Field(foreign_key="rubric.sha256")


class Instance(Table, table=True):
    """One question put to the models: its material, its task and, if there is one, a reference."""

    __table_args__ = (UniqueConstraint("benchmark", "instance_id"),)
    id: int | None = Field(default=None, primary_key=True)
    benchmark: str = Field(foreign_key="benchmark.name", index=True)
    instance_id: str
    context: str
    prompt: str
    reference: str | None = None
    checklist: str | None = None


class Response(Table, table=True):
    """One answer to an instance, without its author.

    `shown` is the text with masks where it named its author, None where nothing is masked.
    `commitment` is the SHA-256 of `salt` and `text`: it holds the text to the record and, without
    the salt, tells nobody what is masked. `salt` is None where the text itself is withheld.
    """

    id: int | None = Field(default=None, primary_key=True)
    response_id: str = Field(unique=True)
    instance: int = Field(foreign_key="instance.id", index=True)
    text: str
    shown: str | None = None
    salt: str | None = None
    commitment: str = ""


class Pair(Table, table=True):
    """Two responses to one instance that are compared: a response of its own, whose text is both.

    A preference is a rating of it, from -2 to 2, above 0 where `first` is better. `apart` says that the
    two are there for pairs alone, and are not rated by themselves.
    """

    response: int = Field(foreign_key="response.id", primary_key=True)
    first: int = Field(foreign_key="response.id", index=True)
    second: int = Field(foreign_key="response.id", index=True)
    apart: bool = False


class Subgroup(Table, table=True):
    """What a response belongs to beside its benchmark, such as `language` with the value `de`.

    Never an author, nor what tells authors apart.
    """

    __table_args__ = (UniqueConstraint("response", "name"),)
    id: int | None = Field(default=None, primary_key=True)
    response: int = Field(foreign_key="response.id")
    name: str
    value: str


class Authorship(Table, table=True):
    """Who wrote a response. Nothing that serves raters reads this table.

    `salt` is random: without it nobody can guess a model and compare digests.
    """

    response: int = Field(foreign_key="response.id", primary_key=True)
    model: str
    salt: str = ""


class Mask(Table, table=True):
    """A place of a response's text, in characters, that named its author and is not shown.

    `salt` is random: the record's digest of the place tells nobody a name.
    """

    id: int | None = Field(default=None, primary_key=True)
    response: int = Field(foreign_key="response.id", index=True)
    start: int
    end: int
    text: str
    at: datetime = Field(default_factory=now)
    salt: str = ""


class Role(StrEnum):
    """What a person may do: rate; read the study and run juries; or steer it."""

    CLINICIAN = "clinician"
    RESEARCHER = "researcher"
    COORDINATOR = "coordinator"


class Rater(Table, table=True):
    """A clinician, a juror or a metric.

    `profile` is what makes a juror that juror (provider, model, settings); a
    juror of the same name with another profile is refused.
    """

    id: int | None = Field(default=None, primary_key=True)
    kind: Kind = Field(sa_type=AutoString)
    handle: str = Field(unique=True)
    family: str = ""
    pseudonym: str = ""
    specialty: str = ""
    simulated: bool = False
    profile: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))


class Account(Table, table=True):
    """A person who may sign in. Clinicians are raters too; `ended` shuts a person out.

    `salt` is random: the record's digest of an account tells nobody an e-mail address.
    """

    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True)
    role: Role = Field(sa_type=AutoString)
    email: str | None = Field(default=None, unique=True)
    rater: int | None = Field(default=None, foreign_key="rater.id", unique=True)
    created: datetime = Field(default_factory=now)
    ended: datetime | None = None
    salt: str = ""


class Access(Table, table=True):
    """A way in: a code's public half, and the hash of its secret half.

    One with `once` signs in a single time. `expires` ends signing in, `revoked` sessions too.
    """

    lookup: str = Field(primary_key=True)
    account: int = Field(foreign_key="account.id", index=True)
    secret_hash: str
    once: bool = False
    created: datetime = Field(default_factory=now)
    expires: datetime | None = None
    used: datetime | None = None
    revoked: datetime | None = None


class State(StrEnum):
    """How far an assignment has come.

    UNRATED: the clinician could not rate it (not enough context), which is counted.
    RECUSED: the clinician may not or cannot, or their access has ended; the place is free for another one.
    """

    OPEN = "open"
    DONE = "done"
    UNRATED = "unrated"
    RECUSED = "recused"


class Rating(Table, table=True):
    """One score by one rater on one criterion of one response.

    Append-only: a changed mind is a new row, and of rows that agree in response,
    rater, criterion, rubric, pass and replicate the one with the highest id counts.
    `score` is NULL where `answer`, of `data.card.ANSWERS`, stands in its place.
    `shown_first` is of a pair: "first" or "second", "" where not known; of a juror's replicates those with
    an even number have the first one first.
    `pass_` says which reading it is of, as `data.card` has it. The view `superseded` names the
    rows (`rating`) that no longer count, the withdrawn ones among them, for who reads the database with SQL of their own.
    """

    __table_args__ = (
        Index("ix_rating_key", "response", "rater", "pass_", "replicate", "criterion"),
    )
    id: int | None = Field(default=None, primary_key=True)
    response: int = Field(foreign_key="response.id")
    rater: int = Field(foreign_key="rater.id", index=True)
    criterion: str
    score: float | None
    answer: str = Field(default="", sa_column_kwargs={"server_default": ""})
    rubric_sha256: str | None = Field(default=None, foreign_key="rubric.sha256")
    pass_: int = Field(default=0)
    replicate: int = Field(default=0)
    shown_first: str = Field(default="", sa_column_kwargs={"server_default": ""})
    comment: str = ""
    at: datetime = Field(default_factory=now)


class Withdrawal(Table, table=True):
    """What was withdrawn, and why: a response, all that a rater rated, or one score.

    Append-only: what is withdrawn stays stored and counts nowhere. `score` is a rating's key; a later
    score for the same thing counts again.
    """

    id: int | None = Field(default=None, primary_key=True)
    response: int | None = Field(default=None, foreign_key="response.id", index=True)
    rater: int | None = Field(default=None, foreign_key="rater.id", index=True)
    score: int | None = Field(default=None, foreign_key="rating.id", index=True)
    reason: str
    actor: str
    at: datetime = Field(default_factory=now)


SUPERSEDED = """
SELECT older.id AS rating FROM rating older WHERE EXISTS (
    SELECT 1 FROM rating newer
    WHERE newer.response = older.response AND newer.rater = older.rater
    AND newer.pass_ = older.pass_ AND newer.replicate = older.replicate
    AND newer.criterion = older.criterion AND newer.id > older.id
    AND COALESCE(newer.rubric_sha256, '') = COALESCE(older.rubric_sha256, '')
) OR older.id IN (SELECT score FROM withdrawal)
OR older.rater IN (SELECT rater FROM withdrawal)
OR older.response IN (SELECT response FROM withdrawal)
"""


class Assignment(Table, table=True):
    """A response a clinician is to rate, its place in their order, and the draft so far.

    `code` is random: it is the only name of the response that reaches a browser. `pass_` is as in
    a rating: a first reading, a hidden repeat, or one that settles a difference. `shown_first` says which
    response of a pair is shown first: "first" or "second"; "" of any other response.
    `revision` counts submissions, `submitted_seq` is the draft's number at the last; `previous` is the composite that the clinician gave to
    the response before this one, when this one was first submitted.
    """

    __table_args__ = (
        UniqueConstraint("rater", "response", "pass_"),
        CheckConstraint("seconds_active >= 0", name="seconds"),
    )
    id: int | None = Field(default=None, primary_key=True)
    code: str = Field(unique=True)
    rater: int = Field(foreign_key="rater.id", index=True)
    response: int = Field(foreign_key="response.id", index=True)
    position: int
    pass_: int = Field(default=0)
    shown_first: str = Field(default="", sa_column_kwargs={"server_default": ""})
    state: State = Field(default=State.OPEN, sa_type=AutoString)
    draft: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    draft_seq: int = 0
    seconds_active: float = 0.0
    opened_at: datetime | None = None
    reference_opened_at: datetime | None = None
    done_at: datetime | None = None
    revision: int = 0
    submitted_seq: int = 0
    previous: float | None = None
    assigned_at: datetime | None = Field(default_factory=now)


class Remark(Table, table=True):
    """What is said of a showing apart from scores: a flag, a recusal and its reason, an answer.

    Append-only. `revision` counts the submissions of the assignment before this one. `about` is
    the remark that a coordinator answers, of kind `ANSWER`, or of which the clinician has seen
    the answer, of kind `SEEN`; None of what the clinician says of the response.
    """

    id: int | None = Field(default=None, primary_key=True)
    assignment: int = Field(foreign_key="assignment.id", index=True)
    kind: str
    text: str = ""
    revision: int = 0
    at: datetime = Field(default_factory=now)
    about: int | None = None


class Submission(Table, table=True):
    """One submission of an assignment: what was said of the whole, and what it was made under.

    Append-only. `study_text` is the description of the study that the clinician could read
    (None where there was none), `appearance` whether the page was light or dark.
    """

    id: int | None = Field(default=None, primary_key=True)
    assignment: int = Field(foreign_key="assignment.id", index=True)
    revision: int = 0
    comment: str = ""
    seconds: float = 0.0
    study_text: str | None = Field(default=None, foreign_key="study_text.sha256")
    appearance: str = "light"
    at: datetime = Field(default_factory=now)


class Span(Table, table=True):
    """A stretch of a text as shown, in characters, with the error a clinician sees in it.

    Append-only; those of an assignment's newest revision count. `side` is the text it is of:
    the response, or the source where the response leaves something out. `linked` is the place,
    from 0 among the stretches of that submission, of the stretch on the other side it goes with.
    """

    id: int | None = Field(default=None, primary_key=True)
    assignment: int = Field(foreign_key="assignment.id", index=True)
    criterion: str
    start: int
    end: int
    text: str
    error: str
    note: str = ""
    revision: int = 0
    at: datetime = Field(default_factory=now)
    side: str = "response"
    severity: str = ""
    linked: int | None = None


class ReviewKind(StrEnum):
    """What a line of a review does: it puts a tag on a response, takes one off, or is the note."""

    TAG = "tag"
    UNTAG = "untag"
    NOTE = "note"


class Review(Table, table=True):
    """A tag or the note that a researcher or coordinator put on a response; no rater is shown it.

    Append-only: of the lines on a tag, and of all notes on a response, the newest counts, and a
    note without words is none. `reviewer` is who it was, as the record's events name people: a
    package brings no accounts.
    """

    id: int | None = Field(default=None, primary_key=True)
    response: int = Field(foreign_key="response.id", index=True)
    reviewer: str
    kind: ReviewKind = Field(sa_type=AutoString)
    text: str = ""
    at: datetime = Field(default_factory=now)


class Expert(Table, table=True):
    """An expert's score of a training response on one criterion, and why."""

    __table_args__ = (UniqueConstraint("response", "criterion"),)
    id: int | None = Field(default=None, primary_key=True)
    response: int = Field(foreign_key="response.id", index=True)
    criterion: str
    score: float
    why: str = ""


class Drill(Table, table=True):
    """A clinician's answer in the training round; it never counts as a rating."""

    id: int | None = Field(default=None, primary_key=True)
    rater: int = Field(foreign_key="rater.id", index=True)
    response: int = Field(foreign_key="response.id")
    round: int = 0
    scores: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    at: datetime = Field(default_factory=now)


class Event(Table, table=True):
    """Who did what when; each row carries the hash of the one before."""

    id: int | None = Field(default=None, primary_key=True)
    at: datetime = Field(default_factory=now)
    actor: str
    action: str
    detail: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    previous: str = Field(max_length=64)
    sha256: str = Field(max_length=64, unique=True)


class Report(Table, table=True):
    """A calibration frozen with a fingerprint of the data it was computed from.

    `body` is as `medjury analyse calibrate --freeze` made it: see docs/monitor.md.
    """

    id: int = Field(default=None, primary_key=True)  # None until it is stored
    at: datetime = Field(default_factory=now)
    fingerprint: str = Field(max_length=64)
    body: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))


class Setting(Table, table=True):
    """What holds for the whole study, such as the key that signs sessions."""

    key: str = Field(primary_key=True)
    value: str


class Composition(Table, table=True):
    """A jury that was evaluated on some responses in some way, and how often.

    What makes it another composition stands in `key`, a digest: its jurors in whatever order,
    how many of them a response needs, the benchmark (or "combined"), which of its instances
    (empty: all), the criterion (empty: the composite) and the method. Times, `icc` (None where
    undefined), `n_responses` and `fingerprint` are those of the last evaluation; each earlier
    one is an event. `compared` names all that it was ever compared with.
    """

    key: str = Field(primary_key=True, max_length=64)
    jurors: list[Any] = Field(default_factory=list, sa_column=Column(JSON, nullable=False))
    needed: int
    benchmark: str
    instances: str = ""
    criterion: str = ""
    method: str
    simulated: bool = False
    compared: list[Any] = Field(default_factory=list, sa_column=Column(JSON, nullable=False))
    icc: float | None = None
    n_responses: int
    fingerprint: str = Field(max_length=64)
    times: int = 1
    first_at: datetime = Field(default_factory=now)
    last_at: datetime = Field(default_factory=now)


class PointSet(Table, table=True):
    """One version of the points of an instance, as a rubric of its own; see `data.points`.

    Append-only: of an instance's versions, made for its benchmark's present rubric
    `benchmark_rubric`, the newest counts. `author` is who brought it, as the record's events name people.
    """

    __tablename__ = "point_set"
    id: int | None = Field(default=None, primary_key=True)
    instance: int = Field(foreign_key="instance.id", index=True)
    benchmark_rubric: str = Field(foreign_key="rubric.sha256")
    rubric_sha256: str = Field(foreign_key="rubric.sha256", index=True)
    author: str
    at: datetime = Field(default_factory=now)


# Selected with Instance and Benchmark: the SHA-256 of the rubric that an instance is rated on, its own
# where the benchmark is rated by points of the case.
_POINTS = (
    select(PointSet.rubric_sha256)
    .where(
        PointSet.instance == Instance.id,
        PointSet.benchmark_rubric == Benchmark.rubric_sha256,
    )
    .order_by(col(PointSet.id).desc())
    .limit(1)
    .correlate(Instance, Benchmark)
    .scalar_subquery()
)
RATED_ON = func.coalesce(_POINTS, Benchmark.rubric_sha256)
IS_RATED_ON = col(RubricText.sha256) == RATED_ON


class Improvement(Table, table=True):
    """One attempt to have a jury agree better with the clinicians, and what came of it.

    `rubric_sha256` is the rubric that clinicians rated on, `asked` what was asked for: the panel's name
    and jurors, and the options. `split` has the instances, primary keys, of the parts `train`,
    `choose` and `test`; it is never changed. `opened` is when the juries' scores on the test part
    were first looked at, None before. `learned` is the rubric that came of it, None where none was
    better; `result` the figures, empty until the end.
    """

    id: int = Field(default=None, primary_key=True)  # None until it is stored
    at: datetime = Field(default_factory=now)
    rubric_sha256: str = Field(foreign_key="rubric.sha256")
    asked: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    split: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    opened: datetime | None = None
    learned: str | None = Field(default=None, foreign_key="rubric.sha256")
    result: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))


class Purpose(StrEnum):
    """What a call asks a model for."""

    VERDICT = "verdict"
    REFERENCE = "reference"
    RUBRIC = "rubric"


class Attempt(Table, table=True):
    """One call to a juror, whatever it asks for.

    Append-only; a failure is a row too, with its reason. `tokens_in` counts all input, that read
    from a cache and written to one included, and `tokens_out` all output, reasoning included. `usd`
    is None where no price is known: unknown is not free. `usd_cached`, `usd_cache_write` and
    `usd_out` say what of it was for input read from a cache, written to one, and for output.

    Attributes
    ----------
    response, instance, improvement
        What it is about: the first for a verdict, the second for a reference, the third, with its
        round from 1, for a better rubric.
    rubric_sha256
        The rubric of the verdict, or the one to better.
    answer
        What was read but no rating: of a verdict whose scores are means, criterion -> `stated` (the
        point in the answer), `probabilities` (point -> 0 to 1, as served) and `mass` (their sum); of a
        reference `absent` and `facts`; of a better rubric its hash, `rubric`. None unless there is such.
    """

    __table_args__ = (
        Index("ix_attempt_key", "rater", "response", "replicate"),
        Index("ix_attempt_reference", "rater", "instance"),
        Index("ix_attempt_answers", "rater", "returned_model", "status", "number", "purpose"),
    )
    id: int | None = Field(default=None, primary_key=True)
    purpose: Purpose = Field(default=Purpose.VERDICT, sa_type=AutoString)
    rater: int = Field(foreign_key="rater.id")
    response: int | None = Field(default=None, foreign_key="response.id", index=True)
    instance: int | None = Field(default=None, foreign_key="instance.id", index=True)
    improvement: int | None = Field(default=None, foreign_key="improvement.id", index=True)
    round: int | None = None
    replicate: int = 0
    rubric_sha256: str | None = Field(default=None, foreign_key="rubric.sha256")
    status: Status = Field(sa_type=AutoString)
    reason: str = ""
    number: int = 1
    request_sha256: str = Field(max_length=64, index=True)
    sent: dict[str, Any] = Field(default_factory=dict, sa_type=JSON)
    raw: str = ""
    answer: dict[str, Any] | None = Field(
        default=None, sa_column=Column(JSON(none_as_null=True), nullable=True)
    )
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int | None = None
    tokens_cache_write: int | None = None
    tokens_reasoning: int | None = None
    usd: float | None = None
    usd_cached: float | None = None
    usd_cache_write: float | None = None
    usd_out: float | None = None
    price_source: str = ""
    latency_seconds: float = 0.0
    request_id: str = ""
    returned_model: str = ""
    at: datetime = Field(default_factory=now)


class Intent(Table, table=True):
    """A call that is about to be made or has been, and whose cost is not known yet.

    Stored before the call is sent and deleted with its answer, so that after a kill what is left
    are the calls that a vendor may have billed and the study knows nothing of. One whose answer
    never came, or did not say what it cost, stays.

    Attributes
    ----------
    response, instance
        What it is about: the one for a verdict, the other for a check of a reference.
    usd_most
        What it can cost at most, None where no price is known.
    counted
        When its worst case was counted against the cap of a run; None until then.
    """

    key: str = Field(primary_key=True, max_length=40)
    rater: int = Field(foreign_key="rater.id")
    response: int | None = Field(default=None, foreign_key="response.id")
    instance: int | None = Field(default=None, foreign_key="instance.id")
    replicate: int = 0
    usd_most: float | None = None
    at: datetime = Field(default_factory=now)
    counted: datetime | None = None


class BatchState(StrEnum):
    """How far a batch is; each is stored before the step that it names is taken.

    PREPARED: nothing has left. SUBMITTING: the provider was asked to take it and may have.
    SUBMITTED: it has its id. COLLECTED: all it said is stored, its files are still there.
    CLOSED: nothing more to do.
    """

    PREPARED = "prepared"
    SUBMITTING = "submitting"
    SUBMITTED = "submitted"
    COLLECTED = "collected"
    CLOSED = "closed"


UNANSWERED = "unanswered"  # a request whose answer is gone and may have been billed


class JuryBatch(Table, table=True):
    """Requests to one juror that are answered together, within a day and at a lower price.

    `marker` is random, stands in every custom id, and finds the batch again at a provider whose
    answer was lost. `sent` holds the settings all requests share, never a text; `counts` and
    `reason` are the provider's.
    """

    __tablename__ = "jury_batch"
    id: int = Field(default=None, primary_key=True)  # None until it is stored
    marker: str = Field(unique=True, max_length=32)
    rater: int = Field(foreign_key="rater.id", index=True)
    host: str
    state: BatchState = Field(sa_type=AutoString, index=True)
    provider_id: str = ""
    input_file: str = ""
    requests: int
    sent: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    counts: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    reason: str = ""
    prepared: datetime = Field(default_factory=now)
    asked: datetime | None = None
    submitted: datetime | None = None
    closed: datetime | None = None


class JuryRequest(Table, table=True):
    """One request in a batch. `outcome` is empty while nobody knows how it ended.

    An outcome is a `Status`, whose attempt is stored with it, or one of "expired", "canceled",
    "not_sent", which cost nothing, and "unanswered"; these leave no attempt.
    """

    __tablename__ = "jury_request"
    custom_id: str = Field(primary_key=True, max_length=64)
    batch: int = Field(foreign_key="jury_batch.id", index=True)
    response: int = Field(foreign_key="response.id", index=True)
    replicate: int = 0
    rubric_sha256: str = Field(foreign_key="rubric.sha256")
    request_sha256: str = Field(max_length=64)
    usd_most: float | None = None
    outcome: str = ""

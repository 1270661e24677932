"""Rubrics by their hash, what a rating form says by its rubric, and how far a study validates one."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, bindparam, case, func
from sqlmodel import Session, col, select

from data.card import (
    ERRORS,
    NOT_ENOUGH_CONTEXT,
    SEVERITIES,
    SIDES,
    ExportRow,
    Marked,
    Reply,
    Score,
    Side,
)
from data.database import reading, transaction
from data.errors import BadInput
from data.person import Person, asking, only
from data.record import REOPENED, UNBLINDED, log, refuse_locked
from data.rubric import Rubric
from data.safe_text import refuse_nul, short
from data.samples import CALCULATIONS
from data.samples import RESPONSES as DEMO
from data.schema import (
    IS_RATED_ON,
    Benchmark,
    Expert,
    Instance,
    Kind,
    Rater,
    Rating,
    Report,
    Response,
    Role,
    RubricText,
    Setting,
)
from data.settings import ERROR_TYPES, read_settings
from data.study.base import FOR_STUDY, card, columns_of, shown
from data.study.ledger import COMBINED, compositions_tried, reports
from data.study.readings import INDEPENDENT
from data.study.verify import acts

# Made once: each submission asks it, and making it costs more than asking it.
_RUBRIC = (
    select(RubricText.body)
    .select_from(Response)
    .join(Instance)
    .join(Benchmark)
    .join(RubricText, IS_RATED_ON)
    .where(Response.id == bindparam("response"))
)
_ERROR_TYPES = select(Setting.value).where(Setting.key == ERROR_TYPES)
_TEXTS = shown().where(col(Response.id) == bindparam("response"))


ONLY_PAIRS = 'a rubric with mode = "compare" is for pairs, and pairs have no other'


def rubric_of(session: Session, response: int) -> Rubric:
    """Return the rubric a response is rated on."""
    return Rubric.from_json(session.exec(_RUBRIC, params={"response": response}).one())


def whole_scores(rubric: Rubric, reply: Reply, lacking: str) -> dict[str, Score]:
    """Return a score for every criterion, or refuse the reply in words that begin with `lacking`."""
    missing = [name for name in rubric.criteria if name not in reply.scores]
    if missing:
        raise BadInput(lacking + ", ".join(missing))
    return {
        name: rubric.score(name, value, "you", "this response")
        for name, value in reply.scores.items()
    }


def add_rubric(engine: Engine, rubric: Rubric) -> str:
    """Store a rubric in the study and return its SHA-256; one that is there already is kept."""
    with transaction(engine) as session:
        refuse_locked(session)
        return keep_rubric(session, rubric)


def keep_rubric(session: Session, rubric: Rubric) -> str:
    """Store a rubric inside the caller's transaction and return its SHA-256."""
    if session.get(RubricText, rubric.sha256) is None:
        row = RubricText(
            sha256=rubric.sha256, name=rubric.name, version=rubric.version, body=rubric.to_json()
        )
        session.add(row)
        detail = {"name": rubric.name, "version": rubric.version, "sha256": rubric.sha256}
        log(session, "researcher", "rubric added", detail)
    return rubric.sha256


def rubrics_known(engine: Engine) -> dict[str, Rubric]:
    """Return every rubric that stands in the study, by its hash."""
    with reading(engine) as session:
        rows = session.exec(select(RubricText.sha256, RubricText.body))
        return {sha256: Rubric.from_json(body) for sha256, body in rows}


def move_to_rubric(session: Session, name: str, rubric: Rubric) -> bool:
    """Put a benchmark on another rubric unless somebody rated on its present one.

    Returns False where ratings by clinicians or jurors, or experts' scores, stand on it.
    """
    benchmark = session.get_one(Benchmark, name)
    if benchmark.rubric_sha256 == rubric.sha256:
        return True
    present = Rubric.from_json(session.get_one(RubricText, benchmark.rubric_sha256).body)
    if present.compares is not rubric.compares:
        what = "pairs, which" if present.compares else "responses by themselves, which"
        raise BadInput(f"{short(name)} has {what} are not rated on {rubric.name}: {ONLY_PAIRS}")
    rated = (
        select(Rating.id)
        .join(Response)
        .join(Instance)
        .where(Instance.benchmark == name, Rating.rubric_sha256 == benchmark.rubric_sha256)
        .limit(1)
    )
    drilled = (
        select(Expert.id).join(Response).join(Instance).where(Instance.benchmark == name).limit(1)
    )
    if any(session.exec(query).first() is not None for query in (rated, drilled)):
        return False
    benchmark.rubric_sha256 = keep_rubric(session, rubric)
    detail = {"benchmark": name, "rubric": rubric.name}
    log(session, "researcher", "rubric set", detail)
    return True


@dataclass(frozen=True, slots=True)
class RatingForm:
    """The form of a response: its rubric, the texts that can be marked, what a mark can be called."""

    rubric: Rubric
    texts: Mapping[Side, str] = field(default_factory=dict)
    errors: Sequence[str] = ERRORS

    def stretch(self, mark: Marked) -> str:
        """Return the words that are marked, or refuse a mark that is not in its text."""
        text = self.texts.get(mark.side, "")
        if not 0 <= mark.start < mark.end <= len(text):
            raise BadInput("a marked stretch is not part of its text; mark it again")
        return text[mark.start : mark.end]

    def refuse_impossible(self, reply: Reply) -> None:
        """Refuse what this form cannot have sent, whether or not all is rated.

        Raises
        ------
        OffScale, Unknown
            If a score is not on the scale, or its criterion not in the rubric.
        BadInput
            If a comment or a mark cannot be; the message says what to do.
        """
        refuse_nul((reply.comment, *reply.comments.values(), *(one.note for one in reply.spans)))
        for name, value in reply.scores.items():
            self.rubric.score(name, value, "you", "this response")
        if not set(reply.comments) <= set(self.rubric.criteria):
            raise BadInput("a comment belongs to no criterion; reload the page")
        for mark in reply.spans:
            self._refuse_odd(mark, reply.spans)

    def scores(self, reply: Reply) -> dict[str, Score]:
        """Return a score for every criterion, none where it cannot be rated, or refuse the reply."""
        self.refuse_impossible(reply)
        if NOT_ENOUGH_CONTEXT in reply.flags and not reply.scores:
            return {}
        return whole_scores(self.rubric, reply, "not rated yet: ")

    def _refuse_odd(self, mark: Marked, marks: tuple[Marked, ...]) -> None:
        """Refuse a mark of no criterion or error, outside its text, or linked to none opposite."""
        if mark.criterion not in self.rubric.criteria:
            raise BadInput("a marked stretch belongs to no criterion; mark it again")
        is_known = mark.error in self.errors and mark.severity in SEVERITIES and mark.side in SIDES
        if not is_known:
            raise BadInput(
                f"this study's marks are {', '.join(self.errors)}, each minor, major or critical, "
                "in the response or the source; mark it again"
            )
        self.stretch(mark)
        if mark.linked is None:
            return
        if not 0 <= mark.linked < len(marks) or marks[mark.linked].side == mark.side:
            raise BadInput("a marked stretch is linked to none on the other side; mark it again")


def form_of(session: Session, response: int, reply: Reply) -> RatingForm:
    """Return the form of a response on its rubric, as far as a reply needs it."""
    return form_on(session, rubric_of(session, response), response, reply)


def form_on(session: Session, rubric: Rubric, response: int, reply: Reply) -> RatingForm:
    """Return the form of a response on a rubric; what marks need is read only if there are some."""
    if not reply.spans:
        return RatingForm(rubric)
    stored = session.exec(_ERROR_TYPES).first()
    errors = read_settings({} if stored is None else {ERROR_TYPES: stored}).error_types
    own = card("", list(session.execute(_TEXTS, {"response": response}).one()), rubric)
    texts: dict[Side, str] = {"response": own.response, "source": own.context or own.prompt}
    if own.second is not None:
        texts["second"] = own.second
    return RatingForm(rubric, texts, errors)


Seat = Mapping[str, Any]
ADJUDICATED = "adjudicated readings"  # what the ledger calls figures of these
SIMULATED = "simulated"  # the code of a note on a figure of raters that are not real


@dataclass(frozen=True, slots=True)
class RubricUse:
    """What stands in a study on one rubric, known by its hash.

    Attributes
    ----------
    benchmarks
        Those that are rated on it now, by name.
    raters
        Clinicians and jurors who rated responses of these on it; imported jurors have no profile.
    demo
        Whether a response has the text of one of the demo's, or is to one of its calculations.
    checklists
        Whether an instance has a checklist.
    """

    benchmarks: tuple[str, ...]
    raters: tuple[Rater, ...]
    demo: bool
    checklists: bool


def rubric_use(engine: Engine, rubric: Rubric) -> RubricUse:
    """Return who rated on exactly this rubric, and on what. Training responses are left out."""
    with reading(engine) as session:
        query = select(Benchmark.name).where(Benchmark.rubric_sha256 == rubric.sha256)
        benchmarks = tuple(session.exec(query.order_by(Benchmark.name)))
        on_rubric = col(Instance.benchmark).in_(benchmarks)
        rated = select(Rating.rater).join(Response).join(Instance)
        rated = rated.where(
            on_rubric, Rating.rubric_sha256 == rubric.sha256, FOR_STUDY, INDEPENDENT
        )
        own = select(Rater).where(col(Rater.id).in_(rated), Rater.kind != Kind.METRIC)
        raters = tuple(session.exec(own.order_by(Rater.handle)))
        with_checklist = select(Instance.id).where(on_rubric, col(Instance.checklist).is_not(None))
        checklists = session.exec(with_checklist.limit(1)).first() is not None
    return RubricUse(benchmarks, raters, _is_demo(engine, rubric), checklists)


def material(engine: Engine, rubric: Rubric) -> Iterator[ExportRow]:
    """Yield the responses of the benchmarks on a rubric, as raters see them, by instance.

    The reference is None where there is none and where the rubric's gold policy is "never".
    """
    query = (
        columns_of(Instance, func.coalesce(Response.shown, Response.text), Response.response_id)
        .select_from(Response)
        .join(Instance)
        .join(Benchmark)
        .where(Benchmark.rubric_sha256 == rubric.sha256, FOR_STUDY)
        .order_by(col(Instance.id), col(Response.id))
    )
    with reading(engine) as session:
        for instance, text, response_id in session.exec(query):
            reference = None if rubric.gold == "never" else instance.reference
            name = f"{instance.benchmark}/{instance.instance_id}"
            source = (instance.checklist, instance.benchmark, response_id)
            yield ExportRow(name, instance.context, instance.prompt, reference, text, *source)


def validation_evidence(
    use: RubricUse, seats: Sequence[Seat], made_up: Collection[str]
) -> dict[str, Any]:
    """Return who and what stands behind a jury's figures: JSON values, of clinicians only counts.

    Parameters
    ----------
    seats
        The jurors: `name`, and the profile they are asked with.
    made_up
        Names that simulated jurors go by.

    Raises
    ------
    BadInput
        If a juror goes by the name of a clinician who rated.
    """
    clinicians = [rater for rater in use.raters if rater.kind == Kind.CLINICIAN]
    jurors = {rater.handle: rater for rater in use.raters if rater.kind == Kind.JUROR}
    names = [str(seat["name"]) for seat in seats]
    if shared_names := sorted({rater.handle for rater in clinicians} & {*names}):
        raise BadInput(
            f"juror {', '.join(shared_names)}: a clinician of this study; name the juror otherwise"
        )
    simulated = {name for name, rater in jurors.items() if rater.simulated} | {*made_up}
    simulated |= {str(seat["name"]) for seat in seats if seat["provider"] == "simulated"}
    changed = {
        str(seat["name"])
        for seat in seats
        if (juror := jurors.get(str(seat["name"])))
        and juror.profile
        and {"name": juror.handle, **juror.profile} != dict(seat)
    }
    return {
        "benchmarks": list(use.benchmarks),
        "clinicians": len(clinicians),
        "simulated_clinicians": sum(rater.simulated for rater in clinicians),
        "simulated_jurors": [name for name in names if name in simulated],
        "demo": use.demo,
        "unheard_jurors": [name for name in names if name not in jurors],
        "changed_jurors": [name for name in names if name in changed],
    }


def caveats(engine: Engine, use: RubricUse, seats: Sequence[Seat]) -> list[str]:
    """Return what a reader should know of a validation, although it does not undo one."""
    imported = {
        rater.handle for rater in use.raters if rater.kind == Kind.JUROR and not rater.profile
    }
    remarks = [
        f"{seat['name']}: imported ratings; that they come from these settings is the importer's word"
        for seat in seats
        if seat["name"] in imported
    ]
    if use.checklists:
        remarks.append(
            "instances have checklists: HELM without the plugin, and OpenAI, ask without them"
        )
    counts = {action: len(acts(engine, action)) for action in (UNBLINDED, REOPENED)}
    return remarks + [
        f"the study was {action}: {number}" for action, number in counts.items() if number
    ]


def _is_demo(engine: Engine, rubric: Rubric) -> bool:
    """Tell whether a response on the rubric is the demo's, under whatever name it was brought in.

    Of its calculations the answers are bare numbers, which others give too: their cases tell.
    """
    responses = {row["response"] for row in _rows(DEMO)}
    cases = {row["context"] for row in _rows(CALCULATIONS)}
    return any(
        row.response in responses or row.context in cases for row in material(engine, rubric)
    )


def _rows(path: Path) -> Iterator[dict[str, str]]:
    lines = path.read_text("utf-8").splitlines()
    return (json.loads(line) for line in lines if line.strip())


@dataclass(frozen=True, slots=True)
class RatingCounts:
    """How much was rated on one rubric, by its hash, by one kind of raters.

    Attributes
    ----------
    ratings
        Scores that stand in the study: corrected ones and repeats are counted too.
    raters, simulated
        Who gave them, and how many of these are.
    """

    ratings: int = 0
    raters: int = 0
    simulated: int = 0


@dataclass(frozen=True, slots=True)
class StudyRubric:
    """A rubric that stands in the study; `benchmarks` are those rated on it now."""

    rubric: Rubric
    added: datetime
    benchmarks: tuple[str, ...]
    clinicians: RatingCounts
    jurors: RatingCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class JuryValidation:
    """A jury that was held against clinicians on one exact rubric, and what was found.

    Attributes
    ----------
    report
        Number of the frozen report it is from; None from the ledger, which has no intervals.
    criterion
        Empty for the composite of all.
    like_for_like
        The difference with its interval; None where undefined or not known.
    times
        How often the ledger counts it; 1 for a report.
    """

    report: int | None = None
    name: str = ""
    at: datetime
    benchmark: str
    jurors: tuple[str, ...]
    criterion: str
    method: str
    simulated: bool
    icc: float | None
    low: float | None = None
    high: float | None = None
    n_responses: int
    like_for_like: tuple[float | None, float | None, float | None] = (None, None, None)
    times: int = 1


@only(Role.RESEARCHER, Role.COORDINATOR)
def study_rubrics(_: Person, engine: Engine) -> list[StudyRubric]:
    """Return every rubric that stands in the study, by name and then the newest first."""
    with reading(engine) as session:
        rows = list(session.exec(select(RubricText)))
        current = list(session.exec(select(Benchmark.name, Benchmark.rubric_sha256)))
    rated_on = _rating_counts(engine)
    rubrics = [
        StudyRubric(
            Rubric.from_json(text.body),
            text.added,
            tuple(sorted(name for name, sha256 in current if sha256 == text.sha256)),
            rated_on.get((text.sha256, Kind.CLINICIAN), RatingCounts()),
            rated_on.get((text.sha256, Kind.JUROR), RatingCounts()),
        )
        for text in rows
    ]
    return sorted(rubrics, key=lambda row: (row.rubric.name, -row.added.timestamp()))


# Return every frozen report, the oldest first.
frozen_reports = asking(reports, Role.RESEARCHER, Role.COORDINATOR)


@only(Role.RESEARCHER, Role.COORDINATOR)
def jurors_with_ratings(_: Person, engine: Engine) -> list[str]:
    """Return the jurors that have rated anything, by name."""
    query = select(Rater.handle).where(
        Rater.kind == Kind.JUROR, col(Rater.id).in_(select(Rating.rater))
    )
    with reading(engine) as session:
        return sorted(session.exec(query))


@only(Role.RESEARCHER, Role.COORDINATOR)
def validations(_: Person, engine: Engine, sha256: str) -> list[JuryValidation]:
    """Return every time a jury was held against clinicians on this exact rubric, newest first.

    Frozen reports name the rubric of each benchmark. The ledger names the benchmark, and a
    benchmark that was rated never changes its rubric. A figure over several benchmarks counts
    where all of them are rated on this rubric. What was looked at with settled differences in it
    is left out.
    """
    with reading(engine) as session:
        present = dict(session.exec(select(Benchmark.name, Benchmark.rubric_sha256)).all())
    on_rubric = {name for name, current in present.items() if current == sha256}
    covered = on_rubric | ({COMBINED} if on_rubric and len(on_rubric) == len(present) else set())
    rows = [row for report in reports(engine) for row in _validations_of_report(report, sha256)]
    copied = ("benchmark", "criterion", "method", "simulated", "icc", "n_responses", "times")
    rows += [
        JuryValidation(
            at=tried.last_at,
            jurors=tuple(tried.jurors),
            **{name: getattr(tried, name) for name in copied},
        )
        for tried in compositions_tried(engine)
        if ADJUDICATED not in tried.instances and tried.benchmark in covered
    ]
    return sorted(rows, key=lambda validation: validation.at, reverse=True)


def _rating_counts(engine: Engine) -> dict[tuple[str, str], RatingCounts]:
    """Return what was rated on each rubric, by hash and kind of rater; training left out."""
    key = (col(Rating.rubric_sha256), col(Rater.kind))
    simulated = case((col(Rater.simulated).is_(True), col(Rating.rater)))
    raters = (func.count(func.distinct(one)) for one in (col(Rating.rater), simulated))
    query = (
        columns_of(*key, func.count(), *raters)
        .select_from(Rating)
        .join(Rater)
        .where(col(Rating.rubric_sha256).is_not(None), INDEPENDENT)
        .where(col(Rating.response).not_in(select(Expert.response)))
        .group_by(*key)
    )
    with reading(engine) as session:
        return {(sha, kind): RatingCounts(*counts) for sha, kind, *counts in session.exec(query)}


def _validations_of_report(report: Report, sha256: str) -> list[JuryValidation]:
    """Return what a report says of juries on one rubric."""
    rubrics = report.body.get("rubrics", {})
    on_rubric = {name for name, text in rubrics.items() if text["sha256"] == sha256}
    covered = on_rubric | ({COMBINED} if on_rubric and len(on_rubric) == len(rubrics) else set())
    rows = [row for row in report.body.get("rows", ()) if row["benchmark"] in covered]
    like_for_like = {row["benchmark"]: row for row in rows if row["scorer"] == "like_for_like"}
    return [
        JuryValidation(
            report=report.id,
            name=report.body.get("name", ""),
            at=report.at,
            benchmark=row["benchmark"],
            jurors=tuple(report.body.get("jury", ())),
            criterion=report.body.get("options", {}).get("criterion") or "",
            method=report.body.get("method") or "",
            simulated=any(note["code"] == SIMULATED for note in (*row["notes"], *notes)),
            **{name: row[name] for name in ("icc", "low", "high", "n_responses")},
            like_for_like=(compared.get("icc"), compared.get("low"), compared.get("high")),
        )
        for row in rows
        if row["scorer"] == "jury"
        for compared in [like_for_like.get(row["benchmark"], {})]
        for notes in [compared.get("notes", ())]
    ]

"""Importing evaluations that were run elsewhere: responses, jurors, ratings and failures at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TypeVar

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import transaction
from data.errors import Conflict
from data.importers.finished import Failure, FinishedRun
from data.importers.rows import JurorRecord, RatingRow, batches
from data.record import log, refuse_locked
from data.rubric import Rubric
from data.safe_text import short
from data.schema import Attempt, Rater, Response
from data.store.authors import Ids
from data.store.calls import keep_juror, write_attempts
from data.store.ratings import RatingsAdded, keep_ratings
from data.store.responses import (
    ResponsesAdded,
    TaxonomyPlace,
    keep_benchmark,
    keep_rows,
    log_added,
)
from data.store.rubrics import keep_rubric

Named = TypeVar("Named", RatingRow, Failure)
IMPORTED_CALL = 0  # the number of a call that this study never sent


@dataclass
class FinishedAdded:
    """What an import changed; `failures` are verdicts that do not stand, stored with their reason."""

    responses: ResponsesAdded = field(default_factory=ResponsesAdded)
    ratings: RatingsAdded = field(default_factory=RatingsAdded)
    failures: int = 0


def import_finished(engine: Engine, runs: Sequence[FinishedRun]) -> FinishedAdded:
    """Store finished runs, all of them or none; what is there already stays as it is.

    A failure becomes an attempt with number 0, which cost this study nothing.

    Raises
    ------
    BadRow
        If a response contradicts the study: nothing is stored.
    Conflict
        If a juror's name belongs to another rater of the study.
    """
    added = FinishedAdded()
    with transaction(engine) as session:
        refuse_locked(session)
        for run in _store_responses(session, runs, added.responses):
            keep_rubric(session, run.rubric)
            for juror in run.jurors:
                _store_juror(session, juror)
            _store_ratings(session, run, added.ratings)
            added.failures += _store_failures(session, run)
    return added


def _store_responses(
    session: Session, runs: Sequence[FinishedRun], added: ResponsesAdded
) -> list[FinishedRun]:
    """Store the responses of runs; return the runs with the ids that the study has for them."""
    ids, named = Ids(), []
    for run in runs:

        def keep(name: str, rubric: Rubric = run.rubric) -> None:
            keep_benchmark(session, name, rubric, TaxonomyPlace(), added)

        named.append(_renamed(run, keep_rows(session, run.responses, keep, added, {}, ids=ids)))
    log_added(session, added)
    return named


def _renamed(run: FinishedRun, names: Mapping[str, str]) -> FinishedRun:
    """Return a run whose verdicts are of the responses' ids in the study."""

    def stored_id(response_id: str) -> str:
        return names.get(response_id, response_id)

    ratings = (row._replace(response_id=stored_id(row.response_id)) for row in run.ratings)
    failures = (replace(one, response_id=stored_id(one.response_id)) for one in run.failures)
    return replace(run, ratings=tuple(ratings), failures=tuple(failures))


def _store_juror(session: Session, juror: JurorRecord) -> None:
    """Store a juror that is new; one of the same name must be the same."""
    try:
        keep_juror(session, juror)
    except Conflict as error:
        model = juror.profile.get("model", "not named in the run")
        raise Conflict(
            f"juror {short(juror.handle)!r} of this run (model {short(str(model))}): a rater of this name, asked "
            "otherwise, is in the study, and their ratings must not mix; import the run into a "
            "study of its own with --db; nothing was imported"
        ) from error


def _store_ratings(session: Session, run: FinishedRun, added: RatingsAdded) -> None:
    """Store the ratings of one run on its rubric and add up what changed."""
    stored = keep_ratings(session, run.ratings, run.rubric)
    for name in ("added", "revised", "unchanged"):
        setattr(added, name, getattr(added, name) + getattr(stored, name))
    added.other_rubric |= stored.other_rubric


def _store_failures(session: Session, run: FinishedRun) -> int:
    """Store the verdicts that do not stand and are not there yet; return how many are new."""
    responses = _keys(session, run)
    jurors = {rater.handle: rater.id or 0 for rater in session.exec(select(Rater))}
    stored = set(
        session.exec(
            select(Attempt.response, Attempt.rater, Attempt.status).where(
                col(Attempt.number) == IMPORTED_CALL,
                col(Attempt.rubric_sha256) == run.rubric.sha256,
            )
        )
    )
    new = [
        Attempt(
            rubric_sha256=run.rubric.sha256,
            rater=jurors[failure.juror],
            response=responses[failure.response_id],
            status=failure.status,
            request_sha256=sha256(
                f"{run.source} {failure.response_id} {failure.juror}".encode()
            ).hexdigest(),
            number=IMPORTED_CALL,
            sent={"source": run.source},
            reason=failure.reason,
        )
        for failure in run.failures
    ]
    new = [
        attempt
        for attempt in new
        if (attempt.response, attempt.rater, attempt.status) not in stored
    ]
    if new:
        write_attempts(session, [(attempt, run.rubric, None) for attempt in new])
        log(session, "researcher", "failed verdicts imported", {"verdicts": len(new)})
    return len(new)


def _keys(session: Session, run: FinishedRun) -> dict[str, int]:
    """Return response_id -> primary key of those with a failure."""
    names = sorted({failure.response_id for failure in run.failures})
    return {
        name: key or 0
        for batch in batches(names)
        for name, key in session.exec(
            select(Response.response_id, Response.id).where(col(Response.response_id).in_(batch))
        )
    }

"""Many clinicians who rate at once are stored in one chain, none lost and none doubled."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from kit import postgres
from kit.rating_study import build, codes_of, row, rubric
from sqlalchemy import event, text
from sqlmodel import Session, col, select

from data import database
from data.card import Reply
from data.database import CONNECTIONS, open_study, shared_transaction, transaction
from data.errors import MedjuryError, NoStudy, NotAllowed
from data.record import log
from data.schema import Event, Setting, Submission
from data.study.assignments import opened, own
from data.study.ratings import FormState, save_draft, submit
from data.study.room import next_task, situation
from data.study.settings import lock, set_setting
from data.study.verify import verify

SCORES = {"accuracy": 4, "completeness": 3}
NAMES = [f"dr-{n}" for n in range(8)]
RESPONSES = 6


@pytest.fixture
def ward():
    """Return a study on a server, where eight clinicians have six responses each."""
    engine = open_study(postgres.new_study())
    build(engine, [row(n, f"Note {n}.") for n in range(RESPONSES)], NAMES, rubric(*SCORES))
    yield engine
    engine.dispose()


def draft(number, base=None):
    return FormState({"by": "page", "seq": number, "scores": SCORES}, 3.0, base)


def rate(engine, rater, code):
    opened(engine, rater, code)
    save_draft(engine, rater, code, draft(1))
    return submit(engine, rater, code, Reply(SCORES), 3.0, draft(2))


def counts(engine):
    """Return how many submissions, ratings, and events of ratings are stored."""
    tables = ("submission", "rating", "event WHERE action = 'rated'")
    query = ", ".join(f"(SELECT COUNT(*) FROM {table})" for table in tables)  # noqa: S608 our tables
    with engine.connect() as connection:
        one, two, three = connection.execute(text(f"SELECT {query}")).one()
    return one, two, three


def test_no_submission_is_lost_or_doubled_when_all_submit_at_once(ward):
    work = [
        (rater, code)
        for place in range(RESPONSES)
        for rater, name in enumerate(NAMES, 1)
        for code in [codes_of(ward, name)[place]] * 2  # from two windows at once
    ]
    with ThreadPoolExecutor(12) as pool:
        stored = list(pool.map(lambda job: rate(ward, *job), work))
    showings = len(NAMES) * RESPONSES
    assert sum(stored) == showings
    assert counts(ward) == (showings, showings * len(SCORES), showings)
    assert verify(ward).findings == ()


def test_connections_that_were_used_at_once_are_kept_for_later(ward):
    opened_anew: list[object] = []
    event.listen(ward, "connect", lambda connection, _: opened_anew.append(connection))
    together = threading.Barrier(CONNECTIONS)

    def look(_: int) -> None:
        with ward.connect():
            together.wait()

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        for _ in range(3):
            list(pool.map(look, range(CONNECTIONS)))
    assert len(opened_anew) <= CONNECTIONS


def test_what_a_clinician_writes_is_stored_sign_by_sign(ward):
    comment = (
        "5% of O'Hara's \"%s\" %(score)s; COMMIT; \\x41 \\' $1 {} \t\n\u00e9 \U0001f600 -- end"
    )
    code = codes_of(ward, "dr-0")[0]
    submit(ward, 1, code, Reply(SCORES, {"accuracy": comment[::-1]}, comment), 1e-7)
    with ward.connect() as connection:
        stored = connection.execute(text("SELECT comment, seconds FROM submission")).one()
        own = connection.scalar(text("SELECT comment FROM rating WHERE criterion = 'accuracy'"))
    assert (*stored, own) == (comment, 1e-7, comment[::-1])
    assert verify(ward).findings == ()


def test_the_chain_is_one_while_others_write_alone(ward):
    jobs = [partial(set_setting, ward, "pause_minutes", str(n)) for n in range(1, 9)]
    for rater, name in enumerate(NAMES, 1):
        jobs += [partial(rate, ward, rater, code) for code in codes_of(ward, name)]  # type: ignore[misc] # either
    with ThreadPoolExecutor(12) as pool:
        for one in [pool.submit(job) for job in jobs[::-1]]:
            one.result()
    with Session(ward) as session:
        events = session.exec(select(Event).order_by(col(Event.id))).all()
    assert [one.previous for one in events[1:]] == [one.sha256 for one in events[:-1]]
    assert verify(ward).findings == ()


def test_nothing_is_stored_after_the_study_was_locked(ward):
    jobs = [(n, code) for n, name in enumerate(NAMES, 1) for code in codes_of(ward, name)]
    refused: list[MedjuryError] = []

    def attempt(job: tuple[int, str]) -> None:
        try:
            rate(ward, *job)
        except NotAllowed as error:
            refused.append(error)

    with ThreadPoolExecutor(8) as pool:
        done = [pool.submit(attempt, job) for job in jobs]
        done[len(jobs) // 3].result()
        lock(ward, "boss")
    with Session(ward) as session:
        since = session.exec(select(Event).where(Event.action == "locked")).one()
        late = select(Event.id).where(col(Event.id) > since.id, Event.action == "rated")
        assert session.exec(late).all() == []
        submissions = len(session.exec(select(Submission.id)).all())
    assert submissions + len(refused) == len(jobs)
    assert verify(ward).findings == ()


def test_who_rates_does_not_wait_for_another_who_rates_another_response(ward, monkeypatch):
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.5)
    (mine, *_), (another, *_) = codes_of(ward, "dr-0"), codes_of(ward, "dr-1")
    with shared_transaction(ward) as session:
        own(session, 1, mine)
        assert rate(ward, 2, another)
        with pytest.raises(NoStudy, match="locked; wait"):
            save_draft(ward, 1, mine, draft(1))
        with pytest.raises(NoStudy, match="locked; wait"), transaction(ward) as alone:
            alone.add(Setting(key="late", value="1"))


def test_who_rates_waits_for_whoever_writes_alone(ward):
    code, began = codes_of(ward, "dr-0")[0], threading.Event()
    with ThreadPoolExecutor(1) as pool:
        with transaction(ward) as session:
            session.add(Setting(key="held", value="1"))
            session.flush()
            late = pool.submit(lambda: (began.set(), save_draft(ward, 1, code, draft(1))))
            began.wait(10)
            assert not late.done()
            log(session, "test", "setting changed", {})
        assert late.result()[1] == 1


def test_a_submission_that_fails_at_its_end_stores_nothing(ward):
    code = codes_of(ward, "dr-0")[0]
    with ward.begin() as connection:
        connection.execute(
            text("ALTER TABLE submission ADD CONSTRAINT none CHECK (seconds < 1) NOT VALID")
        )
    before = counts(ward)
    with pytest.raises(Exception, match="none"):
        submit(ward, 1, code, Reply(SCORES), 3.0)
    assert counts(ward) == before
    assert submit(ward, 1, code, Reply(SCORES), 0.5)
    assert verify(ward).findings == ()


def test_a_connection_that_the_server_has_ended_is_replaced_before_it_is_used(ward):
    situation(ward, 1)
    other = open_study(ward.url)
    with other.begin() as connection:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )
    other.dispose()
    assert next_task(ward, 1).progress.total == RESPONSES

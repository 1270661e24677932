"""The clock goes backwards: what was said last still counts, and sessions live as they should."""

import asyncio
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest
from kit.page_client import Page, entered, sign_in
from kit.rating_study import FULL, build, codes_of, person_of, row, rubric, scores_of
from kit.servers import Server, free_port
from sqlmodel import select

from annotate import sessions
from data.card import Reply
from data.database import reading
from data.errors import Conflict
from data.person import OPERATOR
from data.schema import Assignment, Event, Rating, now
from data.study import standing
from data.study.frames import clinician_dates, ratings_frame
from data.study.ratings import submit
from data.study.room import rated_codes
from data.study.runs import RunOrder, beat_run, begin_run, last_run
from data.study.verify import verify

FAKETIME = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))), None)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
UNRATABLE = Reply({}, flags=("not_enough_context",))


@pytest.fixture
def clock(monkeypatch):
    """Set the clock off by so much, at the one place of medjury where time is read."""

    def shift(by: timedelta) -> None:
        class Off(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override] # no Off
                return datetime.now(tz) + by

        monkeypatch.setattr("data.schema.datetime", Off)

    return shift


@pytest.fixture
def codes(engine):
    rows = [row(n, f"Note {n}.") for n in range(1, 5)]
    return build(engine, rows, ["dr-a"], rubric())


def all_equal(score):
    return Reply(dict.fromkeys(FULL, score))


def backwards(engine, clock, replies):
    """Submit one reply after another, each an hour earlier by the clock."""
    for number, (code, reply) in enumerate(replies.items()):
        clock(-number * HOUR)
        assert submit(engine, 1, code, reply, 3)


@pytest.mark.usefixtures("codes")
def test_the_order_of_ratings_does_not_hang_on_the_clock(engine, clock):
    order = [codes_of(engine, "dr-a")[place] for place in (2, 0, 3, 1)]
    replies = (all_equal(1), all_equal(3), all_equal(2), all_equal(5))
    backwards(engine, clock, dict(zip(order, replies, strict=True)))
    assert rated_codes(engine, 1) == order
    with reading(engine) as session:
        kept = {one.code: one.previous for one in session.exec(select(Assignment))}
        query = select(Rating.at).where(Rating.criterion == "clarity").order_by(Rating.id)
        times = session.exec(query).all()
    assert [kept[code] for code in order] == [None, 1.0, 3.0, 2.0]
    assert times == sorted(times, reverse=True), "the clock did not go backwards"


@pytest.mark.usefixtures("codes")
def test_what_could_not_be_rated_keeps_its_place_among_the_rated(engine, clock):
    order = codes_of(engine, "dr-a")
    replies = (UNRATABLE, all_equal(3), UNRATABLE, all_equal(5))
    backwards(engine, clock, dict(zip(order, replies, strict=True)))
    assert rated_codes(engine, 1) == order


@pytest.mark.usefixtures("codes")
def test_a_changed_score_counts_though_it_bears_an_earlier_time(engine, clock):
    code = codes_of(engine, "dr-a")[0]
    assert submit(engine, 1, code, all_equal(2), 3)
    first = clinician_dates(engine)["resp-hidden-1"]
    clock(-DAY)
    assert submit(engine, 1, code, all_equal(4), 3)
    assert set(ratings_frame(engine)["score"]) == {4}
    assert standing.pairs(engine) is not None
    assert clinician_dates(engine)["resp-hidden-1"] == first


@pytest.mark.usefixtures("codes")
def test_the_record_stays_whole_while_its_times_go_backwards(engine, clock):
    order = codes_of(engine, "dr-a")
    backwards(engine, clock, dict.fromkeys(order, all_equal(3)))
    found = verify(engine)
    assert found.findings == ()
    with reading(engine) as session:
        events = session.exec(select(Event).order_by(Event.id)).all()
        assert [one.action for one in events[-4:]] == ["rated"] * 4
        assert [one.at for one in events[-4:]] == sorted((e.at for e in events[-4:]), reverse=True)
        assert events[-1].sha256 == found.head


@pytest.mark.parametrize("back", [timedelta(seconds=2), HOUR, 11 * HOUR])
def test_a_session_outlives_a_clock_that_is_set_back(engine, codes, clock, back):
    token = sessions.issue(engine, person_of(engine, codes["dr-a"]))
    clock(-back)
    assert sessions.owner(engine, token, sessions.Sightings()) is not None


@pytest.mark.parametrize("off", [-13 * HOUR, -400 * DAY, 13 * HOUR])
def test_no_session_becomes_immortal_by_the_clock(engine, codes, clock, off):
    token = sessions.issue(engine, person_of(engine, codes["dr-a"]))
    clock(off)
    assert sessions.owner(engine, token, sessions.Sightings()) is None


def test_a_jury_run_that_died_blocks_no_other_after_the_clock_was_set_back(engine, clock):
    begin_run(OPERATOR, engine, RunOrder("first", ""), "token-1")
    with pytest.raises(Conflict, match="still on"):
        begin_run(OPERATOR, engine, RunOrder("second", ""), "token-2")
    clock(-DAY)
    begin_run(OPERATOR, engine, RunOrder("second", ""), "token-2")
    assert beat_run(engine, "token-1", ["late"]) is None


def test_a_jury_run_that_lives_is_seen_again_after_the_clock_was_set_back(engine, clock):
    begin_run(OPERATOR, engine, RunOrder("first", ""), "token-1")
    clock(-DAY)
    beat_run(engine, "token-1", ["rating"])
    assert last_run(OPERATOR, engine).on


@pytest.mark.slow
def test_a_server_whose_clock_is_set_back_by_an_hour_goes_on(
    engine, url, codes, tmp_path, monkeypatch
):
    if FAKETIME is None:
        pytest.skip("libfaketime is not installed (Debian: apt-get install libfaketime)")
    told = tmp_path / "time"
    told.write_text("+0")
    monkeypatch.setenv("LD_PRELOAD", str(FAKETIME))
    monkeypatch.setenv("FAKETIME_TIMESTAMP_FILE", str(told))
    monkeypatch.setenv("FAKETIME_CACHE_DURATION", "1")
    monkeypatch.setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1")
    server = Server(url, free_port()).start()
    for name in ("LD_PRELOAD", "FAKETIME_TIMESTAMP_FILE"):
        monkeypatch.delenv(name)

    async def rate() -> list[str]:
        seen = []
        async with await Page.open(server.address, await sign_in(server.address, code)) as page:
            shown = await page.run()
            for off in ("+0", "-3600", "-7200"):
                told.write_text(off)
                await asyncio.sleep(1.2)  # it looks there once a second
                seen.append(shown.code)
                message = entered(shown, page.name, shown.seq + 1, FULL, submit=True)
                shown = await page.run(shown, message)
                assert shown.acknowledges(message)
        return seen

    code = codes["dr-a"]
    try:
        seen = asyncio.run(rate())
    finally:
        server.stop()
    assert len(scores_of(engine, "dr-a")) == 3 * len(FULL)
    assert rated_codes(engine, 1) == seen
    with reading(engine) as session:
        last = max(session.exec(select(Rating)).all(), key=lambda one: one.id or 0)
    assert now() - last.at > HOUR, "the server's clock was not set back"
    assert verify(engine).findings == ()


def test_the_time_is_read_in_utc(clock):
    clock(-DAY)
    assert datetime.now(UTC) - now() > DAY - HOUR

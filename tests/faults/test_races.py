"""Everyone at once: the last free places, the same submission in parallel, drafts beside it."""

import asyncio
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

import pytest
from kit.page_client import Page, entered, sign_in
from kit.rating_study import FULL, build, codes_of, row, rubric, scores_of, task_of
from kit.servers import serving
from sqlmodel import Session, select

from data.card import Reply
from data.database import open_study
from data.errors import Stale
from data.schema import Assignment, Event, Rater, State
from data.study.assignments import Slot, assign, claim, recuse
from data.study.people import invite
from data.study.ratings import FormState, save_draft, submit
from data.study.verify import verify

RESPONSES, WANTED = 20, 2
READERS = [f"reader-{n}" for n in range(RESPONSES)]
CLINICIANS = [f"dr-{n}" for n in range(50)]
PROCESSES = 4
CLAIMANT = """
import sys, time
from data.database import open_study
from data.study.assignments import claim
url, start, *raters = sys.argv[1:]
engine = open_study(url)
time.sleep(max(0, float(start) - time.time()))
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(len(raters)) as pool:
    print(sum(pool.map(lambda one: claim(engine, int(one)), raters)))
"""


@pytest.fixture
def places(engine):
    """Make a study where each response has one reader and wants two, with fifty at the door."""
    build(engine, [row(n, f"Note {n}.") for n in range(1, RESPONSES + 1)], [], rubric())
    invite(engine, [*READERS, *CLINICIANS])
    slots = [Slot(who, place + 1, 0) for place, who in enumerate(READERS)]
    assign(engine, slots, seed=0, per_response=WANTED)
    return engine


def at_once(calls):
    """Let each call begin at the same moment in a thread of its own; return what they return."""
    calls = list(calls)
    barrier = Barrier(len(calls))

    def one(call: Callable[[], object]) -> object:
        barrier.wait(30)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(one, calls))


def ids(engine, handles):
    with Session(engine) as session:
        by_handle = {one.handle: one.id or 0 for one in session.exec(select(Rater))}
    return [by_handle[handle] for handle in handles]


def readers(engine):
    with Session(engine) as session:
        rows = session.exec(select(Assignment)).all()
    assert max(Counter((one.rater, one.response) for one in rows).values()) == 1
    return Counter(one.response for one in rows if one.state != State.RECUSED)


def full():
    return dict.fromkeys(range(1, RESPONSES + 1), WANTED)


def test_fifty_threads_at_the_last_places_fill_each_and_overfill_none(places):
    fifty = ids(places, CLINICIANS)
    got = at_once(partial(claim, places, who) for who in fifty)
    assert sum(map(bool, got)) == RESPONSES
    assert readers(places) == full()
    assert verify(places).findings == ()


def test_processes_and_their_threads_fill_each_place_once(places, url):
    fifty = ids(places, CLINICIANS)
    start = time.time() + 4
    shares = [fifty[n::PROCESSES] for n in range(PROCESSES)]
    calls = [[sys.executable, "-c", CLAIMANT, url, str(start), *map(str, one)] for one in shares]
    running = [subprocess.Popen(one, stdout=subprocess.PIPE) for one in calls]
    got = [int(one.communicate(timeout=60)[0]) for one in running]
    assert sum(got) == RESPONSES
    assert readers(places) == full()
    assert verify(places).findings == ()


def test_places_given_back_meanwhile_are_filled_too(places):
    fifty = ids(places, CLINICIANS)
    leaving = list(zip(ids(places, READERS[:10]), READERS[:10], strict=True))
    codes = {who: codes_of(places, handle)[0] for who, handle in leaving}

    def take_all(who: int) -> int:
        return sum(iter(lambda: claim(places, who), False))

    gone = [partial(recuse, places, who, codes[who], "I know this patient") for who, _ in leaving]
    at_once([*gone, *(partial(take_all, who) for who in fifty)])
    for who in fifty:  # those who came before the last place was given back ask again
        take_all(who)
    assert readers(places) == full()
    assert verify(places).findings == ()


@pytest.fixture
def one_rater(engine):
    """Return a study, a clinician in it with ten responses, their codes and the sign-in code."""
    rows = [row(n, f"Note {n}.") for n in range(1, 11)]
    code = build(engine, rows, ["dr-a"], rubric())["dr-a"]
    return engine, ids(engine, ["dr-a"])[0], codes_of(engine, "dr-a"), code


def state(seq, scores=None, seconds=2.0):
    """Return a state of the form that a page sends without knowing what is stored."""
    return FormState({"scores": scores or FULL, "by": "page1", "seq": seq}, seconds)


def rated_events(engine):
    with Session(engine) as session:
        return len(session.exec(select(Event).where(Event.action == "rated")).all())


def test_the_same_submission_three_times_at_once_leaves_one_rating(one_rater):
    engine, rater, codes, _ = one_rater
    for number, code in enumerate(codes, 1):
        send = partial(submit, engine, rater, code, Reply(FULL), 3.0, state(4))
        assert sorted(map(bool, at_once([send] * 3))) == [False, False, True]
        assert len(scores_of(engine, "dr-a")) == 3 * number
    assert rated_events(engine) == len(codes)


def test_a_draft_beside_its_submission_changes_no_rating_and_reopens_nothing(one_rater):
    engine, rater, codes, _ = one_rater
    for code in codes:
        drafts = [
            partial(save_draft, engine, rater, code, state(seq, {"clarity": 1}))
            for seq in (1, 2, 3)
        ]
        send = partial(submit, engine, rater, code, Reply(FULL), 3.0, state(4))
        at_once([*drafts, send, *drafts])
    with Session(engine) as session:
        done = session.exec(select(Assignment)).all()
    assert [(one.state, one.draft) for one in done] == [(State.DONE, state(4).draft)] * len(codes)
    assert all(0 < one.submitted_seq == one.draft_seq for one in done)
    assert [score for _, _, score in scores_of(engine, "dr-a")] == [*FULL.values()] * len(codes)


def test_of_drafts_that_come_in_any_order_the_newest_stays(one_rater):
    engine, rater, codes, _ = one_rater
    numbers = (7, 3, 12, 1, 9, 20, 5, 11)
    states = (state(n, {"clarity": 1 + n % 5}, n) for n in numbers)
    at_once(partial(save_draft, engine, rater, codes[0], one) for one in states)
    with Session(engine) as session:
        kept = session.exec(select(Assignment).where(Assignment.code == codes[0])).one()
    assert (kept.draft, kept.seconds_active) == (state(20, {"clarity": 1}).draft, 20)
    assert 1 <= kept.draft_seq <= len(numbers)


def test_of_pages_that_replace_the_same_state_at_once_one_does_and_the_others_are_told(one_rater):
    engine, rater, codes, _ = one_rater

    def replace(code: str, by: str, final: bool) -> bool:
        entered = FormState({"scores": FULL, "by": by, "seq": 1}, 3.0, base=0)
        try:
            if final:
                return submit(engine, rater, code, Reply(FULL), entered=entered)
            return bool(save_draft(engine, rater, code, entered))
        except Stale:
            return False

    for number, code in enumerate(codes):
        pages = [partial(replace, code, f"page{n}", number % 2 == 0) for n in range(4)]
        assert sorted(at_once(pages)) == [False, False, False, True]
        task = task_of(engine, rater, code)
        assert (task.draft_seq, task.revision) == (1, 1 - number % 2)


def test_three_pages_that_submit_the_same_at_once_leave_one_rating(url):
    engine = open_study(url, create=True)
    code = build(engine, [row(n, f"Note {n}.") for n in (1, 2, 3)], ["dr-a"], rubric())["dr-a"]

    async def rate(address: str) -> None:
        cookie = await sign_in(address, code)
        pages = [await Page.open(address, cookie) for _ in range(3)]
        shown = [await page.run() for page in pages]
        while shown[0].code:
            message = entered(shown[0], pages[0].name, shown[0].seq + 1, FULL, submit=True)
            asked = zip(pages, shown, strict=True)
            shown = list(await asyncio.gather(*(page.run(at, message) for page, at in asked)))
            assert all(one.acknowledges(message) for one in shown)
            assert len({one.code for one in shown}) == 1
        for page in pages:
            await page.close()

    with serving(url) as server:
        asyncio.run(rate(server.address))
    assert [score for _, _, score in scores_of(engine, "dr-a")] == [*FULL.values()] * 3
    assert rated_events(engine) == 3
    engine.dispose()

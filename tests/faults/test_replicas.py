"""Two replicas behind nginx, set up as docs/server.md says, are one server to whoever rates."""

import asyncio
import contextlib
from collections import Counter

import httpx2
import pytest
from kit import postgres
from kit.browsers import chosen, wait_for_count, wait_open, wait_saved
from kit.page_client import GONE, Clinician, Page, assert_whole
from kit.rating_study import build, row, rubric, scores_of, session_of
from kit.replicas import Front, connected, known_at, opened, replicated
from kit.screens import GOOD, open_part, upload
from sqlmodel import Session, col, select
from websockets.exceptions import InvalidHandshake, InvalidStatus

from annotate.sessions import SESSION_COOKIE
from annotate.signin import FAILURES
from data.database import open_study
from data.person import OPERATOR
from data.schema import Assignment, Response, Role, State
from data.study.assignments import Slot, assign
from data.study.people import add_people, check_code, end_access, invite
from data.study.responses import import_responses
from data.study.settings import lock, reopen, set_setting

RATERS = [f"dr-{n}" for n in range(6)]
RESPONSES, READERS = 12, 3
TURN_SECONDS = 120
REFUSED = (*GONE, httpx2.HTTPStatusError, InvalidHandshake)


@pytest.fixture(scope="module", params=["postgres", pytest.param("sqlite", marks=pytest.mark.slow)])
def study(request, tmp_path_factory):
    """Return a study for two clinicians with a list each, and for many who take what is free."""
    file = tmp_path_factory.mktemp("study") / "study.db"
    url = postgres.new_study() if request.param == "postgres" else f"sqlite:///{file}"
    engine = open_study(url, create=True)
    yield engine
    engine.dispose()
    if request.param == "postgres":
        postgres.drop(url)


@pytest.fixture(scope="module")
def people(study):
    codes = build(study, [row(n, f"Note {n}.") for n in (1, 2, 3)], ["dr-a", "dr-b"], rubric())
    codes["boss"] = add_people(OPERATOR, study, ["boss"], Role.COORDINATOR)[0].code
    found = {name: check_code(study, code).person for name, code in codes.items()}
    return {name: who for name, who in found.items() if who is not None}


@pytest.fixture(scope="module")
def front(study, people, tmp_path_factory):
    with replicated(
        study.url.render_as_string(hide_password=False), tmp_path_factory.mktemp("nginx")
    ) as front:
        yield front


def test_a_session_begun_at_one_replica_holds_at_both_and_ends_at_both(front, study):
    code = add_people(OPERATOR, study, ["dr-new"])[0].code
    answer = front.asked("POST", "/login", data={"code": code}, headers={"Origin": front.address})
    assert answer.status_code == 303
    assert {"Secure", "HttpOnly"} <= {*answer.headers["set-cookie"].split("; ")}
    [token] = (f"{one}={answer.cookies[one]}" for one in answer.cookies if SESSION_COOKIE in one)
    assert token.startswith("__Host-")
    assert known_at(front, token) == [True, True]
    front.asked("GET", "/logout", headers={"Cookie": token} | {"Sec-Fetch-Site": "same-origin"})
    assert known_at(front, token) == [False, False]


def test_another_sites_page_is_refused_through_nginx_as_without(front, study, people):
    token = session_of(study, people["dr-a"], https=True)
    for origin, status in ((front.address, 200), ("https://evil.example", 403)):
        asked = {"Cookie": token} | {"Origin": origin}
        assert front.asked("POST", "/room", json={}, headers=asked).status_code == status

    assert connected(front, token, front.address)
    with pytest.raises(InvalidStatus) as refused:
        connected(front, token, "https://evil.example")
    assert refused.value.response.status_code == 403


def test_wrong_codes_count_by_the_address_that_nginx_saw(front):
    def tried(source: str, claimed: str = "") -> httpx2.Response:
        headers = {"Origin": front.address, "X-Forwarded-For": claimed or source}
        wrong = {"code": "WRNG-AAAA-AAAA-AAAA"}
        return front.asked("POST", "/login", data=wrong, headers=headers, source=source)

    first = [tried("127.0.0.1", f"10.0.0.{n}") for n in range(FAILURES.burst + 1)]
    [replica] = {one.headers["x-replica"] for one in first}
    assert [one.status_code for one in first] == [401] * FAILURES.burst + [429]
    others = (tried(f"127.0.0.{n}") for n in range(2, 60))
    beside = next(one for one in others if one.headers["x-replica"] == replica)
    assert beside.status_code == 401


def test_what_is_changed_elsewhere_is_seen_at_both_replicas_at_the_next_click(front, study, people):
    async def at_both() -> None:
        tokens = [front.session_at(study, people["dr-a"], one) for one in front.replicas]
        pages = [await Page.open(front.address, one) for one in tokens]
        shown = [await one.run() for one in pages]
        assert {one.code for one in shown} == {shown[0].code}
        lock(study, "coordinator")
        assert [(await one.run()).code for one in pages] == ["", ""]
        reopen(study, "coordinator", "not all was rated")
        for value in ("hidden", "on_request"):
            set_setting(study, "reference", value)
        assert [(await one.run()).code for one in pages] == [one.code for one in shown]
        end_access(OPERATOR, study, "dr-a")
        assert [(await one.run()).code for one in pages] == ["", ""]
        assert [known_at(front, one) for one in tokens] == [[False, False]] * 2
        for one in pages:
            await one.close()

    asyncio.run(at_both())


def test_of_clinicians_at_both_replicas_none_loses_or_doubles_anything_when_one_is_killed(
    front, study
):
    rows = [row(n, f"Report {n}.") for n in range(100, 100 + RESPONSES)]
    import_responses(study, rows, lambda _: rubric())
    codes = {one.handle: one.code for one in invite(study, RATERS)}
    with Session(study) as session:
        named = col(Response.response_id).in_([one.response_id for one in rows])
        keys = [key or 0 for key in session.exec(select(Response.id).where(named))]
    slots = [Slot(RATERS[n % len(RATERS)], key, n) for n, key in enumerate(keys)]
    assign(study, slots, seed=0, per_response=READERS)
    clinicians = []
    for who, replica in zip(RATERS, [*front.replicas] * len(RATERS), strict=False):
        person = check_code(study, codes[who]).person
        assert person is not None
        clinicians.append(Clinician(who, front.session_at(study, person, replica)))
    asyncio.run(rated_through(front, clinicians, [*front.replicas][1]))
    front.start([*front.replicas][1])
    assert_whole(study, clinicians)
    with Session(study) as session:
        given = session.exec(select(Assignment).where(col(Assignment.response).in_(keys))).all()
    assert Counter(one.response for one in given) == dict.fromkeys(keys, READERS)
    assert {one.state for one in given} == {State.DONE}


async def rated_through(front: Front, clinicians: list[Clinician], dies: str) -> None:
    """Let everyone rate until all is done; kill a replica early on, and they come again."""

    async def one(who: Clinician) -> None:
        while True:
            with contextlib.suppress(*REFUSED):
                return await who.rate(front.address)
            await asyncio.sleep(0.1)

    async with asyncio.timeout(TURN_SECONDS), asyncio.TaskGroup() as group:
        for who in clinicians:
            group.create_task(one(who))
        while not all(who.rated for who in clinicians[:2]):
            await asyncio.sleep(0.02)
        front.replicas[dies].stop()


@pytest.mark.e2e
def test_a_browser_stays_at_its_replica_and_goes_on_at_the_other_when_it_is_killed(
    front, study, people, browser
):
    [first, second] = front.replicas
    steering = opened(browser, front, front.session_at(study, people["boss"], first))
    open_part(steering, "Notes")
    steering.get_by_text("Import a file").click()
    upload(steering, "answers.csv", GOOD)
    steering.get_by_text("4 new responses to 2 new instances").wait_for()
    page = opened(browser, front, front.session_at(study, people["dr-b"], first))
    answered: list[str] = []
    page.on(
        "response",
        lambda one: (
            answered.append(one.headers["x-replica"]) if one.url.endswith("/room") else None
        ),
    )
    wait_open(page)
    score(page, "accuracy", 4)
    wait_saved(page)
    assert set(answered) == {first}
    front.replicas[first].stop()
    score(page, "completeness", 3)
    score(page, "clarity", 5)
    page.keyboard.press("Control+Enter")
    wait_for_count(page, 1, 3)
    score(page, "accuracy", 2)
    wait_saved(page)
    page.reload()
    wait_open(page)
    assert chosen(page) == {"accuracy": 2}
    assert answered[-1].endswith(second)
    stored = scores_of(study, "dr-b")
    given = {("accuracy", 4), ("completeness", 3), ("clarity", 5)}
    assert ({one[1:] for one in stored}, len({one[0] for one in stored})) == (given, 1)
    assert len(stored) == len(given)
    for one in (page, steering):
        one.context.close()


def score(page, name, value):
    page.locator(f"fieldset[data-name={name}] input[value='{value}']").check(force=True)

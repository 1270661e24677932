"""Stolen and planted sessions, other sites' requests, and what a server's log and commands tell."""

import json

import psutil
import pytest
from kit.attacked_study import (
    HERE,
    PATIENT,
    STUDY,
    Watched,
    codes,
    cookies,
    engine,
    page_asked,
    run_of,
    screens,
    server,
    wire,
    with_session,
)
from kit.rating_study import codes_of, message
from kit.servers import ask, post
from sqlalchemy import Engine

from data.person import OPERATOR
from data.study import room
from data.study.people import add_people, renew_access

__all__ = ["codes", "cookies", "engine", "server"]


def test_signing_in_opens_a_new_session_and_ends_the_one_the_browser_had(
    server: Watched, codes: dict[str, str]
) -> None:
    def session(**headers: str) -> str:
        return post(server, codes["dr-a"], **headers).headers["set-cookie"].split(";")[0]

    planted = session()
    new = session(Cookie=planted)
    assert new != planted
    assert ask(server, "GET", "/", Cookie=planted).status == 303
    assert ask(server, "GET", "/", Cookie=new).status == 200


def test_a_stolen_cookie_is_worth_nothing_once_the_code_is_renewed(
    server: Watched, engine: Engine, codes: dict[str, str]
) -> None:
    code = add_people(OPERATOR, engine, ["dr-robbed"])[0].code
    stolen = post(server, code).headers["set-cookie"].split(";")[0]
    assert ask(server, "GET", "/", Cookie=stolen).status == 200
    renew_access(OPERATOR, engine, "dr-robbed")
    assert ask(server, "GET", "/", Cookie=stolen).status == 303
    assert ask(server, "POST", "/room", json.dumps(message("a")), Cookie=stolen).status == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://localhost:1"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "cross-site", "Origin": "null"},
        {"Origin": "null"},
        {"Origin": "http://{host}", "X-Forwarded-Proto": "https"},
    ],
)
def test_another_sites_page_signs_nobody_in_or_out_and_keeps_no_draft(
    server: Watched,
    engine: Engine,
    codes: dict[str, str],
    cookies: dict[str, str],
    headers: dict[str, str],
) -> None:
    token = cookies["dr-a"]
    mine = codes_of(engine, "dr-a")[0]
    headers = {name: text.format(host=f"127.0.0.1:{server.port}") for name, text in headers.items()}
    draft = json.dumps(message(mine, 7))
    assert post(server, codes["dr-a"], **headers).status == 403
    assert ask(server, "POST", "/room", draft, Cookie=token, **headers).status == 403
    with_session(server, "GET", "/logout", token, **headers)
    assert with_session(server, "GET", "/", token).status == 200
    assert unkept(engine, mine)


def unkept(engine: Engine, code: str) -> bool:
    """Tell whether nothing is stored of a response."""
    task = room.task(engine, 1, code)
    return task is not None and (task.draft, task.draft_seq) == ({}, 0)


def test_neither_log_nor_command_tells_a_secret_and_nobody_outside_is_asked(
    server: Watched, engine: Engine, codes: dict[str, str], cookies: dict[str, str]
) -> None:
    post(server, "WRONG-SECRET-CODE")
    token = post(server, codes["dr-b"]).headers["set-cookie"].split(";")[0]
    draft = json.dumps(message(codes_of(engine, "dr-b")[0], 3, comment=f"{PATIENT} said so"))
    assert with_session(server, "GET", f"/?{PATIENT}", token).status == 200
    assert ask(server, "POST", "/room", draft, Cookie=token).status == 200
    with wire(server, cookies["boss"]) as opened:
        run_of(opened, page_asked(screens(run_of(opened, page_asked()))["agreement"]))
    told = server.log.read_text("utf-8", "replace")
    children = psutil.Process(server.process.pid).children(recursive=True)
    ran = [" ".join(one.cmdline()) for one in children]
    asked = [line for line in told.splitlines() if line.startswith("ASKED")]
    assert any("multiprocessing.spawn" in one for one in ran)
    assert all(one.environ()["PYTHONSAFEPATH"] for one in children)
    assert STUDY not in "".join(ran)
    assert asked
    assert [one for one in asked if not HERE.fullmatch(one)] == []
    hidden = [*codes.values(), *filter(None, cookies.values()), token, PATIENT, "WRONG-SECRET-CODE"]
    assert [one for one in [*hidden, "sk-never-told"] if one in told] == []

"""Attacks on a served study: sessions, other sites' requests, WebSocket frames, files, and its log."""

import json

import psutil
import pytest
from kit.attacked_study import (
    HERE,
    PATIENT,
    STUDY,
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
from kit.rating_study import codes_of, message, scores_of
from kit.servers import ask, post
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.util import calc_hash
from websockets.exceptions import ConnectionClosed, InvalidStatus

from annotate.navigation import SCREENS
from data.person import OPERATOR
from data.schema import Role
from data.study import room
from data.study.people import add_people, renew_access

__all__ = ["codes", "cookies", "engine", "server"]

CLOSED = b"the server closed the connection"
ROLES = {"dr-a": Role.CLINICIAN, "rita": Role.RESEARCHER, "boss": Role.COORDINATOR}
TOLD_NOBODY = ("gpt-9-secret", "llama-hidden", PATIENT, STUDY)  # the room alone sends texts
HIDDEN = {
    Role.CLINICIAN: (*TOLD_NOBODY, "dr-b", "rita", "boss", "bench_hidden", "house_rubric"),
    Role.RESEARCHER: (*TOLD_NOBODY, "boss"),
    Role.COORDINATOR: (*TOLD_NOBODY, "rita"),
}


def test_signing_in_opens_a_new_session_and_ends_the_one_the_browser_had(server, codes):
    def session(**headers: str) -> str:
        return post(server, codes["dr-a"], **headers).headers["set-cookie"].split(";")[0]

    planted = session()
    new = session(Cookie=planted)
    assert new != planted
    assert ask(server, "GET", "/", Cookie=planted).status == 303
    assert ask(server, "GET", "/", Cookie=new).status == 200


def test_a_stolen_cookie_is_worth_nothing_once_the_code_is_renewed(server, engine, codes):
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
    server, engine, codes, cookies, headers
):
    token = cookies["dr-a"]
    mine = codes_of(engine, "dr-a")[0]
    headers = {name: text.format(host=f"127.0.0.1:{server.port}") for name, text in headers.items()}
    draft = json.dumps(message(mine, 7))
    assert post(server, codes["dr-a"], **headers).status == 403
    assert ask(server, "POST", "/room", draft, Cookie=token, **headers).status == 403
    with_session(server, "GET", "/logout", token, **headers)
    assert with_session(server, "GET", "/", token).status == 200
    assert unkept(engine, mine)


def unkept(engine, code):
    task = room.task(engine, 1, code)
    return task is not None and (task.draft, task.draft_seq) == ({}, 0)


def test_neither_log_nor_command_tells_a_secret_and_nobody_outside_is_asked(
    server, engine, codes, cookies
):
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
    assert (STUDY in "".join(ran), bool(asked)) == (False, True)
    assert [one for one in asked if not HERE.fullmatch(one)] == []
    hidden = [*codes.values(), *filter(None, cookies.values()), token, PATIENT, "WRONG-SECRET-CODE"]
    assert [one for one in [*hidden, "sk-never-told"] if one in told] == []


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "http://localhost:1", "http://127.0.0.1:1", "null", "http://[::1"],
)
def test_a_page_of_another_origin_gets_no_websocket(server, cookies, origin):
    with pytest.raises(InvalidStatus) as refused:
        wire(server, cookies["dr-a"], origin)
    assert refused.value.response.status_code == 403
    with wire(server, cookies["dr-a"]) as own:
        assert run_of(own, page_asked())


def test_only_those_who_steer_upload_files(server, cookies):
    expected = {"": 403, "dr-a": 403, "boss": 204, "rita": 204}
    assert {who: uploaded(server, cookies[who], cookies["boss"]) for who in expected} == expected


def uploaded(server, token, page):
    """Upload a file into an open page with all that Streamlit asks for; return the status."""
    with wire(server, page) as opened:
        [session] = {
            one.new_session.initialize.session_id
            for one in run_of(opened, page_asked())
            if one.WhichOneof("type") == "new_session"
        }
        given = ask(server, "GET", "/_stcore/health").headers["set-cookie"]
        xsrf = given.partition("=")[2].partition(";")[0]
        body = '--b\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\nx\r\n--b--\r\n'
        headers = {
            "Cookie": f"{token}; _streamlit_xsrf={xsrf}",
            "X-Xsrftoken": xsrf,
            "Content-Type": "multipart/form-data; boundary=b",
        }
        return ask(server, "PUT", f"/_stcore/upload_file/{session}/f", body, **headers).status


def test_downloads_and_metrics_are_not_for_strangers(server, cookies):
    for path, expected in (
        *(("/media/a.csv", [403, 403, 404]), ("/_stcore/metrics", [403, 403, 200])),
        ("/_stcore/agent/mcp", [403] * 3),
    ):
        sent = [with_session(server, "GET", path, cookies[one]) for one in ("", "dr-a", "boss")]
        assert (path, [one.status for one in sent]) == (path, expected)


def crafted():
    """Return messages that no page of ours sends."""
    orders = "debug_shutdown_runtime debug_disconnect_websocket clear_cache set_run_on_save"
    orders += " load_git_info stop_script"
    asks = {name: BackMsg(**{name: True}) for name in orders.split()}
    asks["script"] = page_asked("../../etc/passwd")
    asks["fragment"] = page_asked()
    asks["fragment"].rerun_script.fragment_id = "0" * 64
    for name, value in {"deep": "[" * 49_999, "odd": '{"message": {"code": 1}}'}.items():
        asks[name] = page_asked()
        widgets = asks[name].rerun_script.widget_states.widgets
        widgets.add(id="$$ID-0-rating", json_value=value)
        widgets.add(id="$$ID-1-None", int_array_value={"data": [2**62]})
    sent: dict[str, bytes | str] = {name: one.SerializeToString() for name, one in asks.items()}
    return sent | {"noise": b"\xff" * 99, "words": "hello", "huge": b"\0" * (26 << 20)}


def test_crafted_frames_write_nothing_tell_nothing_and_harm_nobody_else(server, engine, cookies):
    told = {what: answer(server, cookies["dr-a"], sent) for what, sent in crafted().items()}
    leaks = (b"Traceback", b"Error", b"sqlite")
    assert [what for what, said in told.items() for one in leaks if one in said] == []
    closed = {what for what, said in told.items() if said.endswith(CLOSED)}
    assert closed == {"noise", "words", "huge"}
    assert PATIENT in with_session(server, "GET", "/room", cookies["dr-b"]).body
    assert server.process.poll() is None
    assert scores_of(engine, "dr-a") == scores_of(engine, "dr-b") == []


def answer(server, token, sent):
    """Return what comes of a frame, until the server is silent or closes."""
    told = b""
    with wire(server, token) as opened:
        run_of(opened, page_asked())
        try:
            opened.send(sent)
            while True:
                told += bytes(opened.recv(timeout=0.3))  # type: ignore[arg-type]
        except TimeoutError:
            return told
        except ConnectionClosed:
            return told + CLOSED


@pytest.mark.parametrize(("who", "role"), ROLES.items())
def test_a_screen_of_another_role_is_not_to_be_had_by_its_number(server, cookies, who, role):
    """A screen that is refused draws what the role may see anyway: its own first one, or none."""
    own = [one for one in SCREENS if role in one.roles]
    for screen in (*SCREENS, None):
        path = screen.path if screen else "no-such-screen"
        with wire(server, cookies[who]) as opened:
            told = run_of(opened, page_asked(calc_hash(path)))  # as Streamlit names its pages
        body = b"".join(one.SerializeToString() for one in told)
        mine = screen if screen in own else own[0]
        heads = {one.title for one in SCREENS if f"<h1>{one.title}".encode() in body}
        assert (path, heads) == (path, {mine.title} - {"Rate"})
        assert (path, len(screens(told))) == (path, len(own))
        assert (path, [one for one in HIDDEN[role] if one.encode() in body]) == (path, [])


def test_streamlits_own_dialogs_are_blocked_and_nobody_embeds_its_page(server):
    told = json.loads(ask(server, "GET", "/_stcore/host-config").body)
    assert (told["blockErrorDialogs"], told["allowedOrigins"]) == (True, [])

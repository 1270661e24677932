"""What strangers, and people with a session, can make the server keep: connections, frames, heads."""

import asyncio
import contextlib
import socket
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack

import psutil
import pytest
from kit import crowd, page_client
from kit.attacked_study import (
    Watched,
    codes,
    cookies,
    engine,
    page_asked,
    run_of,
    server,
    wire,
    with_session,
)
from kit.servers import ask
from websockets.exceptions import ConnectionClosed, InvalidStatus

from annotate.middleware import AT_ONCE
from annotate.rating.requests import LONGEST_BODY
from annotate.server import LARGEST_MESSAGE, LONGEST_HEAD

MB = 2**20
TOO_BIG = 1009
__all__ = ["codes", "cookies", "engine", "server"]


def megabytes(server):
    return float(psutil.Process(server.process.pid).memory_info().rss / MB)


def upgrade(port):
    """Return what a browser says to open a WebSocket."""
    lines = ("GET /_stcore/stream HTTP/1.1", f"Host: 127.0.0.1:{port}", "Connection: Upgrade")
    lines += ("Upgrade: websocket", "Sec-WebSocket-Version: 13")
    return "\r\n".join((*lines, f"Sec-WebSocket-Key: {'A' * 22}==", "", "")).encode()


def begun(nbytes):
    """Return the header of a binary frame of so many bytes."""
    return b"\x82\xff" + nbytes.to_bytes(8, "big") + b"\0\0\0\0"


def closed_with(opened):
    """Return the code with which the server closes a WebSocket."""
    try:
        while True:
            opened.recv(timeout=20)
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else 0


@pytest.mark.parametrize("cookie", ["", "medjury_session=x", "medjury_session_00000000=eyJ.a.b"])
def test_who_has_no_session_gets_no_websocket(server, cookie):
    with pytest.raises(InvalidStatus) as refused:
        wire(server, cookie)
    assert refused.value.response.status_code == 403


def test_a_message_larger_than_anybody_may_send_is_refused_by_its_header(server, cookies):
    with wire(server, cookies["boss"]) as opened:
        run_of(opened, page_asked())
        opened.socket.sendall(begun(LARGEST_MESSAGE + 1))  # and not a byte of it
        assert closed_with(opened) == TOO_BIG


def test_an_account_has_twenty_websockets_at_once_and_others_theirs(server, cookies):
    with ExitStack() as opened:
        mine = [opened.enter_context(wire(server, cookies["dr-c"])) for _ in range(AT_ONCE)]
        with pytest.raises(InvalidStatus, match="403"):
            wire(server, cookies["dr-c"])
        assert run_of(opened.enter_context(wire(server, cookies["dr-b"])), page_asked())
        mine[0].close()
        assert run_of(opened.enter_context(wire(server, cookies["dr-c"])), page_asked())


HEADS = {
    "line": b"GET /login?",
    "header": b"GET /login HTTP/1.1\r\nX: ",
    "trailer": b"POST /login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ",
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_a_request_whose_head_does_not_end_is_refused(server, head):
    before = megabytes(server)
    with socket.create_connection(("127.0.0.1", server.port), 20) as line:
        told = b""
        try:
            line.sendall(head)
            for _ in range(30):
                line.sendall(b"x" * MB)
            told = line.recv(65_536)
        except ConnectionError:
            pass
        assert told[:12] in (b"", b"HTTP/1.1 431", b"HTTP/1.1 400")
    assert megabytes(server) < before + 10
    assert ask(server, "GET", "/login", X_Long="x" * (LONGEST_HEAD // 2)).status == 200


def test_a_long_body_of_somebody_with_a_session_is_no_long_head(server, cookies):
    body = "x" * (LONGEST_BODY - 1)
    headers = {"Cookie": cookies["dr-a"], "Sec_Fetch_Site": "same-origin"}
    assert ask(server, "POST", "/room", body, **headers).status == 400  # read, and no message


def test_a_strangers_body_is_answered_before_it_is_read(server):
    head = (
        "POST {} HTTP/1.1\r\nHost: x\r\nSec-Fetch-Site: same-origin\r\nContent-Length: {}\r\n\r\n"
    )
    for path, status in (("/room", 401), ("/room/show", 401), ("/_stcore/upload_file/a/b", 404)):
        with socket.create_connection(("127.0.0.1", server.port), 20) as line:
            line.sendall(head.format(path, LONGEST_BODY).encode())
            assert line.recv(100).startswith(f"HTTP/1.1 {status}".encode())


@pytest.mark.parametrize("path", ["/login", "/room", "/_stcore/upload_file/a/b"])
def test_a_request_that_breaks_off_leaves_nothing_in_the_log(server, cookies, path):
    before = server.log.read_text()
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", server.port), 20) as line:
            head = f"POST {path} HTTP/1.1\r\nHost: x\r\nCookie: {cookies['dr-a']}\r\nContent-Length: 99\r\n"
            line.sendall(f"{head}\r\ncode=A".encode())
            time.sleep(0.1)
    assert ask(server, "GET", "/_stcore/health").status == 200
    assert server.log.read_text() == before


@pytest.mark.parametrize(
    "path",
    [
        *("/_stcore/none", "/static/none", "/component/none", "/media/none", "/manifest.json"),
        *("/favicon/none", "/people", "/login/x", "/appearance", "/room/none"),
        *(f"/room/{act}" for act in ("show", "read", "back", "consent", "seen")),
    ],
)
def test_a_stranger_gets_no_page_in_place_of_a_file_that_is_not_there(server, path):
    answer = ask(server, "GET", path)
    assert answer.status in (403, 404)
    assert "<html" not in answer.body


def test_streamlits_own_sign_in_is_closed(server, cookies):
    for path in ("/auth/login", "/auth/logout"):
        assert ask(server, "GET", path).status == 404
        assert with_session(server, "GET", path, cookies["boss"]).status == 404


STRANGERS, FRAME, MOST_MEGABYTES = 30, 20 * MB, 400


def test_thirty_strangers_with_frames_of_20_mb_fill_no_memory(server):
    held = []
    with ExitStack() as opened:
        lines = [
            opened.enter_context(socket.create_connection(("127.0.0.1", server.port), 20))
            for _ in range(STRANGERS)
        ]
        for line in lines:
            line.sendall(upgrade(server.port) + begun(FRAME))
        for _ in range(FRAME // MB):
            for line in lines:
                line.settimeout(0.05)
                with contextlib.suppress(OSError):  # it is closed, or no longer read
                    line.sendall(b"x" * MB)
            held.append(megabytes(server))
    assert max(held) < MOST_MEGABYTES, held
    assert ask(server, "GET", "/login").status == 200


CROWD, CROWD_SECONDS = 300, 15
STILL_QUICK_MS = 5_000  # the crowd shares two processors with the server and all other tests


@pytest.mark.slow
def test_three_hundred_strangers_fill_no_memory_and_a_clinician_goes_on(server, cookies):
    call = [sys.executable, crowd.__file__, server.address, str(CROWD), str(CROWD_SECONDS)]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as came:
        held, took = asyncio.run(rating_beside(server, cookies["dr-b"], came))
        tried, closed = (int(one) for one in came.stdout.read().split())
    assert CROWD < tried < 2 * closed
    assert held < MOST_MEGABYTES
    assert statistics.quantiles(took, n=20)[-1] < STILL_QUICK_MS


async def rating_beside(
    server: Watched, cookie: str, came: "subprocess.Popen[str]"
) -> tuple[float, list[float]]:
    """Save drafts until the strangers go; return the most megabytes held, and milliseconds each."""
    held, took = megabytes(server), []
    async with await page_client.Page.open(server.address, cookie) as page:
        shown = await page.run()
        while came.poll() is None:
            scores = {name: 1 + len(took) % 5 for name in shown.criteria}
            told = page_client.entered(shown, page.name, shown.seq + 1, scores)
            began = time.perf_counter()
            shown = await page.tell(shown, told)
            took.append(1000 * (time.perf_counter() - began))
            assert shown.acknowledges(told), shown.error
            held = max(held, megabytes(server))
            await asyncio.sleep(0.1)
    return held, took

"""A served study to attack: the command as it is started, telling whom it asks and what it runs."""

import http
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import Engine
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from data.database import open_study
from data.importers.rows import Origin as RowOrigin
from data.importers.rows import RatingRow
from data.person import OPERATOR
from data.schema import Kind, Role
from data.study import people as study_people
from data.study.people import add_people
from data.study.ratings import import_ratings
from kit.rating_study import build, row, rubric, session_of
from kit.servers import Answer, Server, ask, free_port

PATIENT = "Zylberquist"

STUDY = "study-with-a-password"

# The server as it is started, that also tells whom it asks and what it runs.
TELLS = """
import socket, sys
def heard(event, given):
    if event in ("socket.connect", "socket.sendto"):
        print("ASKED", given[1], file=sys.stderr, flush=True)
    if event in ("socket.getaddrinfo", "socket.gethostbyname"):
        print("ASKED", given[0], file=sys.stderr, flush=True)
    if event == "subprocess.Popen":
        print("RAN", given[1], file=sys.stderr, flush=True)
sys.addaudithook(heard)
socket.getaddrinfo("127.0.0.1", 1)
from medjury import main
main(["serve", "--port", sys.argv[1]])
"""

HERE = re.compile(r"ASKED (None|/.*|127\.0\.0\.1|localhost|\('127\.0\.0\.1', \d+\))")


@dataclass
class Watched(Server):
    """A server whose every word is kept."""

    log: Path = Path("log")

    def start(self) -> "Watched":
        """Start the command and wait until it answers."""
        call = [sys.executable, "-c", TELLS, str(self.port)]
        told = os.environ | {"MEDJURY_DB": self.db_url, "OPENAI_API_KEY": "sk-never-told"}
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(call, stdout=out, stderr=out, env=told)
        for _ in range(600):
            try:
                if ask(self, "GET", "/_stcore/health").status == http.HTTPStatus.OK:
                    return self
            except OSError:
                assert self.process.poll() is None, self.log.read_text()
                time.sleep(0.1)
        raise RuntimeError("the server did not start")


@pytest.fixture(scope="module")
def engine(tmp_path_factory, empty_study) -> Iterator[Engine]:
    path = tmp_path_factory.mktemp("web") / f"{STUDY}.db"
    path.write_bytes(empty_study.read_bytes())
    engine = open_study(f"sqlite:///{path}")
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def codes(engine) -> dict[str, str]:
    rows = [row(n, f"{PATIENT} has no fever {n}.") for n in (1, 2)]
    codes = build(engine, rows, ["dr-a", "dr-b", "dr-c"], rubric())
    said = RatingRow(RowOrigin("made up", 1), "resp-hidden-1", "juror", Kind.JUROR, "accuracy", "3")
    import_ratings(engine, [said])
    for name, role in (("boss", Role.COORDINATOR), ("rita", Role.RESEARCHER)):
        codes[name] = add_people(OPERATOR, engine, [name], role)[0].code
    return codes


@pytest.fixture(scope="module")
def server(engine, codes, tmp_path_factory) -> Iterator[Watched]:
    log = tmp_path_factory.mktemp("log") / "log"
    server = Watched(str(engine.url), free_port(), log=log).start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def cookies(engine, codes) -> dict[str, str]:
    """Return a session of each person; "" of nobody."""
    people = {name: study_people.check_code(engine, code).person for name, code in codes.items()}
    return {"": ""} | {name: session_of(engine, who) for name, who in people.items() if who}


def wire(server: Server, cookie: str, origin: str = "") -> ClientConnection:
    """Open a WebSocket as a page does, with a session's cookie."""
    return connect(
        f"ws://127.0.0.1:{server.port}/_stcore/stream",
        origin=Origin(origin or server.address),
        subprotocols=[Subprotocol("streamlit")],
        additional_headers={"Cookie": cookie},
        max_size=2**24,
    )


def run_of(opened: ClientConnection, ask: BackMsg) -> list[ForwardMsg]:
    """Send a message and return all that comes up to the end of the page's run."""
    opened.send(ask.SerializeToString())
    told: list[ForwardMsg] = []
    while not told or told[-1].WhichOneof("type") != "script_finished":
        told.append(ForwardMsg.FromString(bytes(opened.recv(timeout=60))))  # type: ignore[arg-type]
    return told


def page_asked(script: str = "") -> BackMsg:
    """Return the message that asks for a screen by its number; without one, for the first."""
    return BackMsg(rerun_script=ClientState(page_script_hash=script))


def screens(told: list[ForwardMsg]) -> dict[str, str]:
    """Return the numbers of all screens that a browser was told of, by their paths."""
    pages = [one.navigation.app_pages for one in told if one.WhichOneof("type") == "navigation"]
    return {page.url_pathname: page.page_script_hash for page in pages[-1]}


def with_session(server: Server, method: str, path: str, cookie: str, **headers: str) -> Answer:
    return ask(server, method, path, Cookie=cookie, **headers)

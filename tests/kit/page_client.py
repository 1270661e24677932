"""A scripted clinician at the rating page, no browser: Streamlit's WebSocket, and the room's own line."""

import random
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

import httpx2
from sqlalchemy import Engine
from sqlmodel import Session, select
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin, Subprotocol

from data.schema import Assignment, Rating, State
from data.study.verify import verify

COOKIE = "medjury_session_"  # and the study's short name

REMARK = "Checked against the source."  # a low score asks for a reason

LARGEST_FRAME = 2**24

IDLE = httpx2.Limits(keepalive_expiry=2)  # let go of a line before the server does, after 5 s

OLDEST_KEPT = 2  # runs since a message was shown; then the browser forgets it, and so do we

ENDED = (ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY)

GONE = (ConnectionClosed, httpx2.TransportError, OSError, EOFError)


def entered(
    shown: "Shown", by: str, seq: int, scores: Mapping[str, int], *, submit: bool = False
) -> dict[str, Any]:
    """Return the message that the form sends about what it shows."""
    return {
        "code": shown.code,
        "seq": seq,
        "base": shown.version,
        "attempt": 0,
        "by": by,
        "scores": dict(scores),
        "comment": REMARK,
        "seconds": 3,
        "submit": submit,
    }


@dataclass(frozen=True, slots=True)
class Shown:
    """What stands on the screen after a request.

    Attributes
    ----------
    form
        What the room is shown, what is stored of the entry among it; nothing at the end.
    answer
        What became of the last message.
    nbytes
        How much was sent for it.
    """

    form: Mapping[str, Any] = field(default_factory=dict)
    answer: Mapping[str, Any] = field(default_factory=dict)
    nbytes: int = 0

    @property
    def code(self) -> str:
        """The response that is shown; empty at the end."""
        return str(self.form.get("code", ""))

    @property
    def version(self) -> int:
        """The number of the newest state that the server keeps."""
        return int(self.form.get("version", 0))

    @property
    def seq(self) -> int:
        """The page's own count of that state."""
        return int(self.form.get("seq", 0))

    @property
    def criteria(self) -> list[str]:
        """The criteria's names."""
        return [one["name"] for one in self.form.get("criteria", [])]

    @property
    def error(self) -> str:
        """What the server complains of; empty if all is well."""
        return str(self.answer.get("error", ""))

    @property
    def busy(self) -> bool:
        """Whether the study could not be reached, and the same message may be sent again."""
        return bool(self.answer.get("busy"))

    def acknowledges(self, message: Mapping[str, Any]) -> bool:
        """Return whether a message is stored, as far as the clinician can tell."""
        if self.error or self.answer.get("seq") != message["seq"]:
            return False
        return not message["submit"] or self.code != message["code"]


@dataclass
class Page:
    """One open page of one clinician."""

    address: str
    socket: ClientConnection
    desk: httpx2.AsyncClient
    name: str = field(default_factory=lambda: uuid.uuid4().hex[:10])
    script: str = ""
    kept: dict[str, ForwardMsg] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    runs: int = 0

    @classmethod
    async def open(cls, address: str, cookie: str) -> Self:
        """Connect as the page does, with a cookie's name and value; `run` shows the first response."""
        parts = urlsplit(address)
        headers = {"Cookie": cookie, "Sec-Fetch-Site": "same-origin"}
        desk = httpx2.AsyncClient(base_url=address, headers=headers, timeout=60, limits=IDLE)
        socket = await connect(
            f"{parts.scheme.replace('http', 'ws')}://{parts.netloc}/_stcore/stream",
            origin=Origin(address),
            subprotocols=[Subprotocol("streamlit"), Subprotocol("none")],
            additional_headers={"Cookie": cookie},
            max_size=LARGEST_FRAME,
            ping_interval=None,
        )
        return cls(address, socket, desk)

    async def run(self, shown: Shown | None = None, message: object = None) -> Shown:
        """Arrive at the room, or send it a message; return what it shows then."""
        if message is not None:
            return await self.tell(shown or Shown(), message)
        if not self.runs:
            await self.send()
            await self.read()
        answer = await self.desk.get("/room")
        if answer.status_code != httpx2.codes.OK:
            return Shown(answer={"error": f"answered {answer.status_code}"})
        return _now(answer.json()["shown"], {}, len(answer.content))

    async def tell(self, shown: Shown, message: object) -> Shown:
        """Send a message over the room's line; return what is shown then."""
        answer = await self.desk.post("/room", json=message)
        if answer.status_code == httpx2.codes.SERVICE_UNAVAILABLE:
            return Shown(shown.form, {"error": "not reachable", "busy": True})
        answer.raise_for_status()
        said = answer.json()
        if "shown" in said:
            return _now(said["shown"], said, len(answer.content))
        kept = {} if said["version"] is None else {"version": said["version"], "seq": said["seq"]}
        return Shown({**shown.form, **kept}, said, len(answer.content))

    keep = submit = tell

    async def send(self) -> None:
        """Ask for a run of the page's script, without waiting for it."""
        ask = BackMsg()
        ask.rerun_script.query_string = ""
        ask.rerun_script.page_script_hash = self.script
        ask.rerun_script.cached_message_hashes.extend(self.kept)
        await self.socket.send(ask.SerializeToString())

    async def read(self) -> int:
        """Wait until a run has come to its end; return how many bytes it sent."""
        nbytes = 0
        while True:
            frame = await self.socket.recv()
            nbytes += len(frame)
            told = self._resolved(ForwardMsg.FromString(frame))
            kind = told.WhichOneof("type")
            if kind == "new_session":
                self.script = told.new_session.page_script_hash
            elif kind == "script_finished" and told.script_finished in ENDED:
                self._forget()
                return nbytes

    async def close(self) -> None:
        """Leave the page."""
        await self.desk.aclose()
        await self.socket.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _resolved(self, message: ForwardMsg) -> ForwardMsg:
        """Return a message, or the one it stands for; keep what the server asks to keep."""
        if message.WhichOneof("type") == "ref_hash":
            message = self.kept[message.ref_hash]
        if message.metadata.cacheable:
            self.kept[message.hash] = message
            self.last[message.hash] = self.runs
        return message

    def _forget(self) -> None:
        """Count a run, and let go of the messages that were not shown for a while."""
        self.runs += 1
        for name in [one for one, run in self.last.items() if self.runs - run > OLDEST_KEPT]:
            del self.kept[name], self.last[name]


def _now(form: Mapping[str, Any], answer: Mapping[str, Any], nbytes: int) -> Shown:
    return Shown({**form, **form.get("entry", {})}, answer, nbytes)


async def sign_in(address: str, code: str) -> str:
    """Sign in with a code as the form does, load the page, and return the session's cookie, as it is sent."""
    form = urlencode({"code": code})
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": address}
    async with httpx2.AsyncClient(base_url=address, timeout=60) as client:
        answer = await client.post("/login", content=form, headers=headers)
        names = [name for name in answer.cookies if COOKIE in name]
        if not names:
            raise RuntimeError(f"signing in was answered {answer.status_code} without a session")
        cookie = f"{names[0]}={answer.cookies[names[0]]}"
        loaded = await client.get("/", headers={"Cookie": cookie})
        loaded.raise_for_status()
    return cookie


CRITERIA = ("accuracy", "completeness", "clarity")


@dataclass
class Clinician:
    """Someone who rates without a pause, and remembers what the page acknowledged.

    Attributes
    ----------
    rated, drafted
        Code -> scores, of what the page said is submitted or kept as draft.
    pending
        What was sent last, if it was not answered: the page sends it again.
    low
        The lowest point: -2 of pairs.
    """

    name: str
    cookie: str
    rated: dict[str, dict[str, int]] = field(default_factory=dict)
    drafted: dict[str, dict[str, int]] = field(default_factory=dict)
    pending: dict[str, Any] | None = None
    low: int = 1

    async def rate(self, address: str) -> None:
        """Open the page, send what is pending again, and rate until the server is gone."""
        async with await Page.open(address, self.cookie) as page:
            shown = await page.run()
            assert shown.code not in self.rated, "a rated response is shown as open"
            self.assert_kept(shown)
            if self.pending is not None:
                again = self.pending | {"attempt": self.pending["attempt"] + 1}
                shown = await self.tell(page, shown, again)
            while shown.code:
                shown = await self.rate_one(page, shown)

    async def rate_one(self, page: Page, shown: Shown) -> Shown:
        """Score every criterion on top of what is shown, each kept as a draft, and submit."""
        own = scores_for(self.name, shown.code)
        wanted = {name: point + self.low - 1 for name, point in own.items()}
        for count in range(1, len(CRITERIA) + 1):
            some = shown.form["scores"] | dict(list(wanted.items())[:count])
            shown = await self.tell(page, shown, entered(shown, "page", shown.seq + 1, some))
        return await self.tell(
            page, shown, entered(shown, "page", shown.seq + 1, wanted, submit=True)
        )

    async def tell(self, page: Page, shown: Shown, message: dict[str, Any]) -> Shown:
        """Send a message and note what was acknowledged."""
        self.pending = message
        answered = await (page.run if message["submit"] else page.keep)(shown, message)
        assert answered.acknowledges(message), (message, answered.form)
        self.pending = None
        (self.rated if message["submit"] else self.drafted)[message["code"]] = message["scores"]
        if message["submit"]:
            return answered
        return replace(answered, form={**answered.form, "scores": message["scores"]})

    def assert_kept(self, shown: Shown) -> None:
        """Assert that the page shows every score that it once said it keeps."""
        shown_scores = shown.form.get("scores", {})
        missing = self.drafted.get(shown.code, {}).items() - shown_scores.items()
        assert not missing, f"{self.name} on {shown.code}: {missing} was acknowledged and is gone"


def scores_for(who: str, code: str) -> dict[str, int]:
    """Return what a clinician thinks of a response, always the same."""
    draw = random.Random(f"{who} {code}")  # noqa: S311 seeded on purpose
    return {name: draw.randint(1, 5) for name in CRITERIA}


def assert_whole(engine: Engine, clinicians: list[Clinician]) -> None:
    """Assert that the database holds what was acknowledged, and nothing twice."""
    with Session(engine) as session:
        given = {one.code: one for one in session.exec(select(Assignment))}
        rows = session.exec(select(Rating)).all()
    found: dict[tuple[int, int], dict[str, float]] = {}
    turned = {(one.rater, one.response) for one in given.values() if one.shown_first == "second"}
    for one in rows:
        key = one.rater, one.response
        found.setdefault(key, {})[one.criterion] = -one.score if key in turned else one.score
    many = Counter((one.rater, one.response, one.criterion) for one in rows)
    assert set(many.values()) <= {1}, "a rating is there twice"
    assert {tuple(one) for one in found.values()} <= {CRITERIA}, "half a rating is there"
    for who in clinicians:
        for code, scores in who.rated.items():
            one = given[code]
            assert found.get((one.rater, one.response)) == scores, f"the rating of {code} is lost"
            assert (one.state, one.revision) == (State.DONE, 1)
        for code, scores in who.drafted.items():
            assert not scores.items() - given[code].draft["scores"].items(), f"{code}: draft lost"
    assert verify(engine).findings == ()

"""A scripted clinician's connection to the rating page, no browser: WebSocket, and drafts by POST.

Everything that knows the form's messages stands in `entered`; what the page shows is
read from the deltas as the browser reads them, cached messages included.
"""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

import httpx2
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin, Subprotocol

COOKIE = "medjury_session"
KEY = "rating"
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
        "attempt": 0,
        "by": by,
        "scores": dict(scores),
        "comment": REMARK,
        "seconds": 3,
        "submit": submit,
    }


@dataclass(frozen=True, slots=True)
class Shown:
    """What one run of the page left on the screen.

    Attributes
    ----------
    form
        The data of the rating form; empty where there is none, as at the end.
    widget
        The form's name in Streamlit's messages.
    nbytes, runs
        How much was sent for it, in how many runs of the script.
    """

    form: Mapping[str, Any]
    widget: str
    nbytes: int
    runs: int

    @property
    def code(self) -> str:
        """The response that is shown; empty at the end."""
        return str(self.form.get("code", ""))

    @property
    def seq(self) -> int:
        """The number of the newest state that the server keeps."""
        return int(self.form.get("seq", 0))

    @property
    def criteria(self) -> list[str]:
        """The criteria's names."""
        return [one["name"] for one in self.form.get("criteria", [])]

    @property
    def error(self) -> str:
        """What the server complains of; empty if all is well."""
        return str((self.form.get("answer") or {}).get("error", ""))

    def acknowledges(self, message: Mapping[str, Any]) -> bool:
        """Return whether a message is stored, as far as the clinician can tell."""
        if self.error:
            return False
        if message["submit"]:
            return self.code != message["code"]
        return self.code == message["code"] and self.seq >= message["seq"]


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
        """Connect as the page does; `run` then shows the first response."""
        parts = urlsplit(address)
        headers = {"Cookie": f"{COOKIE}={cookie}", "Sec-Fetch-Site": "same-origin"}
        desk = httpx2.AsyncClient(base_url=address, headers=headers, timeout=60, limits=IDLE)
        socket = await connect(
            f"{parts.scheme.replace('http', 'ws')}://{parts.netloc}/_stcore/stream",
            origin=Origin(address),
            subprotocols=[Subprotocol("streamlit"), Subprotocol("none")],
            additional_headers={"Cookie": f"{COOKIE}={cookie}"},
            max_size=LARGEST_FRAME,
            ping_interval=None,
        )
        return cls(address, socket, desk)

    async def run(self, shown: Shown | None = None, message: object = None) -> Shown:
        """Run the page's script, with a message of the form or without; return what it shows."""
        await self.send(shown, message)
        return await self.read()

    async def keep(self, shown: Shown, message: Mapping[str, Any]) -> Shown:
        """Have a draft kept, for which no page is drawn; return what the form knows then."""
        answer = await self.desk.post("/draft", json=message)
        answer.raise_for_status()
        form = {**shown.form, **answer.json()}
        return Shown(form, shown.widget, len(answer.content), 0)

    async def submit(self, shown: Shown, message: Mapping[str, Any]) -> Shown:
        """Submit as the form does: once the server has said that it reaches the study."""
        (await self.desk.get("/draft")).raise_for_status()
        return await self.run(shown, message)

    async def send(self, shown: Shown | None = None, message: object = None) -> None:
        """Ask for a run of the script, without waiting for it."""
        ask = BackMsg()
        ask.rerun_script.query_string = ""
        ask.rerun_script.page_script_hash = self.script
        ask.rerun_script.cached_message_hashes.extend(self.kept)
        if shown is not None and message is not None:
            state = ask.rerun_script.widget_states.widgets.add(id=shown.widget)
            state.json_value = json.dumps({"message": message})
        await self.socket.send(ask.SerializeToString())

    async def read(self) -> Shown:
        """Return what is shown once a run has come to its end."""
        form: Mapping[str, Any] = {}
        widget, nbytes, runs = "", 0, 0
        while True:
            frame = await self.socket.recv()
            nbytes += len(frame)
            told = self._resolved(ForwardMsg.FromString(frame))
            kind = told.WhichOneof("type")
            if kind == "new_session":
                self.script = told.new_session.page_script_hash
                form, widget, runs = {}, "", runs + 1
            elif kind == "delta" and told.delta.new_element.HasField("bidi_component"):
                one = told.delta.new_element.bidi_component
                if one.id.endswith(f"-{KEY}"):
                    form, widget = json.loads(one.json)[0], one.id
            elif kind == "script_finished" and told.script_finished in ENDED:
                self._forget()
                return Shown(form, widget, nbytes, runs)

    async def close(self) -> None:
        """Leave the page."""
        await self.desk.aclose()
        await self.socket.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _resolved(self, told: ForwardMsg) -> ForwardMsg:
        """Return a message, or the one it stands for; keep what the server asks to keep."""
        if told.WhichOneof("type") == "ref_hash":
            told = self.kept[told.ref_hash]
        if told.metadata.cacheable:
            self.kept[told.hash] = told
            self.last[told.hash] = self.runs
        return told

    def _forget(self) -> None:
        """Count a run, and let go of the messages that were not shown for a while."""
        self.runs += 1
        for name in [one for one, run in self.last.items() if self.runs - run > OLDEST_KEPT]:
            del self.kept[name], self.last[name]


async def sign_in(address: str, code: str) -> str:
    """Sign in with a code as the form does, load the page, and return the session's cookie."""
    form = urlencode({"code": code})
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": address}
    async with httpx2.AsyncClient(base_url=address, timeout=60) as client:
        answer = await client.post("/login", content=form, headers=headers)
        cookie = answer.cookies.get(COOKIE)
        if cookie is None:
            raise RuntimeError(f"signing in was answered {answer.status_code} without a session")
        loaded = await client.get("/", headers={"Cookie": f"{COOKIE}={cookie}"})
        loaded.raise_for_status()
    return cookie

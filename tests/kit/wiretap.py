"""Everything that travels between a page and its server, for tests that search it."""

import base64
import re
from contextlib import suppress
from urllib.parse import unquote_to_bytes

from google.protobuf import text_format
from google.protobuf.message import DecodeError, Message
from playwright.sync_api import BrowserContext, Error, Page, Request, WebSocket
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

REDIRECTS = range(300, 400)  # without a body that could be asked for

BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{16,}")

URL_SAFE = bytes.maketrans(b"-_", b"+/")


def record(page: Page | BrowserContext) -> list[bytes]:
    """Collect every byte that a page, or all of a browser's, sends or gets from here on."""
    heard: list[bytes] = []

    def keep(payload: str | bytes) -> None:
        heard.append(payload.encode() if isinstance(payload, str) else payload)

    def keep_both(request: Request) -> None:
        response = request.response()
        assert response is not None  # it is finished
        keep(request.url + str(response.all_headers()) + (request.post_data or ""))
        if response.status not in REDIRECTS:
            with suppress(Error):  # of a page that was left meanwhile
                keep(response.body())

    def listen(socket: WebSocket) -> None:
        socket.on("framesent", lambda frame: _keep_frame(heard, frame, BackMsg()))
        socket.on("framereceived", lambda frame: _keep_frame(heard, frame, ForwardMsg()))

    def listen_to(page: Page) -> None:
        page.on("websocket", listen)

    if isinstance(page, Page):
        listen_to(page)
    else:
        page.on("page", listen_to)
    page.on("requestfinished", keep_both)
    return heard


def _keep_frame(heard: list[bytes], frame: str | bytes, message: Message) -> None:
    """Keep a frame, and what it says as Streamlit's own message."""
    sent = frame.encode() if isinstance(frame, str) else frame
    heard.append(sent)
    with suppress(DecodeError):
        message.ParseFromString(sent)
        heard.append(text_format.MessageToString(message, as_utf8=True).encode())


def read(heard: list[bytes]) -> bytes:
    """Return all that was heard in lower case: as it came, and with escapes and base64 undone."""
    told = b"\n".join(heard)
    plain = told.replace(b"\\/", b"/").replace(b'\\"', b'"')
    return b"\n".join(
        [told, plain, unquote_to_bytes(told), *map(_decoded, BASE64.findall(told))]
    ).lower()


def _decoded(found: bytes) -> bytes:
    """Return what base64 says, in either alphabet; what is none says nothing that is searched for."""
    whole = found[: len(found) - len(found) % 4] if len(found) % 4 == 1 else found
    return base64.b64decode(whole.translate(URL_SAFE) + b"=" * (-len(whole) % 4))

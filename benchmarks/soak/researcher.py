"""A researcher who opens screens, a minute after a minute."""

import asyncio
import time
from collections.abc import Sequence

from book import Book
from clinicians import BROKEN
from kit.page_client import ENDED, Page, sign_in
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

SCREENS = ("study", "agreement")
SEEN = {"study": "Assigned readings done", "agreement": "mj-judged"}  # what shows that it was drawn
PATIENCE_SECONDS = 300
EVERY_SECONDS = 60.0


async def research(address: str, code: str, book: Book, seconds: float) -> None:
    """Open each screen every minute until the time is over."""
    cookie = await sign_in(address, code)
    at = EVERY_SECONDS
    while at < seconds:
        await asyncio.sleep(max(0.0, at - book.now()))
        try:
            async with asyncio.timeout(PATIENCE_SECONDS), await Page.open(address, cookie) as page:
                for screen in SCREENS:
                    await _open(page, screen, book)
        except BROKEN as error:
            book.wrong("researcher", f"{type(error).__name__}: {error}")
        at = max(at + EVERY_SECONDS, book.now())


async def _open(page: Page, screen: str, book: Book) -> None:
    """Open a screen, wait until it is drawn, and note how long that took."""
    began = time.perf_counter()
    ask = BackMsg()
    ask.rerun_script.page_name = screen
    ask.rerun_script.cached_message_hashes.extend(page.kept)
    await page.socket.send(ask.SerializeToString())
    drawn = await _drawn(page)
    ran = {"what": f"screen {screen}", "at": round(book.now(), 1), "code": 0}
    book.ran.append(ran | {"seconds": round(time.perf_counter() - began, 2)})
    if any(one.delta.new_element.HasField("exception") for one in drawn):
        raise RuntimeError(f"screen {screen} shows an exception")
    if not any(SEEN[screen] in one.delta.new_element.html.body for one in drawn):
        raise RuntimeError(f"screen {screen} is not drawn")


async def _drawn(page: Page) -> Sequence[ForwardMsg]:
    """Return what is put on the page until a run has come to its end."""
    drawn = []
    while True:
        told = page._resolved(ForwardMsg.FromString(await page.socket.recv()))
        if told.WhichOneof("type") == "delta":
            drawn.append(told)
        elif told.WhichOneof("type") == "script_finished" and told.script_finished in ENDED:
            return drawn

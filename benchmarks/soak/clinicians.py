"""Scripted clinicians: they draft, rate, change their mind, lose the line, sign out and come back."""

import asyncio
import contextlib
import random
import time
from dataclasses import dataclass, field
from typing import Any

import httpx2
from book import Book, Said
from kit.page_client import GONE, Page, Shown, entered, sign_in
from material import FASTEST, SLOWEST

PATIENCE_SECONDS = 60
BROKEN = (*GONE, httpx2.HTTPError, RuntimeError, TimeoutError)
CHANGES, LEAVES, LOSES_LINE = 0.03, 0.02, 0.03  # how often, after a rating
LOSES_SUBMISSION = 0.02  # how often the line is lost before the answer


@dataclass
class Clinician:
    """One clinician before the page.

    `door` lets in a few at a time: they share an address, and the server takes ten attempts that
    are still being checked for ten that failed.
    """

    name: str
    address: str
    code: str
    book: Book
    draw: random.Random
    door: asyncio.Semaphore
    cookie: str = ""
    page: Page = field(init=False)
    shown: Shown = field(init=False)
    seq: int = 0
    said: int = 0

    async def work(self, seconds: float) -> None:
        """Rate until the time is over; whatever goes wrong is noted, and the page opened again."""
        await asyncio.sleep(self.draw.uniform(0, SLOWEST))
        while self.book.now() < seconds:
            try:
                await self._back(signing_in=True)
                while self.book.now() < seconds:
                    await self._rate()
                    await self._pastime()
                await self.page.close()
            except BROKEN as error:
                self.book.wrong(self.name, f"{type(error).__name__}: {error}")
                await asyncio.sleep(FASTEST)

    async def _rate(self) -> None:
        """Think, draft a score, think, draft all, think, submit."""
        if not self.shown.code:
            raise RuntimeError("there is nothing to rate")
        pause = self.draw.uniform(FASTEST, SLOWEST) / 3
        wanted = {name: self.draw.randint(1, 5) for name in self.shown.criteria}
        for upto in (1, len(wanted)):
            await asyncio.sleep(pause)
            await self._draft(dict(list(wanted.items())[:upto]))
        await asyncio.sleep(pause)
        if self.draw.random() < LOSES_SUBMISSION:
            await self._submit_and_vanish(wanted)
        else:
            await self._submit(wanted)

    async def _pastime(self) -> None:
        """Do, now and then, what people do between two responses."""
        at = self.draw.random()
        if at < CHANGES:
            await self._change()
        elif at < CHANGES + LEAVES:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self.page.desk.get("/logout")
                await self.page.close()
            await self._back(signing_in=True)
            self.book.acts["signed out and in"] += 1
        elif at < CHANGES + LEAVES + LOSES_LINE:
            await self._lose_line()
            await self._back()
            self.book.acts["line lost"] += 1

    async def _back(self, *, signing_in: bool = False) -> None:
        """Come to the page, signed in anew or not, and find there what it said it keeps."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            if signing_in:
                async with self.door:
                    self.cookie = await sign_in(self.address, self.code)
            self.page = await Page.open(self.address, self.cookie)
            self.shown = await self.page.run()
        self.seq = self.shown.seq
        kept = self.shown.form.get("scores", {})
        lost = self.book.drafted.get(self.shown.code, {}).items() - kept.items()
        if lost:
            self.book.wrong(self.name, f"a draft is gone: {dict(lost)}")

    async def _draft(self, scores: dict[str, int]) -> None:
        message = self._message(scores, comment="")
        async with asyncio.timeout(PATIENCE_SECONDS):
            self._heard(message, await self._sent(message))
        self.book.drafted[message["code"]] = scores
        self.book.acts["draft"] += 1

    async def _sent(self, message: dict[str, Any]) -> Shown:
        """Send a message, and once more where nobody answers, as the page does."""
        try:
            return await self.page.tell(self.shown, message)
        except httpx2.TransportError:
            self.book.acts["sent again"] += 1
            return await self.page.tell(self.shown, message | {"attempt": 1})

    async def _submit(self, scores: dict[str, int]) -> None:
        message = self._message(scores, submit=True)
        began = time.perf_counter()
        async with asyncio.timeout(PATIENCE_SECONDS):
            self._heard(message, await self._sent(message))
        self.book.submits.append((self.book.now(), 1000 * (time.perf_counter() - began)))

    async def _submit_and_vanish(self, scores: dict[str, int]) -> None:
        """Submit, lose the line before the answer, come back and send the same again."""
        message = self._message(scores, submit=True)
        sent = asyncio.create_task(self.page.submit(self.shown, message))
        await asyncio.sleep(self.draw.choice((0, 0.005, 0.02)))
        sent.cancel()
        with contextlib.suppress(asyncio.CancelledError, *BROKEN):
            await sent
        await self._lose_line()
        before = self.shown
        await self._back()
        again = message | {"attempt": 1}
        shown = self.shown if self.shown.code else before
        async with asyncio.timeout(PATIENCE_SECONDS):
            self._heard(again, await self.page.tell(shown, again))
        self.book.acts["line lost before the answer"] += 1

    async def _change(self) -> None:
        """Go back to what was rated last and rate it otherwise."""
        message = self._message(dict(self.shown.form.get("scores", {})), comment="")
        async with asyncio.timeout(PATIENCE_SECONDS):
            there = await self._sent(message | {"go": "previous"})
        if there.error or there.code in {"", message["code"]}:
            raise RuntimeError(f"the way back was not taken: {there.error}")
        self.shown, self.seq = there, there.seq
        await self._submit({name: self.draw.randint(1, 5) for name in there.criteria})
        self.book.acts["change"] += 1

    def _message(
        self, scores: dict[str, int], *, comment: str | None = None, submit: bool = False
    ) -> dict[str, Any]:
        """Return the form's next message; each submission has a comment of its own."""
        self.seq = max(self.seq, self.shown.seq) + 1
        message = entered(self.shown, self.page.name, self.seq, scores, submit=submit)
        if comment is None:
            self.said += 1
            comment = f"{self.name} says {self.said}"
        return message | {"comment": comment}

    def _heard(self, message: dict[str, Any], answered: Shown) -> None:
        """Note what was acknowledged; raise RuntimeError if it was not."""
        if not answered.acknowledges(message):
            what = "submission" if message["submit"] else "draft"
            raise RuntimeError(f"a {what} was refused: {answered.error}")
        if message["submit"]:
            self.book.told[message["code"]].append(Said(message["scores"], message["comment"]))
            self.seq = answered.seq
        self.shown = answered

    async def _lose_line(self) -> None:
        """Break the connection as a lost network does, without a word."""
        self.page.socket.transport.abort()
        await self.page.close()

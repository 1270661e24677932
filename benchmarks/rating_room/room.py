"""Clinicians at medjury's rating page."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kit.page_client import Page, Shown, entered, sign_in

AT_ONCE = 5


def command(database: Path, port: int) -> list[str]:
    """Return the command that serves a study, as a coordinator types it."""
    medjury = Path(sys.executable).with_name("medjury")
    return [str(medjury), "--db", f"sqlite:///{database}", "serve", "--port", str(port)]


@dataclass
class RoomDesk:
    """One clinician with the page open."""

    page: Page
    shown: Shown
    seq: int

    async def draft(self, upto: int) -> None:
        """Score the first so many criteria and wait until the page says that it is saved."""
        await self._tell(upto, submit=False)

    async def submit(self) -> bool:
        """Submit and wait for the next response."""
        self.shown = await self._tell(len(self.shown.criteria), submit=True)
        self.seq = self.shown.seq
        return bool(self.shown.code)

    async def _tell(self, upto: int, *, submit: bool) -> Shown:
        self.seq += 1
        scores = dict.fromkeys(self.shown.criteria[:upto], 1 + self.seq % 5)
        message = entered(self.shown, self.page.name, self.seq, scores, submit=submit)
        ask = self.page.submit if submit else self.page.keep
        answered = await ask(self.shown, message)
        if not answered.acknowledges(message):
            raise RuntimeError(f"not acknowledged: {message} {answered.error}")
        return answered


async def seat(address: str, codes: Sequence[str]) -> list[RoomDesk]:
    """Sign clinicians in, a few at once, and open the page for each."""
    few = asyncio.Semaphore(AT_ONCE)

    async def one(code: str) -> RoomDesk:
        async with few:
            page = await Page.open(address, await sign_in(address, code))
            shown = await page.run()
            if not shown.code:
                raise RuntimeError("a clinician has nothing to rate")
            return RoomDesk(page, shown, shown.seq)

    return list(await asyncio.gather(*(one(code) for code in codes)))

"""The money of one command: its cap over all its phases, and what the study's budget leaves."""

import asyncio

from sqlalchemy import Engine

from data.errors import BadInput
from data.schema import now
from data.study.calls import carry_over
from data.study.costs import study_spending
from jury.cost import refuse_unpriced
from jury.panel import Panel


class Budget:
    """What one command may spend in US dollars, in however many phases it calls jurors.

    A call reserves the most that it can cost before it is sent. What it did cost takes the place
    of that once it is known; where that stays unknown, the most counts, in later phases too.

    Attributes
    ----------
    max_usd
        The command's own cap, None without one. The study's budget bounds it as well.
    calls_carried, usd_carried
        Calls in flight when earlier runs were killed; their worst case counts against `max_usd`.
    """

    def __init__(self, max_usd: float | None = None) -> None:
        if max_usd is not None and not max_usd >= 0:
            raise BadInput(f"max_usd = {max_usd}: must be an amount of US dollars, 0 or more")
        self.max_usd = max_usd
        self.calls_carried, self.usd_carried = 0, 0.0
        self._cap = max_usd
        self._held = 0.0
        self._in_flight = 0
        self._settled = asyncio.Condition()

    def begin(self, engine: Engine, panel: Panel, batched: float = 0.0) -> None:
        """Begin a phase: count what killed runs left, and bound it by what the study may still spend.

        To be called while the study's run lock is held, so that nobody else spends until the phase
        ends. `batched` is the most that requests in batches can cost whose ends this phase will
        learn.

        Raises
        ------
        BadPanel
            If there is a cap or a budget while a juror's price is not known.
        """
        left = study_spending(engine).left
        if self.max_usd is not None or left is not None:
            refuse_unpriced(panel, now())
        if self.max_usd is not None:
            calls, usd = carry_over(engine)
            self.calls_carried += calls
            self.usd_carried += usd
            self._held += usd
        bounds = (self.max_usd, None if left is None else self._held + batched + left)
        self._cap = min((bound for bound in bounds if bound is not None), default=None)
        self._in_flight, self._settled = 0, asyncio.Condition()  # of this phase's event loop

    async def reserve(self, worst: float | None) -> bool:
        """Reserve the most that a call can cost; return False if it could pass the cap.

        While other calls are in flight it waits for what they really cost, so that a cap is used
        up as far as it goes.
        """
        async with self._settled:
            await self._settled.wait_for(lambda: self.fits(worst) or not self._in_flight)
            if not self.fits(worst):
                return False
            self._held += worst or 0.0
            self._in_flight += 1
            return True

    async def settle(self, worst: float | None, usd: float | None) -> None:
        """Replace the reserved cost by the real one; where that is unknown, the reserved one stays."""
        async with self._settled:
            self._held += 0.0 if usd is None else max(0.0, usd) - (worst or 0.0)
            self._in_flight -= 1
            self._settled.notify_all()

    def fits(self, worst: float | None, batched: float = 0.0) -> bool:
        """Return whether a call is within the cap, beside what is held and what batches may cost."""
        if self._cap is None or worst == 0:
            return True
        return worst is not None and self._held + batched + worst <= self._cap

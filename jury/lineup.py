"""The order in which one juror is asked: an instance's first response, then all its others at once.

A vendor serves the beginning that an instance's prompts share from its cache only once a first
answer to it has begun; requests sent beside that one would all be billed in full, and some vendors
bill the writing besides. So the first of a group goes ahead, and until it has ended its places are
given to the firsts of other groups: nothing waits unless no other group is left.
"""

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Lineup(Generic[T]):
    """What one juror is still to be asked, given out to its workers."""

    def __init__(self, groups: Iterator[Sequence[T]]) -> None:
        self._groups = groups
        self._ready: deque[T] = deque()
        self._behind: dict[int, Sequence[T]] = {}
        self._moved = asyncio.Event()

    async def take(self) -> T | None:
        """Return what to ask next, None where all has been given out."""
        while not self._ready:
            group = next(self._groups, None)
            if group:
                first, *others = group
                if others:
                    self._behind[id(first)] = others
                return first
            if not self._behind:
                return None
            self._moved.clear()
            await self._moved.wait()
        return self._ready.popleft()

    def ended(self, one: T) -> None:
        """Let those behind one that was taken follow, however it ended."""
        others = self._behind.pop(id(one), None)
        if others is not None:
            self._ready.extend(others)
            self._moved.set()

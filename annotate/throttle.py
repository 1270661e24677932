"""Slowing down whoever guesses codes."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Allowance:
    """`burst` failures at once, then one more every `seconds_each`."""

    burst: int
    seconds_each: float


PER_ADDRESS = Allowance(10, 30.0)
OVERALL = Allowance(200, 1.0)
ADDRESSES_KEPT = 10_000


class Bucket:
    """Tokens that failures take and time gives back."""

    def __init__(self, allowance: Allowance, now: float) -> None:
        self.allowance, self.tokens, self.at = allowance, float(allowance.burst), now

    def refill(self, now: float) -> float:
        """Return the tokens there are at `now`."""
        earned = (now - self.at) / self.allowance.seconds_each
        self.tokens, self.at = min(self.allowance.burst, self.tokens + earned), now
        return self.tokens


class Throttle:
    """Counts failed sign-ins by address and overall, in bounded memory.

    An address may fail 10 times at once and then once in 30 seconds; all together 200
    times and then once a second. It lives in the memory of one process: a restart
    forgets it, which is enough against guessing codes of 59 bits. The address longest
    unseen is dropped beyond 10,000; the overall allowance holds whatever the address.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.overall = Bucket(OVERALL, clock())
        self.by_address: OrderedDict[str, Bucket] = OrderedDict()

    def allows(self, address: str) -> bool:
        """Return whether this address may try a code now."""
        now = self.clock()
        return self._bucket(address).refill(now) >= 1 and self.overall.refill(now) >= 1

    def failed(self, address: str) -> None:
        """Note a wrong code."""
        for bucket in (self._bucket(address), self.overall):
            bucket.tokens = max(0.0, bucket.tokens - 1)

    def takes(self, address: str) -> bool:
        """Return whether this address may try a code now, and count it as wrong until it is not.

        So a hundred attempts at once are no more than as many one after the other.
        """
        if not self.allows(address):
            return False
        self.failed(address)
        return True

    def succeeded(self, address: str) -> None:
        """Take back that an attempt was counted: its code was right."""
        for bucket in (self._bucket(address), self.overall):
            bucket.tokens = min(bucket.allowance.burst, bucket.tokens + 1)

    def _bucket(self, address: str) -> Bucket:
        bucket = self.by_address.get(address) or Bucket(PER_ADDRESS, self.clock())
        self.by_address[address] = bucket
        self.by_address.move_to_end(address)
        while len(self.by_address) > ADDRESSES_KEPT:
            self.by_address.popitem(last=False)
        return bucket

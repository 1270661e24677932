"""Slow down guessing of codes."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

PREFIX_OF_A_HOUSEHOLD = 64  # bits of an IPv6 address that whoever holds it cannot choose
GUESSERS_KEPT = 20_000


@dataclass(frozen=True, slots=True)
class Allowance:
    """`burst` failures at once, then one more every `seconds_each`."""

    burst: int
    seconds_each: float


FAILURES = Allowance(10, 30.0)


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
    """Counts failed sign-ins by whoever makes them, in bounded memory.

    Whoever may fail 10 times at once and then once in 30 seconds: a network (`network`), a device
    that somebody has signed in from, or all who try one code. There is no allowance that all
    share, which a stranger could use up for everybody; guessing codes of 59 bits does not need
    one. It lives in the memory of one process: a restart forgets it. Who has failed longest ago
    is dropped beyond 20,000.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def allows(self, guesser: str) -> bool:
        """Return whether a code may be tried now."""
        return self._bucket(guesser).refill(self.clock()) >= 1

    def takes(self, guesser: str) -> bool:
        """Return whether a code may be tried now, and count it as wrong until it is not.

        So a hundred attempts at once are no more than as many one after the other.
        """
        if not self.allows(guesser):
            return False
        bucket = self._bucket(guesser)
        bucket.tokens = max(0.0, bucket.tokens - 1)
        return True

    def succeeded(self, guesser: str) -> None:
        """Take back that an attempt was counted: its code was right."""
        bucket = self._bucket(guesser)
        bucket.tokens = min(bucket.allowance.burst, bucket.tokens + 1)

    def _bucket(self, guesser: str) -> Bucket:
        bucket = self._buckets.get(guesser) or Bucket(FAILURES, self.clock())
        self._buckets[guesser] = bucket
        self._buckets.move_to_end(guesser)
        while len(self._buckets) > GUESSERS_KEPT:
            self._buckets.popitem(last=False)
        return bucket


def network(address: str) -> str:
    """Return what one guesser holds of the network: an IPv4 address, or an IPv6 prefix of 64 bits."""
    try:
        known = ip_address(address.partition("%")[0])
    except ValueError:  # a socket of this machine
        return f"address {address}"
    if not isinstance(known, IPv6Address):
        return f"address {known}"
    if known.ipv4_mapped is not None:
        return f"address {known.ipv4_mapped}"
    hidden = 128 - PREFIX_OF_A_HOUSEHOLD
    return f"network {IPv6Address(int(known) >> hidden << hidden)}"

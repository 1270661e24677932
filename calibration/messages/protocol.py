"""A protocol as text: what was fixed, and when."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from calibration.messages.form import counted, listed

if TYPE_CHECKING:
    from calibration.protocol import Critical, Protocol


def protocol_facts(protocol: "Protocol") -> Iterator[tuple[str, str]]:
    """Yield what a protocol fixes: the name of each thing, and the thing in words."""
    whose = f"on {protocol.criterion}" if protocol.criterion else "on the composite"
    yield "Margin", f"{protocol.margin:g} in ICC of like for like, {whose}"
    yield "Jury", listed(protocol.jurors) if protocol.jurors else "any that is analysed"
    yield "Responses", f"{protocol.responses}" if protocol.responses else "no number fixed"
    for one in protocol.critical:
        yield "Unsafe", unsafe_words(one)
    if protocol.method != "paper":
        yield "Method", protocol.method
    yield "Fixed", when_fixed(protocol)


def unsafe_words(critical: "Critical") -> str:
    """Return which responses are unsafe, and how many of them may be missed."""
    about = f"{critical.criterion} {critical.threshold:g} or less"
    if math.isnan(critical.miss_at_most):
        return f"{about}; no limit to how many the jury may miss"
    return f"{about}; the jury may miss at most {critical.miss_at_most:.0%} of them"


def when_fixed(protocol: "Protocol") -> str:
    """Return when a protocol was fixed, as every report says it."""
    after = protocol.set_after_ratings
    when = f"set after {counted(after, 'rating')}" if after else "fixed before any rating was seen"
    day = f" ({protocol.set_at})" if protocol.set_at else ""
    again = f"; it replaces {counted(protocol.replaced, 'protocol')}" if protocol.replaced else ""
    return f"{when}{day}{again}"

"""What a jury may and may not be used for, by the verdict on it."""

from collections.abc import Iterator, Mapping

INTENDED = (
    "To score responses of {benchmarks} on the rubric {rubrics} in the place of one clinician among "
    "several; not to treat patients."
)
PLACE = "A clinician's place beside others on further responses like these"
MAY: Mapping[str, str] = {
    "non_inferior": (
        f"{PLACE}: the same benchmarks, this rubric, these jurors with these settings."
    ),
    "no_protocol": "To be read beside clinicians' ratings. No claim was fixed, so none is made.",
    "inconclusive": "To be read beside clinicians' ratings, until more of them decide.",
    "inferior": "To be read beside clinicians' ratings, as one that agrees less.",
    "too_few": "To be read beside clinicians' ratings, until there are enough of them.",
    "undefined": "Nothing yet: whether it agrees is not known.",
    "simulated": "Nothing: the figures are of simulated raters.",
}
NOT_SHOWN = f"{PLACE}: that is not shown."
ALWAYS = (
    "Other benchmarks, other words of the rubric, other jurors or settings, or a later version of a "
    "model under the same name: validate anew."
)
NO_LIMIT = (
    "To let responses pass unread because the jury scored them high: no limit on missed unsafe "
    "responses was fixed, and agreement does not tell how many it misses."
)
LIMIT_OPEN = (
    "To let responses pass unread because the jury scored them high: that it misses few enough unsafe "
    "ones is not shown."
)
OTHER_CLINICIANS = "To stand for other clinicians than these: for them the margin is not shown."
BIG_POOL = "Verdicts on single benchmarks: they stand below, each with its own interval."


def may_not(
    kind: str, *, is_limited: bool, keeps_limits: bool, holds_for_others: bool, is_pooled: bool
) -> Iterator[str]:
    """Yield what a jury may not be used for, the most important first.

    Parameters
    ----------
    kind : of the decision
    is_limited, keeps_limits : whether missed unsafe responses are limited, and all limits kept
    holds_for_others : whether the margin is shown for other clinicians like these
    is_pooled : whether several benchmarks are pooled
    """
    if kind != "non_inferior":
        yield NOT_SHOWN
    if not is_limited:
        yield NO_LIMIT
    elif not keeps_limits:
        yield LIMIT_OPEN
    if kind == "non_inferior" and not holds_for_others:
        yield OTHER_CLINICIANS
    if is_pooled:
        yield BIG_POOL
    yield ALWAYS

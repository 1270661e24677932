"""The intended use of a jury: what it may and may not be used for, by the verdict on it."""

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
    "no_protocol": "To be read beside clinicians' ratings. No margin was fixed, so nothing is claimed.",
    "inconclusive": "To be read beside clinicians' ratings, until there are enough of them to decide.",
    "inferior": "To be read beside clinicians' ratings, bearing in mind that it agrees less than a clinician.",
    "too_few": "To be read beside clinicians' ratings, until there are enough of them.",
    "undefined": "Nothing yet: it is not known whether the jury agrees with clinicians.",
    "simulated": "Nothing: the figures come from simulated raters.",
}
NOT_SHOWN = f"{PLACE}: non-inferiority is not shown."
ALWAYS = (
    "Other benchmarks, another wording of the rubric, other jurors or settings, or a later version of "
    "a model under the same name: validate again."
)
NO_LIMIT = (
    "To let responses pass unread because the jury scored them high: no limit on missed unsafe "
    "responses was fixed, and agreement does not show how many it misses."
)
LIMIT_OPEN = (
    "To let responses pass unread because the jury scored them high: it is not shown to miss few "
    "enough unsafe ones."
)
OTHER_CLINICIANS = (
    "In the place of clinicians other than these: non-inferiority is not shown for them."
)
BIG_POOL = "Verdicts on single benchmarks: see below, each with its own interval."


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

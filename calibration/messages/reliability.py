"""Messages on the clinicians' own reliability, and which of its figures to quote for what."""

from collections.abc import Mapping

from calibration.codes import NoteCode as Code
from calibration.messages.form import Message

QUOTES: Mapping[str, str] = {
    "ICC(C,k)": "Quote first: how reliably the reference, the clinicians' mean, ranks responses",
    "ICC(A,k)": "where scores count as points, such as at a threshold; raters are a random sample",
    "ICC(C,1)": "how similarly two clinicians rank responses; the basis for planning more clinicians",
    "ICC(A,1)": "how far the points of one clinician can replace another's",
}
REASONS: Mapping[Code, Message] = {
    Code.RELIABILITY_EXTREME: "there is no residual variance, or responses do not differ at all",
    Code.NO_TRUE_AGREEMENT: "the clinicians' own reliability is not above 0",
    Code.TRUE_FEW: "fewer than {least} responses have the jury and two clinicians with a z",
}
MESSAGES: Mapping[Code, Message] = {
    Code.OPINION_LIMIT: "computed for benchmarks with at most {most} responses: its time grows with their square",
    Code.RELIABILITY_UNEVEN: (
        "k is {raters:z.2f}, the harmonic mean of the clinicians of a response"
    ),
    Code.RELIABILITY_SHARED: (
        "{responses} responses from {instances:instance}: the intervals take them as independent"
    ),
    Code.RELIABILITY_WITHIN: "with each benchmark's own mean taken out, ICC(C,1) {icc:z.3f}",
    Code.TRUE_ABOVE_ONE: "above 1: the clinicians' reliability is uncertain, so read it only as high",
}

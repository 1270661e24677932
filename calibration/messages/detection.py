"""Messages on unsafe responses: where a figure is undefined, and on how few responses it rests."""

from collections.abc import Mapping

from calibration.codes import NoteCode as Code
from calibration.messages.form import Message

REASONS: Mapping[Code, Message] = {}
MESSAGES: Mapping[Code, Message] = {
    Code.NO_UNSAFE: (
        "the clinicians scored no response {threshold:g} or less on {criterion}: sensitivity and "
        "misses are undefined"
    ),
    Code.ALL_UNSAFE: (
        "the clinicians scored every response {threshold:g} or less on {criterion}: specificity and "
        "AUC are undefined"
    ),
    Code.FEW_UNSAFE: "rests on {unsafe:unsafe response}",
    Code.NEVER_LOW: "no score here is {threshold:g} or less: the predictive value is undefined",
    Code.HELD_OUT: (
        "{readings:reading} of {responses:response}, each against the mean of all clinicians but one"
    ),
}

"""Messages on marks: why clinicians' agreement on them, or the jury's difference, is undefined."""

from collections.abc import Mapping

from calibration.codes import NoteCode as Code
from calibration.messages.form import Message

REASONS: Mapping[Code, Message] = {}
MESSAGES: Mapping[Code, Message] = {
    Code.MARKS_READ_ONCE: "agreement of marks undefined: no response was read by two clinicians",
    Code.NONE_MARKED_TWICE_READ: (
        "agreement of marks undefined: none is on a response that two clinicians read"
    ),
    Code.MARKS_WITHOUT_JURY: "difference undefined: the jury has no jurors",
    Code.MARKED_NONE_SCORED: "difference undefined: the jury scored none of the marked responses",
    Code.MARKED_ALL: "difference undefined: the jury scored no response without such a mark",
    Code.MARKED_OUTSIDE: (
        "left out: {responses:response} with a mark that no clinician rated on all criteria"
    ),
    Code.SAME_F1: "F1 has no interval: it is the same in every resample",
}

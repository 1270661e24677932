"""What error analysis finds: groups of responses, examples, and what clinicians said of them."""

from dataclasses import dataclass
from enum import StrEnum

from calibration.notes import Noted
from calibration.values import NAN


class ErrorGroup(StrEnum):
    """Which responses a row counts.

    MARKED, UNMARKED and UNREAD part all rated responses; GRAVE and ERROR are parts of MARKED that
    overlap, since one response may have several errors.
    """

    MARKED = "marked"
    GRAVE = "grave"
    ERROR = "error"
    UNMARKED = "unmarked"
    UNREAD = "unread"


class PickedFor(StrEnum):
    """Why a response is an example: its score, a disagreement, or an error marked in it."""

    LOWEST = "lowest"
    JURY = "jury_apart"
    CLINICIANS = "clinicians_apart"
    ERROR = "error"


@dataclass(frozen=True)
class ErrorRow(Noted):
    """One group of a benchmark's rated responses. NaN: undefined, as notes say.

    Attributes
    ----------
    group, error : which responses; the error type of an ERROR group, else ""
    n_responses, n_instances : responses of the group, and their instances
    n_read : responses that a clinician read where marks can be made
    share, low, high : n_responses to n_read, 0 to 1, with its 95 % interval by Wilson, clustered by
        instance; NaN for UNREAD, which is no part of them
    n_marks, n_grave : marks of the kind, and the critical or major ones among them
    clinicians : mean over the group of the clinicians' mean composite, in points
    n_scored : responses of the group that the jury scored too
    jury : mean of its composite on them
    gap, gap_low, gap_high : mean on them of jury minus clinicians, with its 95 % interval by t
        between instances
    n_twice, spread : responses of the group with composites of two clinicians or more, and the mean
        on them of the largest composite minus the smallest
    n_places, n_shared : places marked so on responses that two clinicians or more read, and those of
        them that two or more marked; see `places`
    """

    benchmark: str
    group: ErrorGroup
    error: str = ""
    n_responses: int = 0
    n_instances: int = 0
    n_read: int = 0
    share: float = NAN
    low: float = NAN
    high: float = NAN
    n_marks: int = 0
    n_grave: int = 0
    clinicians: float = NAN
    n_scored: int = 0
    jury: float = NAN
    gap: float = NAN
    gap_low: float = NAN
    gap_high: float = NAN
    n_twice: int = 0
    spread: float = NAN
    n_places: int = 0
    n_shared: int = 0

    @property
    def key(self) -> str:
        """Return what names it in its benchmark: the group, and after a colon the error type."""
        return f"{self.group.value}:{self.error}"


@dataclass(frozen=True, slots=True)
class PickedResponse:
    """An example, and why it is one.

    Attributes
    ----------
    picked_for, error : the reason; the error type where it is ERROR, else ""
    place : among those picked for that reason, from 1
    clinicians, n_clinicians : their mean composite in points, and of how many
    spread : the largest of their composites minus the smallest; NaN with one clinician
    jury, gap : its composite, and that minus the clinicians'; NaN where it gave none
    errors : the types that were marked in it, in alphabetical order
    is_read : whether a clinician read it where marks can be made
    """

    benchmark: str
    picked_for: PickedFor
    error: str
    place: int
    response_id: str
    instance_id: str
    clinicians: float
    n_clinicians: int
    spread: float
    jury: float
    gap: float
    errors: tuple[str, ...] = ()
    is_read: bool = True


@dataclass(frozen=True)
class BenchmarkErrors:
    """What a benchmark shows of errors, and what is left out of it.

    Attributes
    ----------
    rows, picked : its groups and its examples
    n_in_study, n_rated : its responses, and those with a clinician's composite, which is all that is
        counted here
    n_incomplete : clinicians' readings that lack a criterion, and so a composite
    n_unscored : rated responses without a score of the jury; None without a jury
    n_outside : responses with a mark that are not among the rated ones
    simulated : raters in it that are simulated
    """

    benchmark: str
    rows: tuple[ErrorRow, ...]
    picked: tuple[PickedResponse, ...]
    n_in_study: int
    n_rated: int
    n_incomplete: int
    n_unscored: int | None
    n_outside: int
    simulated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MarkedWords:
    """A stretch that a clinician marked: its words, what is wrong there, and the clinician's note."""

    criterion: str
    error: str
    severity: str
    side: str
    start: int
    end: int
    words: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Comment:
    """What a clinician wrote on a criterion with its score; on the whole: "" and None."""

    criterion: str
    score: float | None
    words: str


@dataclass(frozen=True, slots=True)
class Quote:
    """A clinician's marked words or comment, as they are.

    Attributes
    ----------
    is_mark : else it is a comment
    words, note : verbatim; the note is the clinician's on the mark
    criterion, error, severity, side : of the mark; of a comment the criterion alone, "" on the whole
    """

    is_mark: bool
    words: str
    note: str = ""
    criterion: str = ""
    error: str = ""
    severity: str = ""
    side: str = ""


@dataclass(frozen=True, slots=True)
class Example:
    """A response that was picked, with the one quote of it; None where nobody marked or wrote."""

    picked: PickedResponse
    quote: Quote | None

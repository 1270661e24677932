"""The rating form's messages: all entries for one response, checked before use."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from data.card import Flag, Reply, Severity, Side
from data.store import FormState

LARGEST = 2**31 - 1
LONGEST_COMMENT = 20_000
LONGEST_NOTE = 2_000
LONGEST_REASON = 500
MOST_MARKS = 200
DAY = 24 * 3600
NOT_SAID = {"code", "seq", "base", "attempt", "submit", "scores"}  # of a training answer

Count = Annotated[int, Field(ge=0, le=LARGEST)]
Name = Annotated[str, Field(max_length=64)]
Comment = Annotated[str, Field(max_length=LONGEST_COMMENT)]
STRICT = ConfigDict(frozen=True, strict=True, extra="forbid")


class Mark(BaseModel):
    """A marked stretch as the form sends it; see `data.card.Marked`."""

    model_config = STRICT
    criterion: Name
    start: Count
    end: Count
    error: Name
    note: str = Field(default="", max_length=LONGEST_NOTE)
    side: Side = "response"
    severity: Severity = ""
    linked: Count | None = None


class Message(BaseModel):
    """One message of the form: all that is entered for one response, as draft or to submit.

    Attributes
    ----------
    code, seq, attempt
        Which response; which state of it, as its own page counts; how often that was sent.
    base
        Number of the stored state that the page last knew; None replaces whatever is stored.
    by
        The page that sent it: two pages open on one response tell their drafts apart.
    comment, comments
        On the response as a whole, and by criterion.
    seconds
        Seconds active on this response so far.
    go, reason
        Where the clinician goes from here, this state kept; and why, if they recuse themselves.
    appearance
        Whether the page is light or dark.
    """

    model_config = STRICT
    code: str = Field(max_length=64)
    seq: Count
    base: Count | None = None
    attempt: Count
    by: str = Field(max_length=32)
    scores: dict[Name, int] = Field(max_length=64)
    comment: Comment
    comments: dict[Name, Comment] = Field(default_factory=dict, max_length=64)
    seconds: float = Field(ge=0, le=DAY)
    submit: bool
    spans: list[Mark] = Field(default_factory=list, max_length=MOST_MARKS)
    flags: list[Flag] = Field(default_factory=list, max_length=8)
    go: Literal["", "previous", "next", "recuse"] = ""
    reason: str = Field(default="", max_length=LONGEST_REASON)
    appearance: Literal["light", "dark"] = "light"

    def state(self) -> FormState:
        """Return what is kept of this state for whoever returns to it."""
        stored_fields = {"scores", "comment", "comments", "by", "seq", "spans", "flags"}
        draft: dict[str, Any] = self.model_dump(include=stored_fields)
        return FormState(draft, self.seconds, self.base, self.appearance)

    def reply(self) -> Reply:
        """Return this state as a rater's answer."""
        return self.state().reply()

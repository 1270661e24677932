"""States of a form, as pages send them and as they are stored, and which of two is the newer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from data.card import Marked, Reply
from data.schema import Assignment

LAST_NUMBER = 2**31 - 1  # of a state: the greatest that a column holds


@dataclass(frozen=True, slots=True)
class StoredState:
    """The state of a form that is stored where there is no assignment: what is entered, its number."""

    draft: Mapping[str, Any]
    draft_seq: int


Stored = Assignment | StoredState


@dataclass(frozen=True, slots=True)
class FormState:
    """A state of the form, as a page sends it.

    Attributes
    ----------
    draft
        All that is entered; `by` is the page it was entered in and `seq` that page's own count.
    base
        Number of the stored state that the page last knew, which it means to replace; None
        replaces whatever is stored.
    appearance
        Whether the page is light or dark.
    """

    draft: Mapping[str, Any]
    seconds: float
    base: int | None = None
    appearance: str = "light"

    def reply(self) -> Reply:
        """Return what is entered as a rater's answer, whole or not."""
        entered = self.draft
        spans = tuple(Marked(**span) for span in entered.get("spans", ()))
        comments, flags = entered.get("comments", {}), tuple(entered.get("flags", ()))
        return Reply(entered.get("scores", {}), comments, entered.get("comment", ""), spans, flags)

    def follows(self, stored: Stored) -> bool:
        """Tell whether nobody else has changed what is stored since this page knew it."""
        return self.base in (None, stored.draft_seq) or self._is_of_same_page(stored)

    def known(self, stored: Stored) -> bool:
        """Tell whether this state, or a newer one of this page, is stored already.

        What was entered upon the very state that is stored is newer than it, however it counts.
        """
        counted = self.draft["seq"] <= stored.draft.get("seq", 0)
        return counted and self._is_of_same_page(stored) and self.base != stored.draft_seq

    def submitted(self, assignment: Assignment) -> bool:
        """Tell whether this very submission, or a newer state after one, is stored already."""
        is_last = self.draft["seq"] == assignment.draft.get("seq", 0)
        return (
            bool(assignment.revision)
            and self.known(assignment)
            and (assignment.submitted_seq == assignment.draft_seq or not is_last)
        )

    def _is_of_same_page(self, stored: Stored) -> bool:
        return bool(self.draft["by"]) and stored.draft.get("by") == self.draft["by"]


def next_number(number: int) -> int:
    """Return the number of the state after this one; after the last that there is, the first."""
    return number + 1 if number < LAST_NUMBER else 1

"""The only package that writes to a study; each public function is one transaction."""

from data.store.assignments import Slot, assign, save_draft, submit
from data.store.attempts import AttemptRecord, add_jurors, record_attempt
from data.store.people import Invitation, invite, renew
from data.store.ratings import RatingsAdded, import_ratings
from data.store.responses import ResponsesAdded, import_responses
from data.store.rubrics import add_rubric

__all__ = [
    "AttemptRecord",
    "Invitation",
    "RatingsAdded",
    "ResponsesAdded",
    "Slot",
    "add_jurors",
    "add_rubric",
    "assign",
    "import_ratings",
    "import_responses",
    "invite",
    "record_attempt",
    "renew",
    "save_draft",
    "submit",
]

"""The only package that writes to a study; each public function is one transaction."""

from data.store.assignments import Slot, assign, claim, opened, recuse
from data.store.attempts import AttemptRecord, add_jurors, record_attempt
from data.store.people import Invitation, invite, renew
from data.store.ratings import RatingsAdded, import_ratings
from data.store.responses import ResponsesAdded, import_responses
from data.store.rubrics import add_rubric
from data.store.submissions import save_draft, submit

__all__ = [
    "AttemptRecord",
    "Invitation",
    "RatingsAdded",
    "ResponsesAdded",
    "Slot",
    "add_jurors",
    "add_rubric",
    "assign",
    "claim",
    "import_ratings",
    "import_responses",
    "invite",
    "opened",
    "record_attempt",
    "recuse",
    "renew",
    "save_draft",
    "submit",
]

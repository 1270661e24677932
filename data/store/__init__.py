"""The only package that writes to a study's database; each public function is one transaction."""

from data.store.access import Entered, Way, enter, enter_by_email, leave
from data.store.assignments import (
    Slot,
    assign,
    assign_adjudication,
    claim,
    give_adjudication,
    opened,
    recuse,
)
from data.store.calls import record_attempts
from data.store.flags import answer_flag, answer_seen
from data.store.form_state import FormState
from data.store.people import Invitation, add_people, end_access, invite, renew, renew_access
from data.store.ratings import RatingsAdded, import_ratings
from data.store.responses import ResponsesAdded, import_responses
from data.store.rubrics import add_rubric
from data.store.study import describe, give_consent
from data.store.submissions import save_draft, submit

"""The only package that reads a study's database. What serves raters never reads Authorship."""

from data.person import Person
from data.queries.descriptions import Consent, DescriptionVersion, description
from data.queries.flags import Answered, Flagged, answers_for, flags
from data.queries.jury import complete_ratings, juror_cards
from data.queries.ledger import juries_tried, withdrawn_reports
from data.queries.people import (
    CodeCheck,
    CodeOutcome,
    PersonView,
    Workload,
    check_code,
    finished_showings,
    has_coordinator,
    is_opening,
    names_of_actors,
    opening_of,
    people,
    person,
    person_by_access,
    person_by_email,
    session_state,
    workloads,
)
from data.queries.rating_room import (
    NextTask,
    Progress,
    RoomState,
    Situation,
    Task,
    next_task,
    rated_codes,
    room_state,
    situation,
    task,
)
from data.queries.steering import (
    Material,
    StudyStanding,
    checked_record,
    materials,
    readings_by_response,
    response_names,
    rubric_names,
    rubric_of_name,
    standing,
    study_consents,
    study_descriptions,
    study_settings,
    who_can_rate,
)
from data.queries.study import (
    BenchmarkView,
    ReferencePair,
    assigned,
    benchmarks,
    design_items,
    pairs,
    showings,
    simulated_raters,
    stored_rubric,
)
from data.queries.validation import (
    JuryValidation,
    RatingCounts,
    StudyRubric,
    frozen_reports,
    jurors_with_ratings,
    study_rubrics,
    validations,
)

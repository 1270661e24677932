"""The tables of a study.

Only `data.store` writes them and only `data.queries` reads them. Who wrote a
response stands in a table of its own, Authorship, which nothing that serves
raters ever reads.
"""

from data.schema.base import Table, now
from data.schema.jury import Attempt, Status
from data.schema.ledger import Composition
from data.schema.material import (
    Authorship,
    Benchmark,
    Instance,
    Mask,
    Response,
    RubricText,
    Subgroup,
)
from data.schema.people import Access, Account, Kind, Rater, Role
from data.schema.rating import Assignment, Drill, Expert, Rating, Remark, Span, State
from data.schema.record import Event, Report, Setting
from data.schema.references import ReferenceCheck

__all__ = [
    "Access",
    "Account",
    "Assignment",
    "Attempt",
    "Authorship",
    "Benchmark",
    "Composition",
    "Drill",
    "Event",
    "Expert",
    "Instance",
    "Kind",
    "Mask",
    "Rater",
    "Rating",
    "ReferenceCheck",
    "Remark",
    "Report",
    "Response",
    "Role",
    "RubricText",
    "Setting",
    "Span",
    "State",
    "Status",
    "Subgroup",
    "Table",
    "now",
]

"""The tables of a study.

Only `data.study` writes and reads them. Who wrote a
response stands in a table of its own, Authorship, which nothing that serves
raters ever reads.
"""

from data.calls import Status
from data.schema.jury import Attempt, Intent, Purpose
from data.schema.learning import Improvement
from data.schema.points import IS_RATED_ON, RATED_ON, PointSet
from data.schema.study import (
    ANSWER,
    SEEN,
    Access,
    Account,
    Assignment,
    Authorship,
    Benchmark,
    Composition,
    Drill,
    Event,
    Expert,
    Instance,
    Kind,
    Mask,
    Rater,
    Rating,
    Remark,
    Report,
    Response,
    Review,
    ReviewKind,
    Role,
    RubricText,
    Setting,
    Span,
    State,
    StudyText,
    Subgroup,
    Submission,
    Table,
    Withdrawal,
    now,
)

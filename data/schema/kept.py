"""The table of answers that screens keep: figures alone, outside the record and every package.

It has a `MetaData` of its own, so that what copies, exports, seals or checks a study never sees it.
Whoever empties it loses seconds.
"""

from sqlalchemy import Column, DateTime, LargeBinary, MetaData, String, Table

from data.schema.study import NAMING

KEPT = MetaData(naming_convention=NAMING)
ANSWERS = Table(
    "kept_answer",
    KEPT,
    Column("question", String(64), primary_key=True),  # digest of what was asked, and of what
    Column("state", String(64), nullable=False),  # of the study: `queries.study_state`
    Column("at", DateTime(timezone=True), nullable=False),
    Column("body", LargeBinary, nullable=False),
)

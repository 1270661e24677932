"""The table of what juries learn from clinicians, with the split that is kept."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Column
from sqlmodel import Field

from data.schema.study import Table, now


class Improvement(Table, table=True):
    """One attempt to have a jury agree better with the clinicians, and what came of it.

    `rubric_sha256` is the rubric that clinicians rated on, `asked` what was asked for: the panel's name
    and jurors, and the options. `split` has the instances, primary keys, of the parts `train`,
    `choose` and `test`; it is never changed. `opened` is when the juries' scores on the test part
    were first looked at, None before. `learned` is the rubric that came of it, None where none was
    better; `result` the figures, empty until the end.
    """

    id: int = Field(default=None, primary_key=True)  # None until it is stored
    at: datetime = Field(default_factory=now)
    rubric_sha256: str = Field(foreign_key="rubric.sha256")
    asked: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    split: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    opened: datetime | None = None
    learned: str | None = Field(default=None, foreign_key="rubric.sha256")
    result: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))

"""What every piece of a panel's file is."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(pattern=r"^[\w.-]+$", max_length=64)]


class Part(BaseModel):
    """A piece of a panel: immutable, with no key that we do not know and no value bent to fit."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)

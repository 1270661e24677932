"""Reporting guidelines: their items in our own words, and which evidence of a study answers each.

A guideline is a TOML file beside this one.
"""

import tomllib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Annotated

from pydantic import Field, TypeAdapter

from data.errors import Unknown
from data.safe_text import short

GUIDELINES = ("tripod-llm", "grras")


class EvidenceCode(StrEnum):
    """What of a study can answer an item; `medjury.services.dossier` computes each once."""

    AGREEMENT = "agreement"
    ALLOCATION = "allocation"
    BLINDING = "blinding"
    CLINICIANS = "clinicians"
    CLINICIAN_AGREEMENT = "clinician_agreement"
    COSTS = "costs"
    DECISION = "decision"
    DESCRIPTION = "description"
    DETECTION = "detection"
    IMPROVEMENT = "improvement"
    INFERENCE = "inference"
    JURORS = "jurors"
    JUROR_SETTINGS = "juror_settings"
    LIKE_FOR_LIKE = "like_for_like"
    METRICS = "metrics"
    MISSING = "missing"
    PRESPECIFIED = "prespecified"
    PROTOCOL = "protocol"
    READINGS = "readings"
    RECORD = "record"
    RESPONSES = "responses"
    RUBRICS = "rubrics"
    SOFTWARE = "software"
    TABLE = "table"
    TRAINING = "training"


@dataclass(frozen=True, slots=True)
class GuidelineItem:
    """One item of a guideline.

    Attributes
    ----------
    number
        As the guideline numbers it.
    about
        What is to be reported, in our own words.
    evidence
        What of a study answers it; all of it must be there for the item to be done.
    by_authors
        Whether it takes words of the study's authors, since the study alone cannot answer it.
    """

    number: str
    section: str
    about: str
    evidence: tuple[EvidenceCode, ...] = ()
    by_authors: bool = False


@dataclass(frozen=True, slots=True)
class Guideline:
    """A reporting guideline.

    Attributes
    ----------
    source
        Where it was published.
    note
        What of its numbers and topics could not be checked, and how it is read here.
    """

    name: str
    title: str
    version: str
    source: str
    note: str
    items: Annotated[tuple[GuidelineItem, ...], Field(validation_alias="item")]


@cache
def guideline(name: str) -> Guideline:
    """Return one of `GUIDELINES`.

    Raises
    ------
    Unknown
        If there is no such guideline.
    """
    if name not in GUIDELINES:
        raise Unknown(f"guideline {short(name)}: choose from {', '.join(GUIDELINES)}")
    file = files(__name__) / f"{name.replace('-', '_')}.toml"
    return TypeAdapter(Guideline).validate_python(
        tomllib.loads(file.read_text("utf-8")) | {"name": name}
    )

"""Reporting guidelines: their items in our own words, and which evidence of a study answers each.

A guideline is a TOML file beside this one; `questions.toml` has what only people can answer, by a
name that guidelines share, so that funding is asked once.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from data.errors import BadFile, BadInput, Unknown
from data.files import read_user_toml
from data.safe_text import short

GUIDELINES = ("tripod-llm", "grras", "chai", "nist")
QUESTIONS = "questions"
LONGEST_ANSWER = 4000
NOT_APPLICABLE = "does not apply:"  # how an answer begins in a file that says so


class AnswerKind(StrEnum):
    """What people say to a question: an answer, that it does not apply and why, or nothing any more."""

    ANSWER = "answer"
    NOT_APPLICABLE = "not_applicable"
    WITHDRAWN = "withdrawn"


class EvidenceCode(StrEnum):
    """What of a study can answer an item; `medjury.services.evidence` computes each once."""

    AGREEMENT = "agreement"
    ALLOCATION = "allocation"
    BLINDING = "blinding"
    CLINICIANS = "clinicians"
    CLINICIAN_AGREEMENT = "clinician_agreement"
    CONSENT = "consent"
    COSTS = "costs"
    DECISION = "decision"
    DESCRIPTION = "description"
    DETECTION = "detection"
    IMPROVEMENT = "improvement"
    INFERENCE = "inference"
    JURORS = "jurors"
    JUROR_SETTINGS = "juror_settings"
    LEDGER = "ledger"
    LIKE_FOR_LIKE = "like_for_like"
    METRICS = "metrics"
    MISSING = "missing"
    MONITORING = "monitoring"
    NON_INFERIORITY = "non_inferiority"
    PRESPECIFIED = "prespecified"
    PROTOCOL = "protocol"
    READINGS = "readings"
    RECORD = "record"
    REPEATS = "repeats"
    RESPONSES = "responses"
    RUBRICS = "rubrics"
    SOFTWARE = "software"
    SUBGROUPS = "subgroups"
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
    ask
        Name of the question that people answer, "" where the study answers alone.
    """

    number: str
    section: str
    about: str
    evidence: tuple[EvidenceCode, ...] = ()
    ask: str = ""


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
    items: tuple[GuidelineItem, ...]

    @property
    def asks(self) -> tuple[str, ...]:
        """Return the names of its questions to people, each once, in the order of the items."""
        return tuple(dict.fromkeys(item.ask for item in self.items if item.ask))


@dataclass(frozen=True, slots=True)
class Answer:
    """What people say to a question: the text, or why it does not apply."""

    text: str
    kind: AnswerKind = AnswerKind.ANSWER


def guideline(name: str) -> Guideline:
    """Return one of `GUIDELINES`.

    Raises
    ------
    Unknown
        If there is no such guideline.
    """
    if name not in GUIDELINES:
        raise Unknown(f"guideline {short(name)}: choose from {', '.join(GUIDELINES)}")
    return _guideline(name)


@cache
def _guideline(name: str) -> Guideline:
    body = _body(name.replace("-", "_"))
    items = tuple(
        GuidelineItem(
            **item | {"evidence": tuple(EvidenceCode(code) for code in item.get("evidence", ()))}
        )
        for item in body.pop("item")
    )
    return Guideline(name=name, items=items, **body)


@cache
def questions() -> Mapping[str, str]:
    """Return every question that people are asked, by its name."""
    return dict(_body(QUESTIONS))


def read_answers(path: Path) -> dict[str, Answer]:
    """Read answers from a TOML file: the name of a question = "the answer".

    One that begins with `does not apply:` says why; an empty one withdraws the answer there was.

    Raises
    ------
    BadFile
        If the file cannot be read, or has no answer.
    BadInput, Unknown
        If something in it is no question's name, or no text.
    """
    body = read_user_toml(path, f"{path}")
    if not body:
        raise BadFile(f'{path}: has no answer; write a line such as funding = "..."')
    for name, text in body.items():
        if not isinstance(text, str):
            raise BadInput(f"{path}: {short(name)}: must be a text in quotes; nothing was stored")
    return {name: answer_of(text) for name, text in body.items()}


def answer_of(text: str) -> Answer:
    """Return what a text says: an answer, that the question does not apply, or nothing."""
    stripped = text.strip()
    if not stripped:
        return Answer("", AnswerKind.WITHDRAWN)
    if stripped.lower().startswith(NOT_APPLICABLE):
        return Answer(stripped[len(NOT_APPLICABLE) :].strip(), AnswerKind.NOT_APPLICABLE)
    return Answer(stripped)


def _body(name: str) -> dict[str, Any]:
    text = (files(__name__) / f"{name}.toml").read_text("utf-8")
    return tomllib.loads(text)

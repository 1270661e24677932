"""What an exported jury is told: its rubric, its jurors and where it comes from, out of one file.

Pure: this module travels with the exports.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.question import scale_text
from jury.call import Form

FORMAT, FORMAT_VERSION = "medjury-jury", 1


@dataclass(frozen=True, slots=True)
class ExportedScale:
    """Whole-number points from min to max, both included."""

    min: int
    max: int

    @property
    def points(self) -> range:
        """All points of the scale."""
        return range(self.min, self.max + 1)

    def __str__(self) -> str:
        return scale_text(self.min, self.max)


@dataclass(frozen=True, slots=True)
class ExportedCriterion:
    """One thing to rate."""

    name: str
    question: str
    anchors: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class ExportedRubric:
    """A rubric as far as a juror is asked with it; `body` is all of it, `sha256` its hash."""

    name: str
    prompt: str
    scale: ExportedScale
    criterion: tuple[ExportedCriterion, ...]
    body: Mapping[str, Any]
    sha256: str

    @property
    def criteria(self) -> tuple[str, ...]:
        """Names of the criteria, in the order they are rated."""
        return tuple(one.name for one in self.criterion)


@dataclass(frozen=True, slots=True)
class ExportedJuror:
    """How a juror is asked; the name of its key's variable, never the key.

    Attributes
    ----------
    forms
        The forms of answer its endpoint may know, in the order in which they are tried.
    own
        Whether the host is OpenAI's own, which is told to keep no text.
    profile
        What the study knows the juror by.
    """

    name: str
    family: str
    provider: str
    model: str
    base_url: str
    api_key_env: str
    temperature: float | None
    max_tokens: int
    effort: str | None
    forms: tuple[Form, ...]
    own: bool
    profile: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JurySettings:
    """A jury with its rubric; `study` is the hash of the record's first event, "" if there is none."""

    rubric: ExportedRubric
    jurors: tuple[ExportedJuror, ...]
    status: str
    study: str

    def origin(self) -> dict[str, Any]:
        """Return the ids that travel with every verdict, so that it can rejoin its study."""
        rubric = {"rubric": self.rubric.name, "rubric_sha256": self.rubric.sha256}
        return {"format": FORMAT, "format_version": FORMAT_VERSION, "study": self.study, **rubric}


def read_settings(path: Path) -> JurySettings:
    """Read the file that an export wrote."""
    told = json.loads(path.read_text("utf-8"))
    jurors = tuple(ExportedJuror(**one | {"forms": tuple(one["forms"])}) for one in told["jurors"])
    rubric = rubric_of(told["rubric"], told["rubric_sha256"])
    return JurySettings(rubric, jurors, told["status"], told["study"])


def rubric_of(body: Mapping[str, Any], sha256: str) -> ExportedRubric:
    """Return a rubric out of its canonical JSON."""
    criteria = tuple(
        ExportedCriterion(
            one["name"],
            one["question"],
            {int(point): words for point, words in one["anchors"].items()},
        )
        for one in body["criterion"]
    )
    scale = ExportedScale(body["scale"]["min"], body["scale"]["max"])
    return ExportedRubric(body["name"], body["prompt"], scale, criteria, body, sha256)

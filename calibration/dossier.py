"""A dossier: the items of a reporting guideline, each with what of the study answers it."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from calibration.decision import Decision
from calibration.json_values import decision_json, json_value
from data.guidelines import EvidenceCode, Guideline, GuidelineItem

if TYPE_CHECKING:
    from calibration.tables.spec import Table

REPS = 2000


class ItemStatus(StrEnum):
    """How far an item is answered; AUTHORS is one that only the study's authors can answer."""

    DONE = "done"
    PARTLY = "partly"
    NOT_DONE = "not_done"
    AUTHORS = "authors"


class EvidenceKind(StrEnum):
    """What answers an item."""

    FIGURE = "figure"
    HASH = "hash"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that answers an item.

    Attributes
    ----------
    name
        What it is a figure or hash of; `calibration.dossier_words` has its words.
    of
        Whom or what it is about: a juror or a rubric; "" where it is the study.
    value, low, high
        A figure with its 95 % interval where it has one; None where it is undefined.
    text
        A date, a word, or the SHA-256.
    """

    kind: EvidenceKind
    name: str
    of: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    text: str = ""


def figure(
    name: str,
    value: float,
    of: str = "",
    low: float | None = None,
    high: float | None = None,
) -> Evidence:
    """Return a figure as evidence; what is not finite is undefined."""
    return Evidence(EvidenceKind.FIGURE, name, of, _known(value), _known(low), _known(high))


def word(name: str, text: str, of: str = "") -> Evidence:
    """Return a date or a word as evidence."""
    return Evidence(EvidenceKind.FIGURE, name, of, text=text)


def hashed(name: str, sha256: str, of: str = "") -> Evidence:
    """Return the SHA-256 of something as evidence."""
    return Evidence(EvidenceKind.HASH, name, of, text=sha256)


def _known(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class DossierItem:
    """An item with its status; `missing` is the evidence that the study lacks."""

    item: GuidelineItem
    status: ItemStatus
    evidence: tuple[Evidence, ...] = ()
    missing: tuple[EvidenceCode, ...] = ()


@dataclass(frozen=True)
class Dossier:
    """A guideline filled in from a study.

    Attributes
    ----------
    decision
        What the study may say of its jury.
    simulated
        Raters behind whom nobody stands: with any, no evidence makes an item done.
    blind
        Whether the study was blind when it was made.
    made
        When, as text in UTC.
    record
        SHA-256 of the last event of the record.
    methods
        Heading -> paragraph of a methods section; none where no clinician has rated.
    table
        The agreement table, None where no clinician has rated.
    warnings
        What went wrong without touching a figure.
    """

    guideline: Guideline
    items: tuple[DossierItem, ...]
    decision: Decision
    simulated: tuple[str, ...]
    blind: bool
    made: str
    record: str
    methods: Mapping[str, str]
    table: "Table | None" = None
    warnings: tuple[str, ...] = ()

    def count(self, status: ItemStatus) -> int:
        """Return how many items have a status."""
        return sum(item.status is status for item in self.items)


@dataclass(frozen=True, slots=True)
class DossierQuestion:
    """Which of `data.guidelines.GUIDELINES` to fill in, and with how many resamples."""

    guideline: str
    reps: int = REPS


def dossier_items(
    items: Sequence[GuidelineItem],
    evidence: Mapping[EvidenceCode, tuple[Evidence, ...]],
    simulated: Collection[str] = (),
) -> tuple[DossierItem, ...]:
    """Return each item with what answers it.

    Parameters
    ----------
    items
        Of a guideline.
    evidence
        What the study has; a code that is absent, or has nothing, is missing.
    simulated
        Raters behind whom nobody stands.
    """
    return tuple(_filled(item, evidence, bool(simulated)) for item in items)


def _filled(
    item: GuidelineItem, evidence: Mapping[EvidenceCode, tuple[Evidence, ...]], simulated: bool
) -> DossierItem:
    missing = tuple(code for code in item.evidence if not evidence.get(code))
    found = tuple(one for code in item.evidence for one in evidence.get(code, ()))
    return DossierItem(item, item_status(item, missing, simulated=simulated), found, missing)


def item_status(
    item: GuidelineItem, missing: Collection[EvidenceCode], *, simulated: bool = False
) -> ItemStatus:
    """Return how far an item is answered.

    Without any of its evidence it is not done; with some of it, or where authors must add to it,
    it is partly done. Evidence of a study with simulated raters never makes it done.
    """
    if not item.evidence:
        return ItemStatus.AUTHORS
    if len(missing) == len(item.evidence):
        return ItemStatus.NOT_DONE
    complete = not missing and not item.by_authors and not simulated
    return ItemStatus.DONE if complete else ItemStatus.PARTLY


def to_json(dossier: Dossier) -> dict[str, Any]:
    """Return a dossier as `share dossier --json` has it."""
    guideline = dossier.guideline
    return {
        "guideline": guideline.name,
        "title": guideline.title,
        "version": guideline.version,
        "source": guideline.source,
        "note": guideline.note,
        "made": dossier.made,
        "record": dossier.record,
        "blind": dossier.blind,
        "simulated": list(dossier.simulated),
        "decision": decision_json(dossier.decision),
        "counts": {status.value: dossier.count(status) for status in ItemStatus},
        "items": [_item_json(item) for item in dossier.items],
    }


def _item_json(filled: DossierItem) -> dict[str, Any]:
    item = filled.item
    return {
        "number": item.number,
        "section": item.section,
        "about": item.about,
        "status": filled.status.value,
        "evidence": [_evidence_json(one) for one in filled.evidence],
        "missing": [code.value for code in filled.missing],
        "by_authors": item.by_authors,
    }


def _evidence_json(one: Evidence) -> dict[str, Any]:
    whole: dict[str, Any] = json_value(one)
    figure = one.kind is EvidenceKind.FIGURE and not one.text
    kept = ("kind", "name", *(("value",) if figure else ()))
    return {name: value for name, value in whole.items() if name in kept or value not in (None, "")}

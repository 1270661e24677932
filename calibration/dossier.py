"""A dossier: the items of a reporting guideline, each with what of the study answers it, in words.

It is written as Markdown, and as an HTML page that prints.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING, Any

from calibration.decision import Decision
from calibration.json_values import decision_json
from calibration.notes import listed
from data.guidelines import EvidenceCode, Guideline, GuidelineItem
from data.safe_text import in_markdown

if TYPE_CHECKING:
    from calibration.tables.spec import Table

BLIND = "The study was blind when this was made: nothing here tells who wrote which response."
UNBLINDED = "The study had been unblinded when this was made."


class ItemStatus(StrEnum):
    """How far an item is answered; AUTHORS is one that only the study's authors can answer."""

    DONE = "done"
    PARTLY = "partly"
    NOT_DONE = "not_done"
    AUTHORS = "authors"


STATUS = {
    ItemStatus.DONE: "Done",
    ItemStatus.PARTLY: "Partly done",
    ItemStatus.NOT_DONE: "Not done",
    ItemStatus.AUTHORS: "To be filled in by the authors",
}
SIMULATED = "SIMULATED: nothing here is evidence"
SIMULATED_WHY = (
    "Nobody stands behind {}. Figures that rest on them show how the tool works, and no more; no "
    "item is done by them."
)


@dataclass(frozen=True, slots=True)
class DossierItem:
    """An item with its status, a line for each thing that answers it, and the codes of what lacks."""

    item: GuidelineItem
    status: ItemStatus
    evidence: tuple[str, ...] = ()
    missing: tuple[EvidenceCode, ...] = ()


@dataclass(frozen=True)
class Dossier:
    """A guideline filled in from a study.

    Attributes
    ----------
    decision : what the study may say of its jury
    simulated : raters behind whom nobody stands: with any, no evidence makes an item done
    blind, made, record : whether the study was blind when it was made, when (UTC), and the SHA-256
        of the record's last event
    methods, table : heading -> paragraph of a methods section, and the agreement table; empty and
        None where no clinician has rated
    warnings : what went wrong without touching a figure
    """

    guideline: Guideline
    items: tuple[DossierItem, ...]
    decision: Decision
    simulated: tuple[str, ...]
    blind: bool
    made: str
    record: str
    methods: Mapping[str, str] = field(default_factory=dict)
    table: "Table | None" = None
    warnings: tuple[str, ...] = ()


def dossier_items(
    items: Sequence[GuidelineItem],
    evidence: Mapping[EvidenceCode, Sequence[str]],
    simulated: Collection[str] = (),
) -> tuple[DossierItem, ...]:
    """Return each item with what answers it.

    Without any of its evidence an item is not done; with some of it, or where authors must add to
    it, it is partly done. Evidence of a study with simulated raters never makes it done.

    `evidence` is what the study has, in lines; a code that is absent, or has nothing, is missing.
    """
    filled = []
    for item in items:
        missing = tuple(code for code in item.evidence if not evidence.get(code))
        found = tuple(one for code in item.evidence for one in evidence.get(code, ()))
        if not item.evidence:
            status = ItemStatus.AUTHORS
        elif len(missing) == len(item.evidence):
            status = ItemStatus.NOT_DONE
        else:
            is_partly = missing or item.by_authors or simulated
            status = ItemStatus.PARTLY if is_partly else ItemStatus.DONE
        filled.append(DossierItem(item, status, found, missing))
    return tuple(filled)


def to_json(dossier: Dossier) -> dict[str, Any]:
    """Return a dossier as `share dossier --json` has it."""
    guideline, counts = dossier.guideline, Counter(item.status for item in dossier.items)
    return {
        "guideline": guideline.name,
        **{name: getattr(guideline, name) for name in ("title", "version", "source", "note")},
        "made": dossier.made,
        "record": dossier.record,
        "blind": dossier.blind,
        "simulated": list(dossier.simulated),
        "decision": decision_json(dossier.decision),
        "counts": {status.value: counts[status] for status in ItemStatus},
        "items": [
            {
                **{name: getattr(filled.item, name) for name in ("number", "section", "about")},
                "status": filled.status.value,
                "evidence": [*filled.evidence],
                "missing": [code.value for code in filled.missing],
                "by_authors": filled.item.by_authors,
            }
            for filled in dossier.items
        ],
    }


def dossier_html(dossier: Dossier) -> str:
    """Return a dossier as a page of its own; it asks no other place for anything."""
    from markdown_it import MarkdownIt

    from calibration.writers import html_page, html_table

    render = MarkdownIt("commonmark", {"html": False}).render
    name = f"{'SIMULATED. ' if dossier.simulated else ''}{dossier.guideline.title} dossier"
    table = html_table(dossier.table) if dossier.table else ""
    results = f"<h2>Results{_mark(dossier)}</h2>{table}" if table else ""
    first, items = ("\n\n".join(part(dossier)) for part in (_front, _items))
    return html_page(name, render(first) + results + render(items))


def dossier_markdown(dossier: Dossier) -> str:
    """Return a dossier as Markdown, a heading an item; what is simulated is said at every heading."""
    from calibration.writers import markdown

    table = dossier.table
    results = [f"## Results{_mark(dossier)}", markdown(table).rstrip()] if table else []
    return "\n\n".join([*_front(dossier), *results, *_items(dossier)]) + "\n"


def decision_lines(dossier: Dossier) -> list[str]:
    """Return the decision on the jury, why, and on what it rests: alike whether it is for or against."""
    decision = dossier.decision
    return [decision.headline, *decision.sentences, *([decision.on] if decision.basis else [])]


def head_lines(dossier: Dossier) -> list[str]:
    """Return what every dossier says first: of what, when, how much is done, and what is simulated."""
    found = Counter(item.status for item in dossier.items)
    counts = ", ".join(f"{found[one]} {STATUS[one].lower()}" for one in ItemStatus if found[one])
    lines = [
        f"{dossier.guideline.title}, {dossier.guideline.version}. Made {dossier.made}, at event "
        f"{dossier.record[:12]} of the record.",
        f"Of {len(dossier.items)} items: {counts}.",
        BLIND if dossier.blind else UNBLINDED,
    ]
    if dossier.simulated:
        lines.insert(0, f"{SIMULATED}. {SIMULATED_WHY.format(listed(dossier.simulated))}")
    return lines


def _mark(dossier: Dossier) -> str:
    return f" ({SIMULATED})" if dossier.simulated else ""


def _front(dossier: Dossier) -> Iterator[str]:
    """Yield what stands before the results: the decision, where the items come from, the methods."""
    mark, guideline = _mark(dossier), dossier.guideline
    yield f"# {in_markdown(guideline.title)} dossier{mark}"
    yield from map(in_markdown, head_lines(dossier))
    headline, *others = map(in_markdown, decision_lines(dossier))
    yield from (f"**{headline}**", *others)
    yield in_markdown(f"Items after: {guideline.source.rstrip('.')}. The words are ours.")
    yield in_markdown(guideline.note)
    for heading, paragraph in dossier.methods.items():
        yield from (f"## {heading}{mark}", in_markdown(paragraph))


def _items(dossier: Dossier) -> Iterator[str]:
    mark = _mark(dossier)
    for section, items in groupby(dossier.items, lambda one: one.item.section):
        yield f"## {in_markdown(section)}{mark}"
        for filled in items:
            yield f"### {in_markdown(filled.item.number)} {in_markdown(filled.item.about)}"
            yield f"**{STATUS[filled.status]}**{mark}"
            lines = [*filled.evidence]
            if absent := ", ".join(code.value.replace("_", " ") for code in filled.missing):
                lines.append(f"This study has nothing on: {absent}")
            if filled.item.by_authors and filled.status is not ItemStatus.AUTHORS:
                lines.append("The authors must add to this")
            if lines:
                yield "\n".join(f"- {in_markdown(line)}" for line in lines)

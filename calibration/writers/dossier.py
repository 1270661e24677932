"""A dossier as Markdown, and as an HTML page that prints."""

from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from markdown_it import MarkdownIt

from calibration.dossier import (
    MISSING,
    SIMULATED,
    SIMULATED_WHY,
    STATUS,
    Dossier,
    DossierItem,
    ItemStatus,
    evidence_words,
)
from calibration.notes import listed
from calibration.writers.agreement_table import table_markdown
from calibration.writers.html import REPORT, html_page, html_table
from data.safe_text import in_markdown

BLIND = "The study was blind when this was made: nothing here tells who wrote which response."
UNBLINDED = "The study had been unblinded when this was made."


def dossier_html(dossier: Dossier) -> str:
    """Return a dossier as a page of its own; it asks no other place for anything."""
    render = MarkdownIt("commonmark", {"html": False}).render
    name = f"{'SIMULATED. ' if dossier.simulated else ''}{dossier.guideline.title} dossier"
    table = html_table(dossier.table, REPORT) if dossier.table else ""
    results = f"<h2>Results{_mark(dossier)}</h2>{table}" if table else ""
    first, items = ("\n\n".join(part(dossier)) for part in (_front, _items))
    return html_page(name, render(first) + results + render(items))


def dossier_markdown(dossier: Dossier) -> str:
    """Return a dossier as Markdown, a heading an item; what is simulated is said at every heading."""
    table = dossier.table
    results = [f"## Results{_mark(dossier)}", table_markdown(table).rstrip()] if table else []
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
            if lines := [f"- {in_markdown(line)}" for line in _item_lines(filled)]:
                yield "\n".join(lines)


def _item_lines(item: DossierItem) -> Iterator[str]:
    """Yield what answers an item, what it lacks, and what its authors must add, as lines."""
    yield from map(evidence_words, item.evidence)
    yield from (f"Not done: {MISSING[code]}" for code in item.missing)
    if item.item.by_authors and item.status is not ItemStatus.AUTHORS:
        yield "The authors must add to this"

"""A dossier as an HTML page that prints, and as Markdown."""

import base64
import hashlib
import html
from collections.abc import Iterator
from itertools import groupby

from calibration.dossier import Dossier, DossierItem, ItemStatus
from calibration.dossier_words import (
    MISSING,
    SIMULATED,
    SIMULATED_WHY,
    STATUS,
    counts_words,
    evidence_words,
)
from calibration.notes import listed
from calibration.writers.agreement_table import table_markdown
from calibration.writers.html import REPORT, html_table
from data.safe_text import in_markdown

BLIND = "The study was blind when this was made: nothing here tells who wrote which response."
UNBLINDED = "The study had been unblinded when this was made."
STYLE = """
:root { color-scheme: light dark; --ink: #1c2126; --soft: #4d5761; --line: #c9d0d6; --back: #fff;
  --done: #176639; --partly: #7a4a00; --open: #a01c28; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ecef; --soft: #aab4bd; --line: #414a52;
  --back: #14181c; --done: #7fd6a2; --partly: #f0c060; --open: #ff9aa2; } }
body { margin: 0; background: var(--back); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.1rem; margin: 2rem 0 .25rem; }
p { margin: .4rem 0; } .soft { color: var(--soft); font-size: .9rem; }
.simulated { background: #a01c28; color: #fff; font-weight: 700; padding: .4rem 1rem;
  text-align: center; }
.answer { border-left: 4px solid var(--ink); padding-left: .9rem; margin: 1rem 0; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .55rem .6rem .55rem 0;
  border-top: 1px solid var(--line); overflow-wrap: anywhere; }
.items th[scope=row] { width: 7rem; font-weight: 600; } .what { width: 36%; }
.scroll { overflow-x: auto; } .scroll td:not(.words) { white-space: nowrap; }
caption { text-align: left; padding: .2rem 0; } .notes { color: var(--soft); font-size: .9rem; }
.status { font-weight: 600; } .done { color: var(--done); } .partly { color: var(--partly); }
.not_done, .authors { color: var(--open); }
ul { margin: .2rem 0; padding-left: 1.1rem; } li { margin: .1rem 0; }
thead .mark { display: none; } /* printed at the head of each page, since a table's head is repeated there */
@media (max-width: 44rem) { .what { width: auto; }
  .items th[scope=row] { width: 4.5rem; } }
@media print { :root { color-scheme: light; --ink: #000; --soft: #333; --line: #999; --back: #fff;
  --done: #000; --partly: #000; --open: #000; }
  html { font-size: 10pt; } main { max-width: none; padding: 0; }
  .simulated { color: #000; background: #fff; border: 2px solid #000; }
  thead .mark { display: table-row; } .items th[scope=row] { width: 4rem; }
  tr { break-inside: avoid; } h2 { break-after: avoid; } }
@page { margin: 2cm 1.6cm; }
"""
STYLE_HASH = "sha256-" + base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()


def dossier_html(dossier: Dossier) -> str:
    """Return a dossier as a page of its own; it asks no other place for anything."""
    guideline = dossier.guideline
    mark = f'<div class="simulated" role="note">{SIMULATED}</div>' if dossier.simulated else ""
    name = f"{'SIMULATED. ' if dossier.simulated else ''}{guideline.title} dossier"
    row = f'<tr class="mark"><th colspan="3">{SIMULATED}</th></tr>' if dossier.simulated else ""
    sections = "".join(_section(*group, row) for group in sections_of(dossier))
    lines = "".join(f"<p>{html.escape(line)}</p>" for line in head_lines(dossier))
    notes = "".join(f'<p class="soft">{html.escape(line)}</p>' for line in note_lines(dossier))
    csp = f"default-src 'none'; style-src '{STYLE_HASH}'; base-uri 'none'; form-action 'none'"
    table = html_table(dossier.table, REPORT) if dossier.table else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{csp}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer"><meta name="robots" content="noindex">'
        f"<title>{html.escape(name)}</title><style>{STYLE}</style></head><body>{mark}<main>"
        f"<h1>{html.escape(name)}</h1>{lines}{_decision(dossier)}{notes}{_methods(dossier)}"
        f"{f'<h2>Results</h2>{table}' if table else ''}{sections}"
        "</main></body></html>\n"
    )


def dossier_markdown(dossier: Dossier) -> str:
    """Return a dossier as Markdown, a heading an item; what is simulated is said at every heading."""
    mark = f" ({SIMULATED})" if dossier.simulated else ""
    parts = [f"# {in_markdown(dossier.guideline.title)} dossier{mark}"]
    parts += map(in_markdown, head_lines(dossier))
    parts += [f"**{in_markdown(line)}**" for line in decision_lines(dossier)[:1]]
    parts += map(in_markdown, decision_lines(dossier)[1:])
    parts += map(in_markdown, note_lines(dossier))
    for heading, paragraph in dossier.methods.items():
        parts += [f"## {heading}{mark}", in_markdown(paragraph)]
    if dossier.table:
        parts += [f"## Results{mark}", table_markdown(dossier.table).rstrip()]
    for section, items in sections_of(dossier):
        parts.append(f"## {in_markdown(section)}{mark}")
        parts += (_item_markdown(item, mark) for item in items)
    return "\n\n".join(parts) + "\n"


def decision_lines(dossier: Dossier) -> list[str]:
    """Return the decision on the jury, why, and on what it rests: alike whether it is for or against."""
    decision = dossier.decision
    return [decision.headline, *decision.sentences, *([decision.on] if decision.basis else [])]


def item_lines(item: DossierItem) -> Iterator[str]:
    """Yield what answers an item, what it lacks, and what its authors must add, as lines."""
    yield from map(evidence_words, item.evidence)
    yield from (f"Not done: {MISSING[code]}" for code in item.missing)
    if item.item.by_authors and item.status is not ItemStatus.AUTHORS:
        yield "The authors must add to this"


def head_lines(dossier: Dossier) -> list[str]:
    """Return what every dossier says first: of what, when, how much is done, and what is simulated."""
    lines = [
        f"{dossier.guideline.title}, {dossier.guideline.version}. Made {dossier.made}, at event "
        f"{dossier.record[:12]} of the record.",
        f"Of {len(dossier.items)} items: {counts_words(dossier)}.",
        BLIND if dossier.blind else UNBLINDED,
    ]
    if dossier.simulated:
        lines.insert(0, f"{SIMULATED}. {SIMULATED_WHY.format(listed(dossier.simulated))}")
    return lines


def note_lines(dossier: Dossier) -> list[str]:
    """Return where the items come from, and how far their numbers are sure."""
    return [
        f"Items after: {dossier.guideline.source.rstrip('.')}. The words are ours.",
        dossier.guideline.note,
    ]


def sections_of(dossier: Dossier) -> Iterator[tuple[str, list[DossierItem]]]:
    """Yield the sections of a guideline with their items, in its order."""
    for section, items in groupby(dossier.items, lambda one: one.item.section):
        yield section, list(items)


def _methods(dossier: Dossier) -> str:
    return "".join(
        f"<h2>{heading}</h2><p>{html.escape(paragraph)}</p>"
        for heading, paragraph in dossier.methods.items()
    )


def _decision(dossier: Dossier) -> str:
    first, *others = map(html.escape, decision_lines(dossier))
    more = "".join(f"<p>{line}</p>" for line in others)
    return f'<div class="answer"><p><strong>{first}</strong></p>{more}</div>'


def _section(section: str, items: list[DossierItem], mark: str) -> str:
    rows = "".join(map(_row, items))
    name = html.escape(section)
    head = '<th scope="col">Item</th><th scope="col">What is to be reported</th>'
    return (
        f'<h2>{name}</h2><table class="items" aria-label="{name}"><thead>{mark}<tr>{head}'
        f'<th scope="col">From this study</th></tr></thead><tbody>{rows}</tbody></table>'
    )


def _row(item: DossierItem) -> str:
    lines = "".join(f"<li>{html.escape(line)}</li>" for line in item_lines(item))
    status = f'<span class="status {item.status.value}">{STATUS[item.status]}</span>'
    return (
        f'<tr><th scope="row">{html.escape(item.item.number)}</th>'
        f'<td class="what">{html.escape(item.item.about)}</td>'
        f"<td>{status}{f'<ul>{lines}</ul>' if lines else ''}</td></tr>"
    )


def _item_markdown(item: DossierItem, mark: str) -> str:
    head = f"### {in_markdown(item.item.number)} {in_markdown(item.item.about)}"
    lines = "\n".join(f"- {in_markdown(line)}" for line in item_lines(item))
    return f"{head}\n\n**{STATUS[item.status]}**{mark}" + (f"\n\n{lines}" if lines else "")

"""The description of a study as HTML: the same for clinicians and for its author."""

import html
from dataclasses import dataclass

from annotate.markdown import as_html
from data.description import TEXTS, Description

HEADINGS = {
    "purpose": "Purpose",
    "responsible": "Who is responsible",
    "contact": "Contact",
    "instructions": "Instructions",
    "consent": "Consent",
}


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the description: the name of its field, its heading, and its text as HTML."""

    name: str
    heading: str
    html: str


def sections(description: Description) -> tuple[Section, ...]:
    """Return the texts of a description in the order they are read, those that say nothing left out."""
    texts = {name: getattr(description, name) for name in TEXTS}
    return tuple(
        Section(name, HEADINGS[name], as_html(text)) for name, text in texts.items() if text.strip()
    )


def pages(description: Description) -> tuple[Section, ...]:
    """Return the pages of its guideline, in their order."""
    return tuple(
        Section("guideline", page.title, as_html(page.text)) for page in description.guideline
    )


def as_page(description: Description) -> str:
    """Return all of it as one page, the guideline's pages to be opened one by one."""
    body = "".join(
        f"<section><h2>{section.heading}</h2>{section.html}</section>"
        for section in sections(description)
    )
    guideline = "".join(
        f"<details><summary>{html.escape(page.heading)}</summary>{page.html}</details>"
        for page in pages(description)
    )
    if guideline:
        body += f"<section><h2>Guideline</h2>{guideline}</section>"
    title = html.escape(description.title)
    return f'<article class="mj-described"><h2 class="mj-of-study">{title}</h2>{body}</article>'

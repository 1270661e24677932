"""A dossier as a document for a word processor; python-docx, an extra, writes it."""

import io
import re
from datetime import UTC, datetime

from docx import Document
from docx.document import Document as Written
from docx.enum.section import WD_ORIENT
from docx.oxml import OxmlElement
from docx.shared import Cm, Pt, RGBColor
from docx.table import _Cell

from calibration.dossier import Dossier, DossierItem, ItemStatus
from calibration.messages.dossier import SIMULATED, STATUS, answered_words
from calibration.writers.dossier import (
    decision_lines,
    head_lines,
    item_lines,
    note_lines,
    sections_of,
)

RED = RGBColor(0xA0, 0x1C, 0x28)
UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")  # not in XML
WIDTHS = (Cm(3.2), Cm(8.3), Cm(13.7))
HEADS = ("Item", "What is to be reported", "From this study")


def dossier_docx(dossier: Dossier) -> bytes:
    """Return a dossier as DOCX; what is simulated stands in the header of each page."""
    document = Document()
    _set_up(document, dossier)
    document.add_heading(_title(dossier), 0)
    for line in head_lines(dossier):
        document.add_paragraph(_fit(line))
    first, *others = decision_lines(dossier)
    document.add_paragraph().add_run(_fit(first)).bold = True
    for line in (*others, *note_lines(dossier)):
        document.add_paragraph(_fit(line))
    for section, items in sections_of(dossier):
        document.add_heading(_fit(section), 1)
        _table(document, items)
    content = io.BytesIO()
    document.save(content)
    return content.getvalue()


def _title(dossier: Dossier) -> str:
    mark = "SIMULATED. " if dossier.simulated else ""
    return _fit(f"{mark}{dossier.guideline.title} dossier")


def _set_up(document: Written, dossier: Dossier) -> None:
    """Set page, font, properties, and the header of each page."""
    section = document.sections[0]
    section.orientation = WD_ORIENT.LANDSCAPE
    section.page_width, section.page_height = Cm(29.7), Cm(21)
    section.left_margin = section.right_margin = Cm(2)
    document.styles["Normal"].font.size = Pt(10)
    properties = document.core_properties
    properties.title, properties.author, properties.comments = _title(dossier), "medjury", ""
    properties.created = properties.modified = datetime.now(UTC).replace(tzinfo=None)
    header = section.header.paragraphs[0].add_run(
        SIMULATED if dossier.simulated else _title(dossier)
    )
    header.bold = True
    if dossier.simulated:
        header.font.color.rgb = RED
    section.footer.paragraphs[0].text = f"{dossier.made}, record {dossier.record[:12]}"


def _table(document: Written, items: list[DossierItem]) -> None:
    table = document.add_table(rows=1, cols=len(HEADS), style="Table Grid")
    table.autofit = False
    table.rows[0]._tr.get_or_add_trPr().append(OxmlElement("w:tblHeader"))  # on each page
    for cell, head, width in zip(table.rows[0].cells, HEADS, WIDTHS, strict=True):
        cell.width = width
        cell.paragraphs[0].add_run(head).bold = True
    for item in items:
        cells = table.add_row().cells
        for cell, width in zip(cells, WIDTHS, strict=True):
            cell.width = width
        cells[0].text, cells[1].text = _fit(item.item.number), _fit(item.item.about)
        _answer(cells[2], item)


def _answer(cell: _Cell, item: DossierItem) -> None:
    """Write status, evidence and what is missing."""
    status = cell.paragraphs[0].add_run(STATUS[item.status])
    status.bold = True
    if item.status in (ItemStatus.NOT_DONE, ItemStatus.PEOPLE):
        status.font.color.rgb = RED
    for text, one in item_lines(item):
        by = answered_words(one) if one else ""
        cell.add_paragraph(_fit(f"{text}{f' ({by})' if by else ''}"), style="List Bullet")


def _fit(text: str) -> str:
    """Return a text as XML can hold it."""
    return UNFIT.sub("\N{REPLACEMENT CHARACTER}", text)

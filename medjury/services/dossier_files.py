"""A dossier as files: a page, Markdown, a document for a word processor, the agreement table."""

import codecs
from collections.abc import Callable
from importlib.util import find_spec

from sqlalchemy import Engine

from calibration.dossier import Dossier, DossierFiles, DossierQuestion
from calibration.writers.dossier import dossier_html, dossier_markdown
from medjury.services.dossier import dossier
from medjury.services.evidence import TABLE_FILE

WITHOUT_DOCX = "no DOCX was written: it needs python-docx, which the extra installs: pip install 'medjury[docx]'"


def dossier_files(
    engine: Engine, question: DossierQuestion, tick: Callable[[float], None] | None = None
) -> DossierFiles:
    """Return the files of a dossier, filled in now."""
    return files_of_dossier(dossier(engine, question, tick))


def files_of_dossier(made: Dossier) -> DossierFiles:
    """Return the files of a dossier; without python-docx, all but the DOCX, and why."""
    name = f"dossier-{made.guideline.name}"
    files = {
        f"{name}.html": dossier_html(made).encode(),
        f"{name}.md": dossier_markdown(made).encode(),
    }
    told: tuple[str, ...] = (WITHOUT_DOCX,)
    if find_spec("docx") is not None:
        from calibration.writers.dossier_docx import dossier_docx

        files[f"{name}.docx"], told = dossier_docx(made), ()
    if made.agreement:
        files[TABLE_FILE] = codecs.BOM_UTF8 + made.agreement.encode()
    return DossierFiles(made.guideline.name, files, told)

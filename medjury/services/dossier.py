"""A reporting guideline filled in from a study, and its two files: a page that prints, and Markdown."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from calibration.dossier import Dossier, DossierQuestion, dossier_items
from data.guidelines import guideline
from data.person import is_blind
from data.queries.record import present_head
from data.queries.study import facts
from data.schema import now
from medjury.services.evidence import study_evidence
from medjury.services.methods import methods_section

if TYPE_CHECKING:
    from calibration.tables.spec import Table
    from medjury.services.calibrate import Calibration


def dossier(
    engine: Engine, question: DossierQuestion, tick: Callable[[float], None] | None = None
) -> Dossier:
    """Return a guideline filled in from a study.

    Raises
    ------
    Unknown
        If there is no such guideline.
    """
    chosen = guideline(question.guideline)
    counts = facts(engine)
    evidence = study_evidence(engine, counts, question.reps, tick)
    calibration = evidence.calibration
    return Dossier(
        chosen,
        dossier_items(chosen.items, evidence.found, evidence.simulated),
        evidence.decision,
        evidence.simulated,
        is_blind(engine),
        f"{now():%Y-%m-%d %H:%M} UTC",
        present_head(engine).sha256,
        methods_section(engine, calibration, counts) if calibration else {},
        _table(calibration) if calibration else None,
        calibration.warnings if calibration else (),
    )


def _table(calibration: "Calibration") -> "Table":
    from calibration.writers.agreement_table import agreement_table

    options = calibration.question.options
    how = f"bootstrap over instances, {options.reps} resamples, seed {options.seed}"
    return agreement_table(calibration.rows, f"Method {options.method}; {how}")


def dossier_files(
    engine: Engine, question: DossierQuestion, tick: Callable[[float], None] | None = None
) -> dict[str, str]:
    """Return file ending -> content of a dossier that is filled in now."""
    from calibration.writers.dossier import dossier_html, dossier_markdown

    made = dossier(engine, question, tick)
    return {".html": dossier_html(made), ".md": dossier_markdown(made)}

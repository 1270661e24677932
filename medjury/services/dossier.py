"""A reporting guideline filled in from a study: figures, hashes, files, and what people answered."""

from collections.abc import Callable, Mapping

from sqlalchemy import Engine

from calibration.dossier import (
    Dossier,
    DossierQuestion,
    Evidence,
    EvidenceKind,
    dossier_items,
)
from data.guidelines import AnswerKind, guideline
from data.person import is_blind
from data.queries.dossiers import KeptAnswer, dossier_answers
from data.queries.record import present_head
from data.schema import now
from medjury.services.evidence import study_evidence


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
    evidence = study_evidence(engine, question.reps, tick)
    names = dict(question.names)
    answers = {name: _said(kept, names) for name, kept in dossier_answers(engine).items()}
    return Dossier(
        chosen,
        dossier_items(chosen.items, evidence.found, answers, evidence.simulated),
        evidence.decision,
        evidence.simulated,
        is_blind(engine),
        f"{now():%Y-%m-%d %H:%M} UTC",
        present_head(engine).sha256,
        evidence.agreement,
        evidence.warnings,
    )


def _said(kept: KeptAnswer, names: Mapping[str, str]) -> tuple[AnswerKind, Evidence]:
    """Return what people said to a question, as evidence."""
    author = names.get(kept.author, kept.author)
    words = kept.answer.text
    at = f"{kept.at:%Y-%m-%dT%H:%M:%SZ}"
    said = Evidence(EvidenceKind.ANSWER, kept.question, text=words, by=author, at=at)
    return kept.answer.kind, said

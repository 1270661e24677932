"""What a calibration remembers of the juries it looked at, and what else its statistics need."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from data.errors import NoStudy
from data.queries.families import evidence
from data.queries.ledger import comparisons_besides, compositions_tried, fingerprint
from data.store.ledger import Evaluation, record_evaluations

if TYPE_CHECKING:
    import pandas as pd

    from calibration.details import StudyContext
    from calibration.report.content import CriterionRow
    from calibration.scope import AgreementRow, Scope


@dataclass(frozen=True, slots=True)
class Looked:
    """The jury a calibration looks at: for the ledger, and for the number of comparisons tried."""

    jurors: Sequence[str]
    needed: int
    criterion: str
    method: str
    instances: str

    def entry(self, benchmark: str) -> Evaluation:
        """Return the ledger's entry for one benchmark, or all combined, without figures."""
        return Evaluation(
            jurors=self.jurors,
            benchmark=benchmark,
            method=self.method,
            criterion=self.criterion,
            instances=self.instances,
            needed=self.needed,
            fingerprint="",
            n_responses=0,
        )

    def tried_besides(self, engine: Engine) -> "Callable[[Scope], int]":
        """Return what counts the comparisons ever looked at beside a scope's own."""
        from calibration.differences import compared

        entries = compositions_tried(engine)
        return lambda scope: comparisons_besides(
            entries,
            replace(self.entry(scope.name), compared=[name for name, _ in compared(scope)]),
            simulated=not scope.simulated.isdisjoint(self.jurors),
        )

    def remember(
        self,
        engine: Engine,
        rows: Sequence["AgreementRow"],
        compared: Sequence[str],
        ratings: "pd.DataFrame",
    ) -> str:
        """Note in the study that this jury was compared with the clinicians.

        Returns why it could not be noted, or "".
        """
        data = fingerprint(ratings)
        entries = [
            replace(
                self.entry(row.benchmark),
                fingerprint=data,
                n_responses=row.n_responses,
                icc=row.icc,
                compared=compared,
            )
            for row in rows
            if row.scorer == "jury"
        ]
        return remembered(engine, entries)

    def remember_criteria(self, engine: Engine, rows: Sequence["CriterionRow"]) -> str:
        """Note the jury on every criterion, with the ratings' hash that the table has left.

        Returns why it could not be noted, or "".
        """
        hashes = {entry.key: entry.fingerprint for entry in compositions_tried(engine)}
        entries = [
            replace(
                replace(self, criterion=row.criterion).entry(row.benchmark),
                fingerprint=hashes.get(self.entry(row.benchmark).key, ""),
                n_responses=row.n_responses,
                icc=row.icc,
            )
            for row in rows
        ]
        return remembered(engine, entries) if entries else ""


def remembered(engine: Engine, entries: Sequence[Evaluation]) -> str:
    """Note in the study which juries were looked at; return why that was not possible, or ""."""
    try:
        record_evaluations(engine, entries)
    except NoStudy as error:
        return f"not noted in the ledger of juries tried: {error}"
    return ""


def known_of(engine: Engine, looked: Looked, families: Mapping[str, str] = {}) -> "StudyContext":
    """Return what the statistics on jurors need beside the scores.

    `families` are a panel's: they count for jurors of whom the study has none.
    """
    from calibration.details import StudyContext

    families_known = evidence(engine, families)
    return StudyContext(
        families_known.words,
        families_known.authors,
        families_known.families,
        looked.tried_besides(engine),
    )

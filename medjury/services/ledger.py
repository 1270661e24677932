"""The ledger of juries tried: what was looked at is noted in the study, by whatever command.

The study's database is imported where it is written: a file of scores has a jury too, and no study.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from data.errors import NoStudy

if TYPE_CHECKING:
    import pandas as pd
    from sqlalchemy import Engine

    from calibration.scope import AgreementRow, Scope
    from data.study.ledger import Evaluation


@dataclass(frozen=True, slots=True)
class Looked:
    """The jury a calibration looks at: for the ledger, and for the number of comparisons tried."""

    jurors: Sequence[str]
    needed: int
    criterion: str
    method: str
    instances: str

    def entry(self, benchmark: str) -> "Evaluation":
        """Return the ledger's entry for one benchmark, or all combined, without figures."""
        from data.study.ledger import Evaluation

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

    def tried_besides(self, engine: "Engine") -> "Callable[[Scope], int]":
        """Return what counts the comparisons ever looked at beside a scope's own."""
        from calibration.differences import compared
        from data.study.ledger import comparisons_besides, compositions_tried

        entries = compositions_tried(engine)
        return lambda scope: comparisons_besides(
            entries,
            replace(self.entry(scope.name), compared=[name for name, _ in compared(scope)]),
            simulated=not scope.simulated.isdisjoint(self.jurors),
        )

    def remember(
        self,
        engine: "Engine",
        rows: Sequence["AgreementRow"],
        compared: Sequence[str],
        ratings: "pd.DataFrame",
    ) -> str:
        """Note in the study that this jury was compared with the clinicians.

        Rows of one criterion are noted as such. Returns why it could not be noted, or "".
        """
        from data.study.ledger import fingerprint

        data = fingerprint(ratings)
        entries = [
            replace(
                self.entry(row.benchmark),
                criterion=getattr(row, "criterion", self.criterion),
                fingerprint=data,
                n_responses=row.n_responses,
                icc=row.icc,
                compared=compared,
            )
            for row in rows
            if row.scorer == "jury"
        ]
        return remembered(engine, entries)


def remembered(engine: "Engine", entries: Sequence["Evaluation"]) -> str:
    """Note in the study which juries were looked at; return why that was not possible, or ""."""
    from data.study.ledger import record_evaluations

    try:
        record_evaluations(engine, entries)
    except NoStudy as error:
        return f"not noted in the ledger of juries tried: {error}"
    return ""

"""All that preferences on pairs come to: agreement, the decision, win rates, juries, and what more takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibration.decision import Decision
from calibration.json_values import decision_json, json_value
from calibration.pair_juries import PairJuryRow, pair_ranking
from calibration.pair_models import WinRow, win_rates
from calibration.pair_planning import HIGHEST, PairPlanRow, pairs_needed
from calibration.pair_verdict import pair_decisions
from calibration.pairs import PairRow, PairScores, PairsLikeForLike, pair_rows
from calibration.values import AnalysisOptions, PlanOptions
from calibration.verdict import NO_CLAIM, JuryClaim
from data.errors import BadInput, TooFew

MOST_JURORS = 12  # of whom every jury is ranked


@dataclass(frozen=True, eq=False)
class PairResult:
    """What preferences on pairs say of a jury.

    Attributes
    ----------
    rows, models : of `pairs.pair_rows` and `pair_models.win_rates`
    juries : of `pair_juries.pair_ranking`, where there are several jurors
    plan : how many pairs show at the margin a jury as good as a human; None without a margin, or where
        humans agree too little to plan for it
    decisions : benchmark -> whether the jury may stand in for a human
    """

    rows: Sequence[PairRow]
    models: Sequence[WinRow]
    decisions: Mapping[str, Decision]
    juries: Sequence[PairJuryRow] = ()
    plan: PairPlanRow | None = None

    @property
    def decision(self) -> Decision | None:
        """Return the decision on all benchmarks together; None without a jury."""
        return next(iter([*self.decisions.values()][::-1]), None)

    @property
    def last(self) -> list[PairRow]:
        """Return the rows on all benchmarks together, or on the only one."""
        return [row for row in self.rows if row.benchmark == self.rows[-1].benchmark]

    @property
    def held(self) -> PairsLikeForLike | None:
        """Return like for like on all benchmarks together; None without a jury."""
        return next((row for row in self.last if isinstance(row, PairsLikeForLike)), None)

    def to_json(self) -> dict[str, Any]:
        """Return it as `check --json` has it."""
        decision = self.decision
        return {
            "decision": decision_json(decision) if decision else None,
            "pairs": json_value(self.rows),
            "models": json_value(self.models),
            "juries": json_value(self.juries),
            "plan": json_value(self.plan),
        }


def pairs_result(
    scores: PairScores, options: AnalysisOptions, claim: JuryClaim = NO_CLAIM
) -> PairResult:
    """Return what preferences say; options and errors are as of `pairs.pair_rows`."""
    rows = pair_rows(scores, options)
    margin = claim.protocol.margin if claim.protocol else None
    return PairResult(
        rows,
        win_rates(scores, options),
        pair_decisions(rows, claim),
        _ranking(scores, options),
        _plan(rows, margin),
    )


def _ranking(scores: PairScores, options: AnalysisOptions) -> list[PairJuryRow]:
    jurors = options.jurors or scores.raters("juror")
    if not 1 < len(jurors) <= MOST_JURORS:
        return []
    try:
        return pair_ranking(scores, options)
    except (BadInput, TooFew):  # nothing that all of them judged
        return []


def _plan(rows: Sequence[PairRow], margin: float | None) -> PairPlanRow | None:
    """Return how many pairs a study takes whose humans agree as these do."""
    held = [row for row in rows if isinstance(row, PairsLikeForLike)]
    if margin is None or not held or not 0.5 < held[-1].clinician <= HIGHEST:
        return None
    per_pair = max(2, min(held[-1].n_clinicians, round(held[-1].n / max(held[-1].n_pairs, 1))))
    return pairs_needed(held[-1].clinician, PlanOptions(per_response=per_pair, margin=margin))

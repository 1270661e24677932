"""The decision on a jury from pairs: whether it agrees with clinicians no worse than a clinician does."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from calibration.decision import Decision
from calibration.notes import Note, note
from calibration.pairs import PairRow, PairsLikeForLike
from calibration.scope import AgreementRow, LikeForLikeRow
from calibration.values import COMBINED
from calibration.verdict import NO_CLAIM, JuryClaim, decide

COIN = 0.5  # agreement by chance, where an ICC has 0
WORDS: Mapping[str, str] = {  # a note of the verdict on ICCs -> what it says of pairs
    "gap": (
        "share of pairs on which each has the sign of the other clinicians, each clinician held out in "
        "turn: jury {jury:.3f}, one clinician {clinician:.3f}; difference {gap:z.3f} (95 % interval "
        "{low:z.3f} to {high:z.3f})"
    ),
    "jury_unshown": "the jury's own agreement with the clinicians is not shown to be above one half",
    "clinicians_unshown": (
        "a clinician's agreement with the others is not shown to be above {floor:g}: the lower end of "
        "its interval is {clinician_low:.2f}"
    ),
    "margin_wide": (
        "the margin of {margin:g} is more than half of what a clinician's agreement, from "
        "{clinician_low:.2f}, is shown to lie above one half"
    ),
    "before_planned": "the protocol plans {planned:pair} and only {responses} are analysed",
    "rests_on": "{responses:pair} of {instances:instance}, judged by {clinicians:clinician} and by the jury",
    "do_run_jury_on": "run the jury on the {responses:pair} that it has not judged",
    "do_more_instances": "have clinicians judge pairs of {instances} more instances",
    "do_rate_planned": "have clinicians judge {more:more pair}, as planned",
    "do_more_responses": (
        "about {responses:pair} in all would narrow the interval enough, if the difference "
        "stays what it is"
    ),
    "do_more_for_an_equal": (
        "have clinicians judge more pairs: at this margin, even a jury exactly as good as a clinician "
        "takes about {responses:pair} to be shown non-inferior"
    ),
    "do_varied": "have clinicians judge pairs that differ more: too many here are the same for all",
    "do_train_clinicians": "train clinicians on the rubric, and have more pairs judged by several",
    "do_narrower_margin": "fix a narrower margin for the next study, or have more pairs judged",
    "do_confirm": (
        "fix the margin, the jury and the number of pairs in a protocol, then confirm on pairs that "
        "nobody has judged yet"
    ),
}


def pair_decisions(rows: Sequence[PairRow], claim: JuryClaim = NO_CLAIM) -> dict[str, Decision]:
    """Return the decision on each benchmark by name, from the rows of `pairs.pair_rows`.

    By the rules of `verdict.decide`, on the difference of like for like in share of pairs, with the
    margin of the protocol in the same: what chance gives is an agreement of one half, so that of
    jury and clinicians counts what lies above it. A benchmark without a jury has no decision.
    """
    jury = {row.benchmark: row for row in rows if row.scorer == "jury"}
    held = [row for row in rows if isinstance(row, PairsLikeForLike)]
    several = sum(row.benchmark != COMBINED for row in held)
    return {
        row.benchmark: _decision(
            row, jury[row.benchmark], claim, 1 if row.benchmark == COMBINED else several
        )
        for row in held
    }


def _decision(
    row: PairsLikeForLike, jury: PairRow, claim: JuryClaim, side_by_side: int
) -> Decision:
    held = LikeForLikeRow(
        row.benchmark,
        row.scorer,
        icc=row.difference,
        low=row.low,
        high=row.high,
        n_responses=row.n_pairs,
        n_instances=row.n_instances,
        n_clinicians=row.n_clinicians,
        jury_icc=row.jury - COIN,
        jury_low=row.jury_low - COIN,
        jury_high=row.jury_high - COIN,
        clinician_icc=row.clinician - COIN,
        clinician_low=row.clinician_low - COIN,
        clinician_high=row.clinician_high - COIN,
        without=tuple(replace(one, clinician_low=one.clinician_low - COIN) for one in row.without),
        corrected_low=row.corrected_low,
        corrected_high=row.corrected_high,
        population_low=row.population_low,
        population_high=row.population_high,
        notes=row.notes,
    )
    of_jury = AgreementRow(
        row.benchmark,
        "jury",
        n_responses=row.n_pairs,
        n_instances=row.n_instances,
        n_clinicians=row.n_clinicians,
        n_missing=jury.n_missing,
        notes=jury.notes,
    )
    if claim.protocol:
        above = max(claim.protocol.floor - COIN, 0.0)
        claim = replace(claim, protocol=replace(claim.protocol, floor=above))
    decision = decide([of_jury, held], claim, side_by_side)
    return replace(
        decision,
        reasons=tuple(_of_pairs(one, row) for one in decision.reasons),
        basis=tuple(_of_pairs(one, row) for one in decision.basis),
        next=_of_pairs(decision.next, row) if decision.next else None,
    )


def _of_pairs(of_iccs: Note, row: PairsLikeForLike) -> Note:
    """Return a note of the verdict in words and figures of pairs."""
    words, figures = WORDS.get(of_iccs.code), dict[str, Any](of_iccs.figures)
    if words is None:
        return of_iccs
    known = {name: getattr(row, name) for name in ("jury", "clinician", "low", "high")}
    figures |= {name: value for name, value in known.items() if name in figures}
    if "floor" in figures:
        figures["floor"] += COIN
    if "{clinician_low" in words:
        figures = {name: value for name, value in figures.items() if name != "low"}
        figures["clinician_low"] = row.clinician_low if math.isfinite(row.clinician_low) else COIN
    return note(of_iccs.code, words, **figures)

"""Who gave every response of a benchmark one and the same score on a criterion."""

from collections.abc import Iterator, Sequence

import pandas as pd

from calibration.notes import Figures, Note, filled, note, quoted
from calibration.rating_matrix import FLAT
from calibration.scores import Scores
from calibration.values import COMBINED

LEAST_ALIKE = 5  # responses: fewer may well deserve the same score


def same_scores_given(
    scores: Scores, jurors: Sequence[str], criterion: str | None = None
) -> dict[str, tuple[Note, ...]]:
    """Return notes on who gave every response of a benchmark one and the same score.

    Parameters
    ----------
    scores : Scores
    jurors : who sits on the jury
    criterion : the only one that is analysed, or None

    Returns
    -------
    benchmark, or "combined" -> notes
        First the jurors who tell no response from another on any criterion, then for each
        criterion those who do not on it, "the clinicians" where all of them gave one score.
        Of at least `LEAST_ALIKE` responses that a clinician scored.
    """
    criteria = [*dict.fromkeys(c for shape in scores.rubrics.values() for c in shape.criteria)]
    known = [(name, one) for name, shape in scores.rubrics.items() for one in shape.criteria]
    table = scores.ratings[scores.ratings["score"].notna()]
    table = table[pd.MultiIndex.from_frame(table[["benchmark", "criterion"]]).isin(known)]
    clinical = table["kind"] == "clinician"
    of_jury = (table["kind"] == "juror") & table["rater"].isin([*jurors])
    is_rated = table["response_id"].isin(table.loc[clinical, "response_id"])
    read = table.assign(by=table["rater"].astype(object).mask(clinical, "the clinicians"))
    read = read[(clinical | of_jury) & is_rated]
    wanted = [name for name in criteria if criterion in (None, name)]
    found = {name: read[read["benchmark"] == name] for name in scores.benchmarks}
    found |= {COMBINED: read} if len(scores.benchmarks) > 1 else {}
    return {name: tuple(_alike(own, jurors, wanted)) for name, own in found.items()}


def _alike(read: pd.DataFrame, jurors: Sequence[str], criteria: Sequence[str]) -> Iterator[Note]:
    by = ["criterion", "by", "rater", "response_id"]
    means = read.groupby(by, observed=True)["score"].mean().reset_index()
    given = means.groupby(["criterion", "by"], observed=True)
    ends = given["score"].agg(["min", "max"])
    is_flat = ends["max"] - ends["min"] <= FLAT * ends.abs().max(axis=1)
    is_one = (given["response_id"].nunique() >= LEAST_ALIKE) & is_flat
    flat, scored = {*is_one[is_one].index}, {*is_one.index}
    criteria = [name for name in criteria if (name, "the clinicians") in scored]
    everywhere = [who for who in jurors if criteria and all((one, who) in flat for one in criteria)]
    if everywhere:
        yield note("same_everywhere", _same_everywhere, raters=everywhere)
    for name in criteria:
        left = [who for who in ("the clinicians", *jurors) if who not in everywhere]
        if raters := [who for who in left if (name, who) in flat]:
            yield note("same_on_criterion", _same_on_criterion, raters=raters, criterion=name)


def _same_everywhere(figures: Figures) -> str:
    which = "it tells" if len(figures["raters"]) == 1 else "they tell"
    return (
        f"{_givers(figures)} gave every response the same scores: {which} no response from another"
    )


def _same_on_criterion(figures: Figures) -> str:
    return (
        f"{_givers(figures)} {filled('gave every response the same score on {criterion}', figures)}"
    )


def _givers(figures: Figures) -> str:
    return " and ".join(
        name if name == "the clinicians" else f"juror {quoted(name)}" for name in figures["raters"]
    )

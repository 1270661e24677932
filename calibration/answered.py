"""What raters answer and leave open: applicability, abstention, and clear against disputed responses."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from calibration import remarks
from calibration.chance_corrected import criteria_asked, first_scores, gwet_ac2, mean_kappa
from calibration.clustered_intervals import clustered_mean
from calibration.notes import Noted, note, noted
from calibration.rating_matrix import mean_of_given
from calibration.scope import Scope
from calibration.scores import Scores, ends_of, spelled
from calibration.values import NAN

APPLIES = np.array([0.0, 1.0])
SPREADS = ("all alike", "a point apart", "two or more apart")  # of a response's clinicians


@dataclass(frozen=True)
class ApplicabilityRow(Noted):
    """Whether raters agree that a criterion applies to a response.

    Attributes
    ----------
    raters : "clinicians" or "juror:NAME", which is with each clinician
    n_responses : that two of these raters answered, by a score or by "not applicable"
    not_applicable : share of the answers that say so, 0 to 1
    kappa : mean over pairs of raters of Cohen's kappa, NaN where undefined
    ac1 : Gwet's AC1 of all together
    """

    benchmark: str
    criterion: str
    raters: str
    n_responses: int = 0
    not_applicable: float = NAN
    kappa: float = NAN
    ac1: float = NAN


@dataclass(frozen=True)
class AbstentionRow(Noted):
    """How much a rater answers, and how close it is where it does.

    Attributes
    ----------
    rater, kind : "clinician" or "juror"
    n_scored, n_not_applicable, n_cannot_tell : cells, of every reading
    answered : share that was not "cannot tell", 0 to 1
    apart : mean distance from the other clinicians' mean on what was scored, as a share of the
        criterion's scale; NaN where no other clinician scored it
    """

    benchmark: str
    rater: str
    kind: str
    n_scored: int = 0
    n_not_applicable: int = 0
    n_cannot_tell: int = 0
    answered: float = NAN
    apart: float = NAN


@dataclass(frozen=True)
class DisputedRow(Noted):
    """How far the jury is from the clinicians where these agree, and where they do not.

    Attributes
    ----------
    clinicians : one of `SPREADS`: largest minus smallest of a response's first scores by two or more
    n : responses with such clinicians and a jury's score
    distance : mean distance of the jury from the clinicians' mean, in points, with the 95 %
        interval over instances of `clustered_intervals.clustered_mean`
    """

    benchmark: str
    criterion: str
    clinicians: str
    n: int = 0
    distance: float = NAN
    low: float = NAN
    high: float = NAN


def applicability_rows(scope: Scope, scores: Scores) -> list[ApplicabilityRow]:
    """Return the agreement on whether criteria apply, of each that somebody found not to.

    First answers alone, as in `chance_corrected.first_scores`.

    References
    ----------
    Cohen (1960), Educational and Psychological Measurement 20, 37; Gwet (2008), British Journal of
    Mathematical and Statistical Psychology 61, 29, for AC1.
    """
    instead = spelled(scores.instead[scores.instead["benchmark"].isin(scores.members(scope.name))])
    says_so = instead[instead["answer"] == "not_applicable"]
    rows = []
    for criterion in sorted(says_so["criterion"].unique()):
        table = _applies(scores, scope, says_so, criterion)
        clinicians = [*table.columns[: len(table.columns) - len(scope.jurors)]]
        for juror in (None, *scope.jurors):
            own = table[[*clinicians, juror] if juror else clinicians].to_numpy(dtype=np.float64)
            last = own.shape[1] - 1
            pairs = (
                ((at, last) for at in range(last)) if juror else combinations(range(last + 1), 2)
            )
            kappa, of_kappa = mean_kappa(own, pairs, 2)
            given = own[:, -1] if juror else own
            given = given[~np.isnan(given)]
            row = ApplicabilityRow(
                *(scope.name, criterion, f"juror:{juror}" if juror else "clinicians"),
                n_responses=int(((~np.isnan(own)).sum(axis=1) > 1).sum()),
                not_applicable=1 - float(given.mean()) if len(given) else NAN,
                kappa=kappa,
                ac1=gwet_ac2(own, APPLIES, np.eye(2)),
                notes=noted(of_kappa, remarks.simulated(scope.simulated & {*table.columns})),
            )
            rows.append(row)
    return rows


def _applies(scores: Scores, scope: Scope, says_so: pd.DataFrame, criterion: str) -> pd.DataFrame:
    """Return 1 where a rater scored a response on a criterion, 0 where it does not apply, else NaN."""
    members = [
        one for one in scores.members(scope.name) if criterion in scores.rubrics[one].criteria
    ]
    both = pd.concat(
        [
            spelled(scores.ratings[scores.ratings["criterion"] == criterion]).assign(score=1.0),
            says_so[says_so["criterion"] == criterion].assign(score=0.0),
        ]
    )
    return first_scores(both, members, criterion, scope.jurors)[0]


def abstention_rows(scope: Scope, scores: Scores) -> list[AbstentionRow]:
    """Return how much each rater answers, where anybody left something open; else nothing."""
    members = scores.members(scope.name)
    instead = spelled(scores.instead[scores.instead["benchmark"].isin(members)])
    if not len(instead):
        return []
    judged = spelled(scores.ratings[scores.ratings["benchmark"].isin(members)])
    judged = judged[judged["kind"] != "metric"]
    share = _share_of_scale(judged, scores)
    rows = []
    raters = pd.concat([judged, instead])[["rater", "kind"]].drop_duplicates().sort_values("rater")
    for rater, kind in raters.itertuples(index=False):
        if kind == "juror" and rater not in scope.jurors:
            continue
        counts = scores.instead_of([rater], members)
        n, unsure = int((judged["rater"] == rater).sum()), int(counts.get("cannot_tell", 0))
        inapplicable = int(counts.get("not_applicable", 0))
        made_up = remarks.simulated(scope.simulated & {rater})
        rows.append(
            AbstentionRow(
                *(scope.name, rater, kind, n, inapplicable, unsure),
                answered=1 - unsure / (n + inapplicable + unsure),
                apart=_apart(share, rater),
                notes=noted(made_up),
            )
        )
    return rows


def _share_of_scale(judged: pd.DataFrame, scores: Scores) -> pd.DataFrame:
    """Return each score as a share of its criterion's scale, one a rater, response and criterion."""
    low, high = ends_of(judged, scores.rubrics)
    share = (judged["score"].astype(float) - low) / (high - low)
    by = ["response_id", "criterion", "rater", "kind"]
    return judged.assign(share=share).groupby(by)["share"].mean().reset_index()


def _apart(share: pd.DataFrame, rater: str) -> float:
    """Return a rater's mean distance from the mean of all other clinicians, response by response."""
    others = share[(share["kind"] == "clinician") & (share["rater"] != rater)]
    theirs = others.groupby(["response_id", "criterion"])["share"].mean()
    own = share[share["rater"] == rater].set_index(["response_id", "criterion"])["share"]
    both = (own - theirs.reindex(own.index)).abs().dropna()
    return float(both.mean()) if len(both) else NAN


def disputed_rows(scope: Scope, scores: Scores) -> list[DisputedRow]:
    """Return the jury's distance from the clinicians by how far these are from one another.

    An error on a response that clinicians agree on weighs more than one on a disputed response.
    """
    if not scope.jury:
        return []
    members = scores.members(scope.name)
    criteria = criteria_asked(scope, scores)
    return [row for name in criteria for row in _disputed(scope, scores, members, name)]


def _disputed(
    scope: Scope, scores: Scores, benchmarks: Sequence[str], criterion: str
) -> Iterator[DisputedRow]:
    members = [name for name in benchmarks if criterion in scores.rubrics[name].criteria]
    if not members or len({scores.rubrics[name].ends(criterion) for name in members}) > 1:
        return
    table, _ = first_scores(scores.ratings, members, criterion, scope.jurors)
    number = len(table.columns) - len(scope.jurors)
    values = table.to_numpy(dtype=np.float64)
    clinicians, jurors = values[:, :number], values[:, number:]
    several = (~np.isnan(clinicians)).sum(axis=1) > 1
    needed = scope.jury.needed if scope.jury else 0
    whole = (~np.isnan(jurors)).sum(axis=1) >= max(needed, 1)
    both = several & whole
    if not both.any():
        return
    spread = np.nanmax(clinicians[both], axis=1) - np.nanmin(clinicians[both], axis=1)
    distance = np.abs(mean_of_given(jurors[both]) - mean_of_given(clinicians[both]))
    instances = scores.responses.set_index("response_id")["instance_id"].astype(str)
    of_rows = table.index.get_level_values("response_id")[both]
    clusters = np.unique(instances.reindex(of_rows).to_numpy(dtype=str), return_inverse=True)[1]
    kinds = np.digitize(spread, [0.5, 1.5])
    made_up = remarks.simulated(scope.simulated & {*table.columns})
    for kind, words in enumerate(SPREADS):
        here = kinds == kind
        own = np.where(here, distance, np.nan)
        mean = clustered_mean(own, clusters, int(clusters.max()) + 1)
        ends = mean.interval()
        nobody = note("no_such_response", "no response with such clinicians")
        about = scope.name, criterion, words, int(here.sum())
        lacking = None if here.any() else nobody
        yield DisputedRow(*about, mean.value, ends.low, ends.high, notes=noted(lacking, made_up))

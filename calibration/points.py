"""Agreement on points of the case: yes-or-no answers of the jury beside those of the clinicians.

What agrees is a pair of answers to one point of one response: the jury's, or a juror's, and that of one
clinician; or those of two clinicians. The jury's answer is that of more than half of its jurors. A pair
in which somebody cannot tell is left out and counted. Intervals resample instances, since the points
and responses of one instance hang together.
"""

from collections.abc import Collection
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import pandas as pd

from calibration import remarks
from calibration.bootstrap import BootstrapPlan, percentile_interval, replicates
from calibration.clustered_intervals import clustered_proportion
from calibration.icc import UNDEFINED, Interval
from calibration.notes import Noted, noted
from calibration.scores import Array, Flags, Integers
from calibration.values import NAN, RESAMPLES

CLINICIANS, JURY = "clinicians", "jury"
MET, NOT_MET, CANNOT_TELL = 1.0, 0.0, 2.0
PLACE = ["response", "number"]
COLUMNS = (
    *("response", "number", "instance", "instance_id", "text", "kind", "critical"),
    *("rater", "is_juror", "answer"),
)


@dataclass(frozen=True)
class PointAgreement(Noted):
    """Agreement of one scorer with the clinicians on some points.

    Attributes
    ----------
    scorer : "jury", "juror:NAME", or "clinicians" among themselves
    kind : of the points: "must", "must_not" or "nice"; "" all together
    agreement : share of pairs that agree, in [0, 1]; NaN without a pair
    kappa, ac1 : corrected for chance, at most 1, with percentiles over resampled instances; NaN without
        a pair, and kappa where all pairs are one answer; intervals with fewer than two instances
    n_pairs, n_instances, cannot_tell : pairs, their instances, and pairs that are left out
    """

    scorer: str
    kind: str
    agreement: float
    kappa: float
    kappa_low: float
    kappa_high: float
    ac1: float
    ac1_low: float
    ac1_high: float
    n_pairs: int
    n_instances: int
    cannot_tell: int


@dataclass(frozen=True)
class OnePoint(Noted):
    """One point of one instance over its responses; NaN where there is no answer or no pair.

    `clinicians_met` and `jury_met` are the shares of answers that a response does what the point says.
    """

    instance_id: str
    text: str
    kind: str
    critical: bool
    clinicians_met: float
    jury_met: float
    agreement: float
    kappa: float
    ac1: float
    n_pairs: int
    n_responses: int


@dataclass(frozen=True)
class CriticalDetection(Noted):
    """What a scorer catches of the critical points that responses fail, by the clinicians' majority.

    Attributes
    ----------
    failed, caught
        Critical points of responses that clinicians say are failed; those that the scorer says too.
    kept, alarmed
        Those that clinicians say are kept; those of them that the scorer says are failed.
    sensitivity, false_alarms
        Shares with intervals between instances; NaN without one.
    open
        Those on which the clinicians are split, or the scorer has no answer; counted nowhere above.
    """

    scorer: str
    failed: int
    caught: int
    kept: int
    alarmed: int
    sensitivity: float
    sensitivity_low: float
    sensitivity_high: float
    false_alarms: float
    false_alarms_low: float
    false_alarms_high: float
    open: int


@dataclass(frozen=True, eq=False)
class Answers:
    """All answers of a benchmark, by places: a point of a response each.

    Attributes
    ----------
    points : DataFrame, a place a row, indexed by `PLACE`: instance, instance_id, text, kind, critical
    clinicians : DataFrame, places by raters: `MET`, `NOT_MET`, `CANNOT_TELL`, NaN without an answer
    scorers : scorer -> the same of the jury, NaN where not all its jurors have answered, and of each
        juror; without jurors there is none
    """

    points: pd.DataFrame
    clinicians: pd.DataFrame
    scorers: dict[str, pd.Series]

    @classmethod
    def of(cls, answers: pd.DataFrame) -> "Answers":
        """Arrange answers, a row of `COLUMNS` each; of two by one rater to one point the later counts."""
        last = answers.drop_duplicates([*PLACE, "rater"], keep="last").astype({"is_juror": bool})
        points = last.drop_duplicates(PLACE).set_index(PLACE).sort_index()
        clinicians, jurors = (
            last[own].pivot(index=PLACE, columns="rater", values="answer").reindex(points.index)
            for own in (~last["is_juror"], last["is_juror"])
        )
        scorers = {f"juror:{name}": jurors[name] for name in jurors.columns}
        if scorers:
            scorers = {JURY: majority(jurors).where(jurors.notna().all(axis=1)), **scorers}
        return cls(points, clinicians, scorers)

    def pairs(self, scorer: str) -> pd.DataFrame:
        """Return pairs of answers to a place, `first` and `second`, its number and its instance.

        Those of two clinicians stand there in both orders: neither is the measure of the other.
        """
        given = [self.clinicians[name] for name in self.clinicians]
        both = [*permutations(given, 2)]
        if scorer != CLINICIANS:
            both = [(one, self.scorers[scorer]) for one in given]
        places = np.arange(len(self.points))
        parts = [
            pd.DataFrame({"first": first.array, "second": second.array, "place": places}).dropna()
            for first, second in both
        ]
        empty = pd.DataFrame({"first": [], "second": [], "place": np.empty(0, int)})
        return pd.concat([empty, *parts], ignore_index=True)


def majority(answers: pd.DataFrame) -> pd.Series:
    """Return the answer of more than half of those who gave one, else that nobody can tell; NaN of none."""
    number = answers.notna().sum(axis=1)
    said = [2 * (answers == answer).sum(axis=1) > number for answer in (MET, NOT_MET)]
    most = pd.Series(np.select(said, [MET, NOT_MET], CANNOT_TELL), index=answers.index)
    return most.where(number > 0)


def agreement_rows(
    answers: Answers, reps: int = RESAMPLES, seed: int = 0, simulated: Collection[str] = ()
) -> list[PointAgreement]:
    """Return agreement of the clinicians, the jury and each juror, over all points and by kind."""
    kinds = answers.points["kind"].to_numpy()
    names = sorted({*kinds})
    rows = []
    for kind in ("", *(names if len(names) > 1 else ())):
        for scorer in (CLINICIANS, *answers.scorers):
            pairs = answers.pairs(scorer)
            own = pairs[(kind == "") | (kinds[pairs["place"]] == kind)]
            rows.append(_agreement(answers, scorer, kind, own, (reps, seed), simulated))
    return rows


def _agreement(
    answers: Answers,
    scorer: str,
    kind: str,
    pairs: pd.DataFrame,
    resampling: tuple[int, int],
    simulated: Collection[str],
) -> PointAgreement:
    instances = answers.points["instance"].to_numpy()[pairs["place"]]
    tables = tables_of(pairs, np.unique(instances, return_inverse=True)[1])
    tables = tables[tables.any(axis=(1, 2))]
    agreed, kappa, ac1 = coefficients(tables.sum(axis=0)).tolist()
    kappa_ends = ac1_ends = UNDEFINED
    lost = None
    if len(tables) > 1:
        plan = BootstrapPlan(len(tables), len(tables), *resampling)
        drawn = replicates(lambda counts: coefficients(np.tensordot(counts, tables, 1))[1:].T, plan)
        kappa_ends, ac1_ends = percentile_interval(drawn[:, 0]), percentile_interval(drawn[:, 1])
        lost = remarks.undefined_resamples(drawn[:, 0])
    halves = 2 if scorer == CLINICIANS else 1
    return PointAgreement(
        *(scorer, kind, agreed),
        *(kappa, kappa_ends.low, kappa_ends.high, ac1, ac1_ends.low, ac1_ends.high),
        n_pairs=int(tables.sum()) // halves,
        n_instances=len(tables),
        cannot_tell=(len(pairs) - int(tables.sum())) // halves,
        notes=noted(lost, remarks.simulated(simulated)),
    )


def tables_of(pairs: pd.DataFrame, groups: Integers, number: int | None = None) -> Array:
    """Return how often each pair of answers came in each group, shape (groups, 2, 2)."""
    size = number or int(groups.max(initial=-1)) + 1
    told = (pairs[["first", "second"]] != CANNOT_TELL).all(axis=1).to_numpy()
    first, second = (pairs.loc[told, name].to_numpy(dtype=np.int64) for name in ("first", "second"))
    counts = np.zeros((size, 2, 2))
    np.add.at(counts, (groups[told], first, second), 1.0)
    return counts


def coefficients(tables: Array) -> Array:
    """Return agreement, kappa and AC1 of tables of pairs of answers, shape (..., 2, 2) -> (3, ...).

    References
    ----------
    Cohen (1960), Educational and Psychological Measurement 20, 37, for kappa; Gwet (2008), British
    Journal of Mathematical and Statistical Psychology 61, 29, for AC1 of two raters.
    """
    total = tables.sum(axis=(-2, -1))
    with np.errstate(divide="ignore", invalid="ignore"):
        agreed = (tables[..., 0, 0] + tables[..., 1, 1]) / total
        first, second = (
            tables[..., 1].sum(axis=-1) / total,
            tables[..., 1, :].sum(axis=-1) / total,
        )
        by_kappa = first * second + (1 - first) * (1 - second)
        share = (first + second) / 2
        by_ac1 = 2 * share * (1 - share)
        kappa = np.where(by_kappa < 1, (agreed - by_kappa) / (1 - by_kappa), NAN)
        return np.stack([agreed, kappa, (agreed - by_ac1) / (1 - by_ac1)])


def point_rows(answers: Answers, simulated: Collection[str] = ()) -> list[OnePoint]:
    """Return each point of each instance over its responses, in the order of instances and points."""
    by_point = answers.points.groupby(["instance", "number"])
    group = by_point.ngroup().to_numpy(dtype=np.int64)
    pairs = answers.pairs(JURY) if answers.scorers else answers.pairs(CLINICIANS).iloc[:0]
    of_pairs = group[pairs["place"].to_numpy(dtype=np.int64)]
    tables = tables_of(pairs, of_pairs, by_point.ngroups)
    agreement, kappa, ac1 = coefficients(tables)
    told = answers.clinicians.where(answers.clinicians != CANNOT_TELL)
    jury = answers.scorers.get(JURY, pd.Series(NAN, index=answers.points.index))
    met = told.sum(axis=1).groupby(group).sum() / told.count(axis=1).groupby(group).sum()
    frame = by_point[["instance_id", "text", "kind", "critical"]].first()
    frame = frame.assign(
        clinicians_met=met.to_numpy(),
        jury_met=jury.where(jury != CANNOT_TELL).groupby(group).mean().to_numpy(),
        agreement=agreement,
        kappa=kappa,
        ac1=ac1,
        n_pairs=tables.sum(axis=(1, 2)).astype(int),
        n_responses=by_point.size(),
    )
    notes = noted(remarks.simulated(simulated))
    rows = [{str(name): value for name, value in one.items()} for one in frame.to_dict("records")]
    return [OnePoint(**row, notes=notes) for row in rows]


def detection_rows(answers: Answers, simulated: Collection[str] = ()) -> list[CriticalDetection]:
    """Return what the jury and each juror catch of critical points failed; none without such points."""
    critical = answers.points["critical"].to_numpy(dtype=bool)
    if not critical.any():
        return []
    wanted = np.where(answers.points["kind"] == "must_not", NOT_MET, MET)[critical]
    consensus = majority(answers.clinicians).to_numpy()[critical]
    clusters = np.unique(answers.points["instance"], return_inverse=True)[1][critical]
    rows = []
    for scorer, given in answers.scorers.items():
        own = given.to_numpy()[critical]
        judged = np.isin(consensus, (MET, NOT_MET)) & np.isin(own, (MET, NOT_MET))
        failed, kept = judged & (consensus != wanted), judged & (consensus == wanted)
        caught, alarmed = failed & (own != wanted), kept & (own != wanted)
        sensitivity, ends = _share(caught, failed, clusters)
        false_alarms, of_alarms = _share(alarmed, kept, clusters)
        rows.append(
            CriticalDetection(
                *(scorer, int(failed.sum()), int(caught.sum())),
                *(int(kept.sum()), int(alarmed.sum())),
                *(sensitivity, ends.low, ends.high),
                *(false_alarms, of_alarms.low, of_alarms.high),
                open=int((~judged).sum()),
                notes=noted(remarks.simulated(simulated)),
            )
        )
    return rows


def _share(hits: Flags, trials: Flags, clusters: Integers) -> tuple[float, Interval]:
    ends = clustered_proportion(hits.astype(float), trials.astype(float), clusters)
    return (float(hits.sum() / trials.sum()) if trials.any() else NAN), ends

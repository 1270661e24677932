"""Agreement on points of the case: yes-or-no answers of the jury beside those of the clinicians.

What agrees is a pair of answers to one point of one response: the jury's, or a juror's, and that of one
clinician; or those of two clinicians. The jury's answer is that of more than half of its jurors. A pair
in which somebody cannot tell is left out and counted. Intervals resample instances, since the points
and responses of one instance hang together.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from calibration.bootstrap import draw_counts
from calibration.clustered_intervals import clustered_proportion
from calibration.icc import UNDEFINED, Interval
from calibration.scores import Array
from calibration.values import NAN

JURY, CLINICIANS = "jury", "clinicians"
ALL = ""
FEWEST = 2  # instances for an interval
Place = tuple[int, int]  # (response, point), primary key and number from 0


@dataclass(frozen=True, slots=True)
class CasePoint:
    """A point of an instance, by where it stands; `is_earned` is False of what must not be done."""

    instance: int
    instance_id: str
    number: int
    text: str
    kind: str
    weight: float
    critical: bool

    @property
    def is_earned(self) -> bool:
        """Whether doing it is what is wanted."""
        return self.kind != "must_not"


@dataclass(frozen=True, slots=True)
class PointAnswer:
    """One rater's answer to a point of a response: True met, False not met, None cannot tell."""

    response: int
    point: CasePoint
    rater: str
    met: bool | None


@dataclass(frozen=True, slots=True)
class PointAgreement:
    """Agreement of one scorer with the clinicians on some points.

    Attributes
    ----------
    scorer
        "jury", "juror:NAME", or "clinicians" among themselves.
    kind
        Of the points: "must", "must_not" or "nice"; "" all together.
    agreement
        Share of pairs that agree, in [0, 1]; NaN without a pair.
    kappa, ac1
        Corrected for chance, at most 1; NaN without a pair, and kappa where all pairs are one answer.
    kappa_interval, ac1_interval
        Percentiles over resampled instances, NaN with fewer than two instances.
    undefined
        Resamples in which kappa was undefined, out of `reps`; its interval leaves them out.
    """

    scorer: str
    kind: str
    agreement: float
    kappa: float
    kappa_interval: Interval
    ac1: float
    ac1_interval: Interval
    n_pairs: int
    n_instances: int
    cannot_tell: int
    undefined: int = 0
    reps: int = 0


@dataclass(frozen=True, slots=True)
class OnePoint:
    """One point of one instance over its responses; NaN where there is no answer or no pair."""

    point: CasePoint
    clinicians_met: float
    jury_met: float
    agreement: float
    kappa: float
    ac1: float
    n_pairs: int
    n_responses: int


@dataclass(frozen=True, slots=True)
class CriticalDetection:
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
    sensitivity_interval: Interval
    false_alarms: float
    false_alarms_interval: Interval
    open: int


@dataclass(frozen=True, slots=True)
class Answers:
    """All answers of a benchmark, by who gave them.

    `clinicians` and `jurors`: rater -> (response, point) -> answer. `jury` are the names that sit on the
    jury; without one there are rows of the clinicians alone.
    """

    points: Mapping[Place, CasePoint]
    clinicians: Mapping[str, Mapping[Place, bool | None]]
    jurors: Mapping[str, Mapping[Place, bool | None]]

    @classmethod
    def of(cls, clinicians: Iterable[PointAnswer], jurors: Iterable[PointAnswer]) -> "Answers":
        """Arrange answers; of two by one rater to one point the later one counts."""
        points: dict[Place, CasePoint] = {}

        def arranged(answers: Iterable[PointAnswer]) -> dict[str, dict[Place, bool | None]]:
            by_rater: dict[str, dict[Place, bool | None]] = defaultdict(dict)
            for one in answers:
                place = one.response, one.point.number
                points[place] = one.point
                by_rater[one.rater][place] = one.met
            return dict(by_rater)

        return cls(points=points, clinicians=arranged(clinicians), jurors=arranged(jurors))

    def scorers(self) -> dict[str, Mapping[Place, bool | None]]:
        """Return the jury's answers, then each juror's; nothing without jurors."""
        if not self.jurors:
            return {}
        return {JURY: self.jury()} | {
            f"juror:{name}": self.jurors[name] for name in sorted(self.jurors)
        }

    def jury(self) -> dict[Place, bool | None]:
        """Return what more than half of the jurors say where all have answered; None where none does."""
        places = set.intersection(*(set(given) for given in self.jurors.values()))
        return {
            place: majority([given[place] for given in self.jurors.values()]) for place in places
        }

    def consensus(self) -> dict[Place, bool | None]:
        """Return what more than half of a point's clinicians say, None where no answer has that."""
        places = {place for given in self.clinicians.values() for place in given}
        return {
            place: majority([given[place] for given in self.clinicians.values() if place in given])
            for place in places
        }


def majority(answers: Sequence[bool | None]) -> bool | None:
    """Return the answer of more than half of those who gave one or could not tell, else None."""
    counts = Counter(answers)
    return next((said for said in (True, False) if 2 * counts[said] > len(answers)), None)


def agreement_rows(answers: Answers, reps: int = 2000, seed: int = 0) -> list[PointAgreement]:
    """Return agreement of the clinicians, the jury and each juror, over all points and by kind.

    References
    ----------
    Cohen (1960), Educational and Psychological Measurement 20, 37, for kappa; Gwet (2008), British
    Journal of Mathematical and Statistical Psychology 61, 29, for AC1 of two raters.
    """
    kinds = sorted({point.kind for point in answers.points.values()})
    rows = []
    for kind in (ALL, *(kinds if len(kinds) > 1 else ())):
        places = {place for place, point in answers.points.items() if kind in (ALL, point.kind)}
        for scorer, pairs in _pairs_of_all(answers):
            own = [pair for pair in pairs if pair[0] in places]
            rows.append(_row(scorer, kind, own, answers.points, reps, seed))
    return rows


def point_rows(answers: Answers) -> list[OnePoint]:
    """Return each point of each instance over its responses, in the order of instances and points."""
    jury = answers.jury() if answers.jurors else {}
    pairs = _with_clinicians(jury, answers) if jury else []
    by_point: dict[CasePoint, list[Place]] = defaultdict(list)
    for place, point in answers.points.items():
        by_point[point].append(place)
    rows = []
    for point in sorted(by_point, key=lambda one: (one.instance, one.number)):
        places = set(by_point[point])
        own = [(first, second) for place, first, second in pairs if place in places]
        table, _ = _table(own)
        agreement, kappa, ac1 = _coefficients(table).tolist()
        given = [own.get(place) for own in answers.clinicians.values() for place in places]
        rows.append(
            OnePoint(
                point,
                _met(given),
                _met([jury.get(place) for place in places]),
                agreement,
                kappa,
                ac1,
                int(table.sum()),
                len(places),
            )
        )
    return rows


def detection_rows(answers: Answers) -> list[CriticalDetection]:
    """Return what the jury and each juror catch of critical points failed; none without such points."""
    consensus = answers.consensus()
    critical = {place: point for place, point in answers.points.items() if point.critical}
    if not critical:
        return []
    return [
        _detection(scorer, given, consensus, critical)
        for scorer, given in answers.scorers().items()
    ]


Pair = tuple[Place, bool | None, bool | None]


def _pairs_of_all(answers: Answers) -> Iterator[tuple[str, list[Pair]]]:
    yield CLINICIANS, list(_among(answers))
    for scorer, given in answers.scorers().items():
        yield scorer, _with_clinicians(given, answers)


def _among(answers: Answers) -> Iterator[Pair]:
    """Yield the pairs of two clinicians, each in both orders: neither is the measure of the other."""
    for one, other in combinations(sorted(answers.clinicians), 2):
        first, second = answers.clinicians[one], answers.clinicians[other]
        for place in sorted(first.keys() & second.keys()):
            yield place, first[place], second[place]
            yield place, second[place], first[place]


def _with_clinicians(given: Mapping[Place, bool | None], answers: Answers) -> list[Pair]:
    return [
        (place, own[place], given[place])
        for own in answers.clinicians.values()
        for place in sorted(own.keys() & given.keys())
    ]


def _met(answers: Iterable[bool | None]) -> float:
    told = [one for one in answers if one is not None]
    return sum(told) / len(told) if told else NAN


def _table(pairs: Iterable[tuple[bool | None, bool | None]]) -> tuple[Array, int]:
    """Return how often each pair of answers came, shape (2, 2), and how many somebody could not tell."""
    counts = Counter(pairs)
    table = np.array([[counts[a, b] for b in (True, False)] for a in (True, False)], np.float64)
    return table, sum(counts.values()) - int(table.sum())


def _coefficients(tables: Array) -> Array:
    """Return agreement, kappa and AC1 of tables of pairs, shape (..., 2, 2) -> (3, ...)."""
    total = tables.sum(axis=(-2, -1))
    with np.errstate(divide="ignore", invalid="ignore"):
        agreed = (tables[..., 0, 0] + tables[..., 1, 1]) / total
        first, second = (
            tables[..., 0, :].sum(axis=-1) / total,
            tables[..., :, 0].sum(axis=-1) / total,
        )
        by_kappa = first * second + (1 - first) * (1 - second)
        share = (first + second) / 2
        by_ac1 = 2 * share * (1 - share)
        kappa = np.where(by_kappa < 1, (agreed - by_kappa) / (1 - by_kappa), NAN)
        ac1 = (agreed - by_ac1) / (1 - by_ac1)
    return np.stack([agreed, kappa, ac1])


def _row(
    scorer: str,
    kind: str,
    pairs: Sequence[Pair],
    points: Mapping[Place, CasePoint],
    reps: int,
    seed: int,
) -> PointAgreement:
    by_instance: dict[int, list[tuple[bool | None, bool | None]]] = defaultdict(list)
    for place, first, second in pairs:
        by_instance[points[place].instance].append((first, second))
    counted = [_table(by_instance[instance]) for instance in sorted(by_instance)]
    tables = np.array([table for table, _ in counted if table.any()]).reshape(-1, 2, 2)
    halves = 2 if scorer == CLINICIANS else 1  # each pair of clinicians stands there twice
    agreed, kappa, ac1 = _coefficients(tables.sum(axis=0))
    intervals, undefined = _resampled(tables, reps, seed)
    return PointAgreement(
        scorer,
        kind,
        float(agreed),
        float(kappa),
        intervals[0],
        float(ac1),
        intervals[1],
        n_pairs=int(tables.sum()) // halves,
        n_instances=len(tables),
        cannot_tell=sum(lost for _, lost in counted) // halves,
        undefined=undefined,
        reps=reps,
    )


def _resampled(tables: Array, reps: int, seed: int) -> tuple[list[Interval], int]:
    """Return the intervals of kappa and AC1 over resampled instances, and where kappa was undefined."""
    if len(tables) < FEWEST:
        return [UNDEFINED, UNDEFINED], 0
    drawn = [
        _coefficients(np.tensordot(counts, tables, axes=1))[1:]
        for counts in draw_counts(len(tables), reps=reps, seed=seed)
    ]
    values = np.concatenate(drawn, axis=1)
    ends = [_percentiles(row[~np.isnan(row)]) for row in values]
    return ends, int(np.isnan(values[0]).sum())


def _percentiles(values: Array) -> Interval:
    if not len(values):
        return UNDEFINED
    low, high = np.quantile(values, (0.025, 0.975))
    return Interval(float(low), float(high))


def _detection(
    scorer: str,
    given: Mapping[Place, bool | None],
    consensus: Mapping[Place, bool | None],
    critical: Mapping[Place, CasePoint],
) -> CriticalDetection:
    judged = {
        place: (said != point.is_earned, given[place] != point.is_earned)
        for place, point in critical.items()
        if (said := consensus.get(place)) is not None and given.get(place) is not None
    }
    failed = {place: caught for place, (fails, caught) in judged.items() if fails}
    kept = {place: alarmed for place, (fails, alarmed) in judged.items() if not fails}
    sensitivity, false_alarms = (_share(part, critical) for part in (failed, kept))
    return CriticalDetection(
        scorer,
        failed=len(failed),
        caught=sum(failed.values()),
        kept=len(kept),
        alarmed=sum(kept.values()),
        sensitivity=sensitivity[0],
        sensitivity_interval=sensitivity[1],
        false_alarms=false_alarms[0],
        false_alarms_interval=false_alarms[1],
        open=len(critical) - len(judged),
    )


def _share(hits: Mapping[Place, bool], points: Mapping[Place, CasePoint]) -> tuple[float, Interval]:
    if not hits:
        return NAN, UNDEFINED
    numbers = {one: n for n, one in enumerate(sorted({points[place].instance for place in hits}))}
    clusters = np.array([numbers[points[place].instance] for place in hits])
    values = np.array([*hits.values()], np.float64)
    return float(values.mean()), clustered_proportion(values, np.ones(len(values)), clusters)

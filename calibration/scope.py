"""The rows of the agreement table, and the scopes they are computed on: benchmarks, and all combined."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import pandas as pd

from calibration import remarks
from calibration.clinicians import ClinicianRow, Without
from calibration.columns import PanelColumns, single_rater
from calibration.notes import Note, Noted, undefined
from calibration.rating_matrix import (
    Composites,
    RatingMatrix,
    Repeats,
    analysed_grid,
    composites,
    repeats,
    required_criteria,
)
from calibration.scores import Scores
from calibration.shared_notes import DIFFERENT_SCALES, NO_CRITERION
from calibration.values import COMBINED, NAN, AnalysisOptions
from data.errors import BadInput, TooFew, Unknown

_READ: WeakKeyDictionary[Scores, dict[str | None, tuple[Composites, Repeats]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class AgreementRow(Noted):
    """One scorer on one benchmark: a row of `analyse calibrate --json`. None: does not apply.

    `low, high` is the 95 % interval of the jackknife over instances. `n_not_applicable` and
    `n_cannot_tell` count what the raters whom the row is about said in the place of a score.
    """

    benchmark: str
    scorer: str
    icc: float = NAN
    low: float = NAN
    high: float = NAN
    f_low: float = NAN
    f_high: float = NAN
    n_responses: int = 0
    n_instances: int = 0
    n_clinicians: int = 0
    n_pairs: int | None = None
    n_missing: int = 0
    spearman: float = NAN
    n_not_applicable: int = 0
    n_cannot_tell: int = 0


@dataclass(frozen=True)
class CliniciansRow(AgreementRow):
    """The clinicians by pairs; `each` has a row for each of them against the mean of the others."""

    each: tuple[ClinicianRow, ...] = ()


@dataclass(frozen=True)
class LikeForLikeRow(AgreementRow):
    """The leave-one-clinician-out comparison: `icc` is `jury_icc` minus `clinician_icc`.

    Both are pooled over the clinicians that could be held out: the ICC with the mean of the
    others. The corrected interval is the one that holds where several benchmarks are looked at
    (Bonferroni), NaN where one alone is; `undefined_resamples` of `resamples` have no difference.
    Its interval, the corrected one and those of the two ICCs are of the jackknife over instances,
    with these clinicians; the population interval is over clinicians like these too.
    `without` has the comparison without each clinician, where there are three or more.
    """

    jury_icc: float = NAN
    jury_low: float = NAN
    jury_high: float = NAN
    clinician_icc: float = NAN
    clinician_low: float = NAN
    clinician_high: float = NAN
    without: tuple[Without, ...] = ()
    corrected_low: float = NAN
    corrected_high: float = NAN
    population_low: float = NAN
    population_high: float = NAN
    undefined_resamples: int = 0
    resamples: int = 0


def without_clinicians(scores: Scores, names: Sequence[str]) -> Scores:
    """Return the scores as if some clinicians had not rated.

    Raises
    ------
    Unknown
        If no clinician of a name has rated.
    """
    known = scores.raters("clinician")
    if lost := [name for name in names if name not in known]:
        has = f"those who have are {', '.join(known)}" if known else "none has"
        raise Unknown(f"no clinician {', '.join(lost)} has rated in this study: {has}")
    left, instead = (
        table[~table["rater"].isin(list(names))].reset_index(drop=True)
        for table in (scores.ratings, scores.instead)
    )
    return replace(scores, ratings=left, instead=instead)


def without_instances(scores: Scores, instances: Collection[str]) -> Scores:
    """Return the scores with some instances, all their responses and ratings left out.

    Everything is then computed as if they had never been in the study, z included.
    """
    ratings, responses, instead = (
        table[~table["instance_id"].isin(list(instances))].reset_index(drop=True)
        for table in (scores.ratings, scores.responses, scores.instead)
    )
    return replace(scores, ratings=ratings, responses=responses, instead=instead)


@dataclass(frozen=True, eq=False)
class Scope:
    """One benchmark, or all combined: what was rated in it, the jury and the options.

    Attributes
    ----------
    name : the benchmark, or "combined"
    grid : its analysed set
    composites : DataFrame, every composite in scope, analysed or not
    in_study : int, every response in scope
    incomplete : readings without a composite, by rater
    repeats : what clinicians rated again
    jury : None when there are no jurors
    jurors, metrics, simulated : handles
    n_side_by_side : benchmarks that are looked at side by side, this one among them; 1 of `combined`
    """

    name: str
    grid: RatingMatrix
    composites: pd.DataFrame
    in_study: int
    incomplete: dict[str, int]
    repeats: Repeats
    jury: PanelColumns | None
    jurors: tuple[str, ...]
    metrics: tuple[str, ...]
    simulated: frozenset[str]
    options: AnalysisOptions
    n_side_by_side: int = 1

    @property
    def scorers(self) -> dict[str, PanelColumns]:
        """Return every scorer by its name in the table."""
        jury = {"jury": self.jury} if self.jury else {}
        jurors = {f"juror:{name}": single_rater(name) for name in self.jurors}
        return jury | jurors | {f"metric:{name}": single_rater(name) for name in self.metrics}

    @property
    def clinicians(self) -> tuple[str, ...]:
        """Return the clinicians of the analysed set."""
        return tuple(self.grid.raters[column] for column in self.grid.of_kind("clinician"))

    @property
    def analysed(self) -> Note | None:
        """Return how many responses in scope are analysed, unless all are."""
        return remarks.analysed(len(self.grid.responses), self.in_study)


def compared_names(jurors: Sequence[str], metrics: Sequence[str]) -> list[str]:
    """Return the names of the single scorers that a jury of these jurors is compared with."""
    of_jurors = [f"juror:{name}" for name in jurors if len(jurors) > 1]
    return [*(f"metric:{name}" for name in metrics), *of_jurors]


def scopes(
    scores: Scores, options: AnalysisOptions, report: Callable[[float], None] | None = None
) -> Iterator[Scope]:
    """Yield each benchmark, then "combined" if there are several.

    `report` is told the share of the work done, from above 0 to 1, after each scope.

    Raises
    ------
    Unknown, BadInput, TooFew
        As `table.agreement_table`, before the first is yielded.
    """
    jury = checked_jury(scores, options)
    all_composites, all_repeats = _read(scores, options.criterion)
    if not (all_composites.values["kind"] == "clinician").any():
        raise TooFew(
            "no clinician has rated a response on all criteria: nothing to agree with; "
            "choose one criterion (--criterion NAME)"
        )
    names = _scope_names(scores)
    for place, name in enumerate(names):
        yield _scope(scores, (all_composites, all_repeats), name, jury, options)
        if report:
            report((place + 1) / len(names))


def _read(scores: Scores, criterion: str | None) -> tuple[Composites, Repeats]:
    """Return composites and repeats of scores, read once as long as they live: table, check and details ask."""
    known = _READ.setdefault(scores, {})
    if criterion not in known:
        known[criterion] = composites(scores, criterion), repeats(scores, criterion)
    return known[criterion]


def checked_jury(scores: Scores, options: AnalysisOptions) -> PanelColumns | None:
    """Return the jury, None without jurors, after checking names and options as `scopes` does."""
    chosen = known_jurors(scores, options.jurors)
    _check_options(options)
    _check_criterion(scores, options.criterion)
    return panel_of(chosen, options.min_jurors)


def why_undefined_scope(scores: Scores, scope: Scope) -> Note | None:
    """Return why a scope has no agreement at all, or None."""
    criterion = scope.options.criterion
    if criterion is not None and not _members(scores, scope.name, criterion):
        return undefined(*NO_CRITERION, criterion=criterion)
    if not scope.grid.responses:
        return undefined(
            "not_rated", "no clinician has rated a response of this benchmark with a composite"
        )
    clinical = scope.composites[scope.composites["kind"] == "clinician"]
    shapes = [scores.rubrics[name] for name in clinical["benchmark"].unique()]
    if len({shape.ends(criterion) for shape in shapes}) > 1:
        return undefined(*DIFFERENT_SCALES)
    return None


def known_jurors(scores: Scores, jurors: Sequence[str] | None) -> tuple[str, ...]:
    """Return some jurors, each once, or all; raise Unknown for one without a rating."""
    known = scores.raters("juror")
    if jurors is None:
        return known
    if lost := [name for name in jurors if name not in known]:
        has = f"it has {', '.join(known)}" if known else "it has none"
        raise Unknown(f"no ratings by a juror {', '.join(lost)} in this study: {has}")
    return tuple(dict.fromkeys(jurors))


def panel_of(jurors: tuple[str, ...], min_jurors: int | None) -> PanelColumns | None:
    """Return jurors as a jury, None without any; raise BadInput where it needs more than sit on it."""
    needed = len(jurors) if min_jurors is None else min_jurors
    if jurors and not 1 <= needed <= len(jurors):
        raise BadInput(f"min_jurors={needed}: the jury has {len(jurors)} jurors")
    return PanelColumns(jurors, needed) if jurors else None


def _check_options(options: AnalysisOptions) -> None:
    if options.method not in ("paper", "published"):
        raise BadInput(f"method {options.method}: it is paper or published")
    if options.reps < 0:
        raise BadInput(f"reps={options.reps}: it is 0 or more")
    if options.min_shared < 2:
        raise BadInput(f"min_shared={options.min_shared}: an ICC needs at least 2 shared responses")


def _check_criterion(scores: Scores, criterion: str | None) -> None:
    known = dict.fromkeys(name for shape in scores.rubrics.values() for name in shape.criteria)
    if criterion is not None and criterion not in known:
        raise Unknown(f"no rubric has the criterion {criterion}: they have {', '.join(known)}")


def _scope_names(scores: Scores) -> list[str]:
    several = len(scores.benchmarks) > 1
    return [*scores.benchmarks, *([COMBINED] if several else [])]


def _members(scores: Scores, name: str, criterion: str | None) -> list[str]:
    """Return the benchmarks of a scope that can have composites."""
    can = required_criteria(scores.rubrics, criterion)
    return [
        benchmark
        for benchmark in scores.benchmarks
        if benchmark in can and name in (benchmark, COMBINED)
    ]


def _scope(
    scores: Scores,
    read: tuple[Composites, Repeats],
    name: str,
    jury: PanelColumns | None,
    options: AnalysisOptions,
) -> Scope:
    all_composites, all_repeats = read
    members = _members(scores, name, options.criterion)
    jurors, metrics = jury.members if jury else (), scores.raters("metric")
    short = all_composites.incomplete[all_composites.incomplete["benchmark"].isin(members)]
    return Scope(
        name=name,
        grid=analysed_grid(all_composites.values, members, jurors=jurors, metrics=metrics),
        composites=all_composites.values[all_composites.values["benchmark"].isin(members)],
        in_study=int(scores.responses["benchmark"].isin(members).sum()),
        incomplete={
            str(name): int(n) for name, n in short.groupby("rater")["readings"].sum().items()
        },
        repeats=all_repeats.of(members),
        jury=jury,
        jurors=jurors,
        metrics=metrics,
        simulated=scores.simulated,
        options=options,
        n_side_by_side=1 if name == COMBINED else len(scores.benchmarks),
    )

"""What one row of the agreement table holds, and what it is asked of."""

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

import pandas as pd

from calibration import remarks
from calibration.agreement import Panel, one
from calibration.bootstrap import Resampling, Statistic, replicates
from calibration.codes import NoteCode as Code
from calibration.composite import Composites, Repeats, composites, repeats, required_criteria
from calibration.rating_matrix import Grid, analysed_grid
from calibration.scores import COMBINED, Array, Method, Scores
from calibration.values import NAN, Note, Noted, note
from data.errors import BadInput, TooFew, Unknown


@dataclass(frozen=True)
class AgreementRow(Noted):
    """One scorer on one benchmark: a row of `calibrate --json`. None: does not apply."""

    benchmark: str
    scorer: str
    icc: float = NAN
    f_low: float = NAN
    f_high: float = NAN
    boot_low: float = NAN
    boot_high: float = NAN
    n_responses: int = 0
    n_instances: int = 0
    n_clinicians: int = 0
    n_pairs: int | None = None
    n_missing: int = 0
    spearman: float = NAN


@dataclass(frozen=True)
class LikeForLikeRow(AgreementRow):
    """The jury in a clinician's place: `icc` is `jury_icc` minus `clinician_icc`.

    Both are pooled over the clinicians that could be held out: the ICC with the mean of the
    others. The corrected interval is the one that holds where several benchmarks are looked at
    (Bonferroni), NaN where one alone is; `undefined_resamples` of `resamples` have no difference.
    The bootstrap interval is over instances, with these clinicians; the population interval over
    clinicians like these too.
    """

    jury_icc: float = NAN
    clinician_icc: float = NAN
    corrected_low: float = NAN
    corrected_high: float = NAN
    population_low: float = NAN
    population_high: float = NAN
    undefined_resamples: int = 0
    resamples: int = 0


def without_instances(scores: Scores, instances: Collection[str]) -> Scores:
    """Return the scores with some instances, all their responses and ratings left out.

    Everything is then computed as if they had never been in the study, z included.
    """
    left = [
        table[~table["instance_id"].isin(list(instances))].reset_index(drop=True)
        for table in (scores.ratings, scores.responses)
    ]
    return replace(scores, ratings=left[0], responses=left[1])


@dataclass(frozen=True)
class Asked:
    """The options of a table: see `table.agreement_table`. `executor` decides no figure.

    `further` asks for the intervals and the model that stand in notes alone, and take as long to
    load and compute as all else.
    """

    method: Method = "paper"
    criterion: str | None = None
    reps: int = 2000
    seed: int = 0
    min_shared: int = 2
    executor: Executor | None = field(default=None, compare=False, repr=False)
    further: bool = True


@dataclass(frozen=True, eq=False)
class Scope:
    """What is asked of one benchmark, or of all combined.

    Attributes
    ----------
    name : the benchmark, or "combined"
    grid : its analysed set
    given : DataFrame, every composite in scope, analysed or not
    in_study : int, every response in scope
    incomplete : readings without a composite, by rater
    repeats : what clinicians rated again
    jury : None when there are no jurors
    jurors, metrics, simulated : handles
    looked : benchmarks that are looked at side by side, this one among them; 1 of `combined`
    """

    name: str
    grid: Grid
    given: pd.DataFrame
    in_study: int
    incomplete: dict[str, int]
    repeats: Repeats
    jury: Panel | None
    jurors: tuple[str, ...]
    metrics: tuple[str, ...]
    simulated: frozenset[str]
    asked: Asked
    tick: Callable[[int], None]
    looked: int = 1

    @property
    def scorers(self) -> dict[str, Panel]:
        """Return every scorer by its name in the table."""
        jury = {"jury": self.jury} if self.jury else {}
        jurors = {f"juror:{name}": one(name) for name in self.jurors}
        return jury | jurors | {f"metric:{name}": one(name) for name in self.metrics}

    @property
    def clinicians(self) -> tuple[str, ...]:
        """Return the clinicians of the analysed set."""
        return tuple(self.grid.raters[column] for column in self.grid.of_kind("clinician"))

    @property
    def analysed(self) -> Note | None:
        """Return how many responses in scope are analysed, unless all are."""
        return remarks.analysed(len(self.grid.responses), self.in_study)

    def resample(self, statistic: Statistic, most_rows: int | None = None) -> Array:
        """Return the replicates of a statistic over the scope's instances.

        `most_rows` is how many responses it holds at a time; None: all of them.
        """
        grid, asked = self.grid, self.asked
        rows = min(len(grid.responses), most_rows or len(grid.responses))
        how = Resampling(grid.n_clusters, rows, asked.reps, asked.seed, asked.executor)
        return replicates(statistic, how, self.tick)


def compared_names(jurors: Sequence[str], metrics: Sequence[str]) -> list[str]:
    """Return the names of the single scorers that a jury of these jurors is compared with."""
    of_jurors = [f"juror:{name}" for name in jurors if len(jurors) > 1]
    return [*(f"metric:{name}" for name in metrics), *of_jurors]


@dataclass(frozen=True)
class Sitting:
    """Who sits on the jury, and how many of them a response needs; None: all of them."""

    jurors: Sequence[str] | None = None
    needed: int | None = None


def scopes(
    scores: Scores, sitting: Sitting, asked: Asked, report: Callable[[float], None] | None = None
) -> Iterator[Scope]:
    """Yield each benchmark, then "combined" if there are several.

    `report` is told the share of the work done, from above 0 to 1, as a scope resamples.

    Raises
    ------
    Unknown, BadInput, TooFew
        As `table.agreement_table`, before the first is yielded.
    """
    jury = checked(scores, sitting, asked)
    found = composites(scores, asked.criterion)
    if not (found.values["kind"] == "clinician").any():
        raise TooFew("no clinician has rated a response on all criteria: nothing to agree with")
    names, again = _scope_names(scores), repeats(scores, asked.criterion)
    loops, told = 1 + bool(again), report or _silent
    for place, name in enumerate(names):
        advance = _Progress(told, place, len(names), loops * asked.reps)
        yield _scope(scores, (found, again), name, jury, asked, advance)
        told((place + 1) / len(names))


def checked(scores: Scores, sitting: Sitting, asked: Asked) -> Panel | None:
    """Return the jury, None without jurors; raise what `scopes` would of names and options."""
    chosen = known_jurors(scores, sitting.jurors)
    _check_options(asked)
    _check_criterion(scores, asked.criterion)
    return _jury(chosen, sitting.needed)


def why_undefined_scope(scores: Scores, scope: Scope) -> Note | None:
    """Return why a scope has no agreement at all, or None."""
    criterion = scope.asked.criterion
    if criterion is not None and not _members(scores, scope.name, criterion):
        return note(Code.NO_CRITERION, criterion=criterion)
    if not scope.grid.responses:
        return note(Code.NOT_RATED)
    clinical = scope.given[scope.given["kind"] == "clinician"]
    shapes = [scores.rubrics[name] for name in clinical["benchmark"].unique()]
    if len({(shape.low, shape.high) for shape in shapes}) > 1:
        return note(Code.DIFFERENT_SCALES)
    return None


def known_jurors(scores: Scores, jurors: Sequence[str] | None) -> tuple[str, ...]:
    """Return the jurors asked for, each once, or all; raise Unknown for one without a rating."""
    known = scores.raters("juror")
    if jurors is None:
        return known
    if lost := [name for name in jurors if name not in known]:
        has = f"it has {', '.join(known)}" if known else "it has none"
        raise Unknown(f"no ratings by a juror {', '.join(lost)} in this study: {has}")
    return tuple(dict.fromkeys(jurors))


def _jury(jurors: tuple[str, ...], min_jurors: int | None) -> Panel | None:
    needed = len(jurors) if min_jurors is None else min_jurors
    if jurors and not 1 <= needed <= len(jurors):
        raise BadInput(f"min_jurors={needed}: the jury has {len(jurors)} jurors")
    return Panel(jurors, needed) if jurors else None


def _check_options(asked: Asked) -> None:
    if asked.method not in ("paper", "published"):
        raise BadInput(f"method {asked.method}: it is paper or published")
    if asked.reps < 0:
        raise BadInput(f"reps={asked.reps}: it is 0 or more")
    if asked.min_shared < 2:
        raise BadInput(f"min_shared={asked.min_shared}: an ICC needs at least 2 shared responses")


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
    return [one for one in scores.benchmarks if one in can and name in (one, COMBINED)]


def _scope(
    scores: Scores,
    read: tuple[Composites, Repeats],
    name: str,
    jury: Panel | None,
    asked: Asked,
    tick: Callable[[int], None],
) -> Scope:
    found, again = read
    members = _members(scores, name, asked.criterion)
    jurors, metrics = jury.members if jury else (), scores.raters("metric")
    short = found.incomplete[found.incomplete["benchmark"].isin(members)]
    return Scope(
        name=name,
        grid=analysed_grid(found.values, members, jurors=jurors, metrics=metrics),
        given=found.values[found.values["benchmark"].isin(members)],
        in_study=int(scores.responses["benchmark"].isin(members).sum()),
        incomplete={
            str(name): int(n) for name, n in short.groupby("rater")["readings"].sum().items()
        },
        repeats=again.of(members),
        jury=jury,
        jurors=jurors,
        metrics=metrics,
        simulated=scores.simulated,
        asked=asked,
        tick=tick,
        looked=1 if name == COMBINED else len(scores.benchmarks),
    )


class _Progress:
    """Turns resamples done on one of several scopes into the share of all the work done."""

    def __init__(self, report: Callable[[float], None], place: int, of: int, work: int) -> None:
        self.report, self.place, self.of, self.work = report, place, of, work
        self.done = 0

    def __call__(self, resamples: int) -> None:
        self.done += resamples
        self.report((self.place + self.done / self.work) / self.of)


def _silent(share: float) -> None:
    """Report progress to nobody."""

"""Rank every jury that the study's jurors can form by its ICC with the clinicians."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum

import numpy as np

from calibration import remarks
from calibration.agreement import why_undefined
from calibration.juries.pools import (
    JuryPool,
    Sizes,
    common_grid,
    compositions,
    jury_pool,
    number_of_juries,
)
from calibration.juries.resampled import JuryIccs, jury_iccs
from calibration.notes import Note, Noted, counted, listed, note, noted
from calibration.rating_matrix import without_variance
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers
from calibration.shared_notes import UNDEFINED_RESAMPLES
from calibration.values import NAN
from data.errors import BadInput, TooFew

# Juror -> US dollars a response, None where not known; or what it takes -> that, by the parts' names.
Prices = Mapping[str, float | Mapping[str, float | None] | None]
LARGEST = 5  # jurors of a jury, where no sizes are asked for
MOST_CELLS = 2**26  # juries x resamples: half a gigabyte of replicates


@dataclass(frozen=True)
class RankingOptions:
    """Which juries are ranked, and how.

    Attributes
    ----------
    sizes : range or None
        Numbers of jurors of the juries; None takes 1 to 5, or to as many as there are jurors.
    common : bool
        Whether only the responses that all jurors of the pool rated are kept.
    usd : juror -> US dollars a verdict, or those of its parts
        None, or no entry, where the cost is not known. A part that several members of a jury
        take is paid once.
    """

    sizes: Sizes | None = None
    common: bool = False
    usd: Prices = field(default_factory=dict)


@dataclass(frozen=True)
class JuryRow(Noted):
    """One jury: a row of `analyse juries --json`. NaN or None where undefined, not known or not computed.

    Attributes
    ----------
    icc, low, high : float
        ICC(C,2) with the clinicians, and the percentile 95 % interval of this jury as if no
        other had been tried.
    icc_honest, honest_low, honest_high : float
        Expected ICC on new responses, corrected for choosing the best of many, and its 95 %
        interval, which holds for the best of many too (`resampled.expected_iccs`).
    rank : int or None
        1 is the highest ICC; None without one.
    usd_per_response : float or None
        Cost of the verdicts of all its members on one response.
    on_front : bool
        True where no cheaper jury agrees as well, see `on_front`.
    """

    jurors: tuple[str, ...]
    size: int
    icc: float = NAN
    low: float = NAN
    high: float = NAN
    icc_honest: float = NAN
    honest_low: float = NAN
    honest_high: float = NAN
    rank: int | None = None
    usd_per_response: float | None = None
    on_front: bool = False
    n_responses: int = 0
    n_instances: int = 0

    @property
    def name(self) -> str:
        """Return the names of its jurors in one text, for a reader."""
        return listed(self.jurors)


@dataclass(frozen=True)
class Winner:
    """The best of `n_compared` juries."""

    row: JuryRow
    n_compared: int

    @property
    def optimism(self) -> float:
        """Return its ICC minus the one to expect on new responses; NaN where that is not known."""
        return self.row.icc - self.row.icc_honest


@dataclass(frozen=True, eq=False)
class JuryFigures:
    """Juries (M,) and what was computed of them.

    Attributes
    ----------
    names : of all jurors of the pool
    pool : JuryPool
    iccs : JuryIccs
    """

    names: tuple[str, ...]
    pool: JuryPool
    iccs: JuryIccs

    def members(self, jury: int) -> list[int]:
        """Return the numbers of a jury's jurors."""
        members: list[int] = np.flatnonzero(self.pool.subsets[jury]).tolist()
        return members

    def jurors(self, jury: int) -> tuple[str, ...]:
        """Return the names of a jury's jurors."""
        return tuple(self.names[juror] for juror in self.members(jury))


def jury_rows(scope: Scope, figures: JuryFigures, usd: Prices) -> list[JuryRow]:
    """Return the rows by ICC, the highest first, of equal ones the smaller; undefined ones last."""
    iccs = figures.iccs
    order = np.argsort(-np.nan_to_num(iccs.icc, nan=-np.inf), kind="stable").tolist()
    costs = [cost(figures.jurors(jury), usd) for jury in range(len(order))]
    front = on_front(iccs.icc, np.array([NAN if usd is None else usd for usd in costs]))
    rows = []
    for place, jury in enumerate(order):
        is_known, jurors = bool(np.isfinite(iccs.icc[jury])), figures.jurors(jury)
        row = JuryRow(
            jurors=jurors,
            size=len(jurors),
            icc=float(iccs.icc[jury]),
            low=iccs.intervals[jury].low,
            high=iccs.intervals[jury].high,
            icc_honest=float(iccs.expected.icc[jury]),
            honest_low=float(iccs.expected.low[jury]),
            honest_high=float(iccs.expected.high[jury]),
            rank=place + 1 if is_known else None,
            usd_per_response=costs[jury],
            on_front=bool(front[jury]),
            n_responses=int(iccs.n[jury]),
            n_instances=int(iccs.instances[jury]),
            notes=noted(*_row_notes(scope, figures, jury)),
        )
        rows.append(row)
    return rows


def winners(rows: Sequence[JuryRow], sizes: Sizes) -> Iterator[Winner]:
    """Yield the best jury of each size that has one with an ICC."""
    for size in sizes:
        of_size = [row for row in rows if row.size == size]
        if of_size and of_size[0].rank is not None:
            yield Winner(of_size[0], len(of_size))


def cost(jurors: Sequence[str], usd: Prices) -> float | None:
    """Return the US dollars of one verdict of each juror together; None if any is not known.

    Of jurors that take several parts, each part counts once: see `Prices`.
    """
    parts: dict[str, float | None] = {}
    for name in jurors:
        price = usd.get(name)
        parts |= price if isinstance(price, Mapping) else {name: price}
    prices = list(parts.values())
    known = [price for price in prices if price is not None]
    return fsum(known) if len(known) == len(prices) else None


def ranking_notes(
    study: Scope, ranked: Scope, figures: JuryFigures, rows: Sequence[JuryRow], *, common: bool
) -> Iterator[Note | None]:
    """Yield the notes on a ranking: which responses and jurors of the study it leaves out."""
    n = [row.n_responses for row in rows]
    if common:
        dropped = len(study.grid.responses) - len(ranked.grid.responses)
        yield note(
            "common_responses",
            "all juries on the same {responses} responses, those that all jurors rated",
            responses=n[0],
        )
        yield (
            note(
                "not_rated_by_all",
                "{responses:response} that not all jurors rated left out",
                responses=dropped,
            )
            if dropped
            else None
        )
    elif min(n) < max(n):
        yield note(
            "own_responses",
            (
                "juries rated {least} to {most} responses, and each is judged on its own: rank on "
                "common responses to judge all on the same ones"
            ),
            least=min(n),
            most=max(n),
        )
    yield study.analysed
    yield remarks.incomplete(sum(study.incomplete.get(name, 0) for name in figures.names))
    absent = [name for name in study.jurors if name not in figures.names]
    yield (
        note("sit_nowhere", "left out, with no scores or all scores equal: {jurors}", jurors=absent)
        if absent
        else None
    )
    yield remarks.few_instances(min(row.n_instances for row in rows))
    yield remarks.simulated(study.simulated & {*figures.names, *study.clinicians})


def _row_notes(scope: Scope, figures: JuryFigures, jury: int) -> Iterator[Note | None]:
    iccs = figures.iccs
    if np.isnan(iccs.icc[jury]):
        yield _why_undefined(figures, jury)
    elif lost := int(iccs.undefined[jury]):
        yield note(*UNDEFINED_RESAMPLES, lost=lost, resamples=scope.options.reps)
    yield remarks.simulated(scope.simulated & set(figures.jurors(jury)))


def _why_undefined(figures: JuryFigures, jury: int) -> Note | None:
    columns, members = figures.pool.columns, figures.members(jury)
    rows = columns.has_clinicians & columns.has_score[:, members].all(axis=1)
    column = columns.jurors[rows][:, members].mean(axis=1)
    return why_undefined(columns.clinicians[rows], column, names=("the clinicians", "the jury"))


@dataclass(frozen=True)
class Ranking(Noted):
    """All juries by ICC, the highest first and those without one last, with notes on the whole.

    Attributes
    ----------
    pool : names of the jurors that the juries are made of
    sizes : numbers of jurors of the juries
    rows : one a jury
    winner : the jury with the highest ICC; None if none has one
    by_size : the jury with the highest ICC of each size
    n_responses : responses that a clinician scored and that count, whether a juror scored them or not
    common : whether only responses that all jurors of the pool rated were kept
    """

    pool: tuple[str, ...]
    sizes: Sizes
    rows: tuple[JuryRow, ...]
    winner: Winner | None
    by_size: tuple[Winner, ...]
    n_responses: int
    common: bool

    @property
    def n_instances(self) -> int:
        """Return the most instances that a clinician and all members of a jury scored."""
        return max(row.n_instances for row in self.rows)

    @property
    def n_unknown_cost(self) -> int:
        """Return how many juries have a juror whose cost is not known."""
        return sum(row.usd_per_response is None for row in self.rows)

    @property
    def front(self) -> list[JuryRow]:
        """Return the juries on the Pareto front of ICC and cost, the cheapest first."""
        rows = [row for row in self.rows if row.on_front]
        return sorted(rows, key=lambda row: row.usd_per_response or 0.0)


def jury_ranking(scope: Scope, options: RankingOptions) -> Ranking:
    """Rank every jury that the scope's jurors can form by its ICC(C,2) with the clinicians.

    The ICC of a jury is that of `agreement.column_icc`, over the responses that all its members
    and a clinician scored. The highest of many ICCs is too high by chance. So each jury also
    has the ICC to expect on new responses (`resampled.expected_iccs`): what chance adds is
    found by choosing anew in each resample and judging by the instances that it left out.

    Parameters
    ----------
    scope : Scope
        Its jurors are the pool; its options have method, resamples and seed.
    options : RankingOptions

    Returns
    -------
    Ranking
        A juror without scores, or whose z is undefined, is left out and named in a note.

    Raises
    ------
    BadInput
        If sizes do not fit the jurors, or juries x resamples are more than can be computed.
    TooFew
        If no juror has scores that vary, or no response was rated by all (`common`).
    """
    common, study = options.common, scope
    scope, jurors = _eligible(study, common=common)
    sizes = _sizes(len(jurors), options.sizes)
    _check_work(scope, number_of_juries(len(jurors), sizes))
    pool = jury_pool(scope, jurors, compositions(len(jurors), sizes))
    iccs = jury_iccs(scope, pool)
    names = tuple(scope.grid.raters[column] for column in jurors)
    figures = JuryFigures(names, pool, iccs)
    rows = jury_rows(scope, figures, options.usd)
    has_icc = rows[0].rank is not None
    return Ranking(
        pool=names,
        sizes=sizes,
        rows=tuple(rows),
        winner=Winner(rows[0], len(rows)) if has_icc else None,
        by_size=tuple(winners(rows, sizes)),
        n_responses=int(pool.columns.has_clinicians.sum()),
        common=common,
        notes=noted(*ranking_notes(study, scope, figures, rows, common=common)),
    )


def _eligible(scope: Scope, *, common: bool) -> tuple[Scope, Integers]:
    """Return the scope of the responses that count, and the columns of jurors with scores."""
    jurors = _with_scores(scope, scope.grid.columns(scope.jurors))
    if common and len(jurors):
        scope = replace(scope, grid=common_grid(scope.grid, jurors))
        if not scope.grid.responses:
            names = ", ".join(scope.grid.raters[column] for column in jurors)
            raise TooFew(
                f"{scope.name}: no response was rated by all of {names}; name fewer jurors"
            )
        jurors = _with_scores(scope, jurors)
    if not len(jurors):
        raise TooFew(f"{scope.name}: no juror has scores that vary, so there is no jury to rank")
    return scope, jurors


def _with_scores(scope: Scope, jurors: Integers) -> Integers:
    """Return the columns of jurors who have a z, or for raw composites any score."""
    composites = scope.grid.composites[:, jurors]
    if scope.options.method == "published":
        return jurors[(~np.isnan(composites)).any(axis=0)]
    return jurors[~without_variance(composites)]


def _sizes(k: int, sizes: Sizes | None) -> Sizes:
    if sizes is None:
        return range(1, min(LARGEST, k) + 1)
    if not len(sizes) or sizes[0] < 1 or sizes[-1] > k:
        requested = f"{sizes[0]}-{sizes[-1]}" if len(sizes) else "none"
        raise BadInput(
            f"sizes {requested}: there are {counted(k, 'juror')} to choose from; "
            f"give sizes within 1-{k}"
        )
    return sizes


def _check_work(scope: Scope, juries: int) -> None:
    """Raise BadInput where the work would take many minutes, or too much memory for a laptop."""
    if juries * scope.options.reps > MOST_CELLS:
        raise BadInput(
            f"{juries:,} juries in {scope.options.reps:,} resamples are too many: "
            "take smaller sizes, fewer jurors, or fewer resamples"
        )


def on_front(icc: Array, usd: Array) -> Flags:
    """Return which juries are on the Pareto front of agreement and cost.

    Parameters
    ----------
    icc, usd : shape (M,)
        ICC and cost of each jury. NaN where there is no ICC or the cost is not known: such a
        jury is not on the front, and does not count against the others.

    Returns
    -------
    shape (M,)
        True where no other jury has at least this ICC at no higher cost, one of the two
        being better. Juries equal in both are on the front together, or not at all.
    """
    known = np.flatnonzero(~np.isnan(icc) & ~np.isnan(usd))
    front = np.zeros(len(icc), dtype=np.bool_)
    order = known[np.lexsort((-icc[known], usd[known]))]
    best, price = -np.inf, np.nan
    for jury in order:
        front[jury] = icc[jury] > best or (icc[jury] == best and usd[jury] == price)
        if icc[jury] > best:
            best, price = icc[jury], usd[jury]
    return front

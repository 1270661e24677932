"""Blinded pairs: how far jury, jurors and clinicians agree on which of two responses is better.

A pair is a subject and a preference a score from -2 to 2, positive where the first response is
better. Preferences are compared by their sign: first, tie, second.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from calibration import remarks
from calibration.chance_corrected import gwet_ac2
from calibration.clinicians import (
    LEAST_CLINICIANS,
    HeldOutClinician,
    LikeForLike,
    Without,
    mean_of_others,
    population_interval,
)
from calibration.clustered_intervals import clustered_mean, clustered_proportion
from calibration.columns import PanelColumns, columns, single_rater
from calibration.icc import UNDEFINED, Interval
from calibration.notes import Note, Noted, note, noted, undefined
from calibration.rating_matrix import RatingMatrix
from calibration.scope import panel_of
from calibration.scores import Array, Integers
from calibration.shared_notes import CRITERION_UNSCORED
from calibration.values import COMBINED, NAN, AnalysisOptions
from data.errors import BadInput, OffScale, Unknown

MOST = 2  # points of a preference, to either side
ROUNDING = 1e-9  # a mean preference nearer to 0 is a tie
SIDES = ("first", "second")
SIGNS = np.array([-1.0, 0.0, 1.0])
JUDGEMENT = ["pair_id", "instance_id", "benchmark", "rater", "kind", "shown_first", "pass_"]
PREFERENCE_COLUMNS = {*JUDGEMENT, "criterion", "preference"}
PAIR_COLUMNS = {"pair_id", "instance_id", "benchmark", "first_model", "second_model"}


@dataclass(frozen=True, eq=False)
class PairScores:
    """The preferences of one study, as plain values.

    Attributes
    ----------
    preferences : DataFrame
        One row a preference on a criterion: pair_id, instance_id (unique over the whole study),
        benchmark, criterion, rater, kind ("clinician" or "juror"), preference (-2 to 2, never NaN),
        shown_first ("first", "second", or "" where not known) and pass_.
    pairs : DataFrame
        Every pair, judged or not: pair_id, instance_id, benchmark, first_model, second_model; the
        models "" while the study is blind.
    simulated : raters that are no real clinician or juror
    silent : jurors who were asked and gave no preference; they have their seat all the same
    criteria : benchmark -> criteria of its rubric; where it has none here, those that occur

    Raises
    ------
    BadInput, OffScale
        If a column is missing, a pair is unknown, a preference is given twice or no number from
        -2 to 2, or a rater has two kinds.
    """

    preferences: pd.DataFrame
    pairs: pd.DataFrame
    simulated: frozenset[str] = frozenset()
    silent: frozenset[str] = frozenset()
    criteria: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        own, pairs = self.preferences, self.pairs
        for table, needed in ((own, PREFERENCE_COLUMNS), (pairs, PAIR_COLUMNS)):
            if lost := needed - {*table.columns}:
                raise BadInput(f"pairs lack the columns {', '.join(sorted(lost))}")
        if pairs["pair_id"].duplicated().any():
            raise BadInput("a pair_id stands twice among the pairs")
        unknown = own[~own["pair_id"].isin(pairs["pair_id"])]
        twice = own[own.duplicated([*JUDGEMENT, "criterion"])]
        off = own[~(own["preference"].abs() <= MOST)]
        for wrong, error, what in (
            (unknown, BadInput, "there is no such pair"),
            (twice, BadInput, "the same preference is given twice"),
            (off, OffScale, f"a preference is a number from -{MOST} to {MOST}"),
        ):
            for row in wrong.head(1).itertuples():
                raise error(f"preference={row.preference} by {row.rater} on {row.pair_id}: {what}")
        if (own.groupby("rater")["kind"].nunique() > 1).any():
            raise BadInput("a rater is both clinician and juror")

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """Return the benchmarks that have pairs, in alphabetical order."""
        return tuple(sorted(self.pairs["benchmark"].unique()))

    def raters(self, kind: str) -> tuple[str, ...]:
        """Return the handles of one kind of rater, in alphabetical order."""
        judged = {*self.preferences.loc[self.preferences["kind"] == kind, "rater"]}
        return tuple(sorted(judged | (self.silent if kind == "juror" else frozenset())))

    def criteria_of(self, benchmark: str) -> tuple[str, ...]:
        """Return the criteria of a benchmark's rubric."""
        own = self.preferences[self.preferences["benchmark"] == benchmark]
        return self.criteria.get(benchmark) or tuple(sorted(own["criterion"].unique()))


@dataclass(frozen=True)
class PairRow(Noted):
    """One scorer on the pairs of one benchmark. NaN: undefined, as notes say, or does not apply.

    Attributes
    ----------
    benchmark, scorer : "jury", "juror:NAME", "clinicians" (each against the mean of the others, all
        pooled) or "like_for_like"
    criterion : "" for the mean over all
    n : pairs that scorer and clinicians judged; of "clinicians" and "like_for_like" readings, one
        for each clinician and pair
    n_tied : how many of them have a mean preference of 0 by the (other) clinicians
    n_missing : pairs, or readings, without the scorer's preference
    n_instances, n_clinicians : that the pairs are of, and who judged them
    agreement, agreement_low, agreement_high : share of the n - n_tied pairs where the scorer's
        mean preference has the sign of the clinicians', a scorer's tie half; 95 % interval over
        instances of `clustered_intervals.clustered_proportion`
    kappa, ac1 : Cohen's and Gwet's, of first, tie and second, over the n pairs
    consistency : of the `n_both_orders` pairs that a juror judged in both orders, the share where
        these do not have opposite signs; all jurors of a jury are pooled
    shown_first_preferred : of the `n_judgements` single judgements that are no tie, the share for
        the response that was shown first, with the 95 % interval of `first_shown_interval`
    """

    benchmark: str
    scorer: str
    criterion: str = ""
    n: int = 0
    n_tied: int = 0
    n_missing: int = 0
    n_instances: int = 0
    n_clinicians: int = 0
    agreement: float = NAN
    agreement_low: float = NAN
    agreement_high: float = NAN
    kappa: float = NAN
    ac1: float = NAN
    consistency: float = NAN
    n_both_orders: int = 0
    shown_first_preferred: float = NAN
    shown_first_low: float = NAN
    shown_first_high: float = NAN
    n_judgements: int = 0


@dataclass(frozen=True)
class PairsLikeForLike(PairRow):
    """Each clinician held out in turn: the jury and this clinician against the others' sign.

    Attributes
    ----------
    n_pairs : that the n readings are of
    jury, clinician : shares of agreement, pooled over the clinicians, with 95 % intervals as
        `PairRow.agreement` has
    difference, low, high : `jury` minus `clinician`, with `difference_interval`
    corrected_low, corrected_high : the same at level 1 - 0.05 / benchmarks where there are several
    population_low, population_high : over clinicians like these, `clinicians.population_interval`
    without : the comparison without each clinician, where there are three or more
    """

    n_pairs: int = 0
    jury: float = NAN
    jury_low: float = NAN
    jury_high: float = NAN
    clinician: float = NAN
    clinician_low: float = NAN
    clinician_high: float = NAN
    difference: float = NAN
    low: float = NAN
    high: float = NAN
    corrected_low: float = NAN
    corrected_high: float = NAN
    population_low: float = NAN
    population_high: float = NAN
    without: tuple[Without, ...] = ()


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """The pairs of some benchmarks as a matrix, and the single judgements behind it.

    Attributes
    ----------
    grid : pairs by raters; a rater's preference is the mean over criteria, then over what it judged
        again in the same order, then over the orders
    judgements : DataFrame, one row a rater, pair, order and pass with all criteria
    incomplete : judgements that lack a criterion, and count nowhere
    """

    grid: RatingMatrix
    judgements: pd.DataFrame
    incomplete: int

    def by(self, panel: PanelColumns | None) -> Array:
        """Return the mean preference (n,) of a jury or juror, or of the clinicians; NaN without."""
        both = columns(self.grid, panel or PanelColumns((), 0), "published")
        return both.scorer if panel else both.clinicians

    @property
    def clinicians(self) -> tuple[str, ...]:
        """Return the clinicians, in alphabetical order."""
        return tuple(self.grid.raters[own] for own in self.grid.of_kind("clinician"))


def judged_pairs(
    scores: PairScores, benchmarks: Sequence[str], criterion: str | None = None
) -> JudgedPairs:
    """Return the preferences on the pairs of some benchmarks, on one criterion or the mean of all.

    A judgement that lacks one of the criteria is left out whole: nothing is filled in. Clinicians
    and jurors have a column if they judged any pair of the study, or are silent.
    """
    pairs = scores.pairs[scores.pairs["benchmark"].isin(list(benchmarks))]
    own = scores.preferences[scores.preferences["benchmark"].isin(list(benchmarks))]
    needed = {name: {*scores.criteria_of(name)} for name in benchmarks}
    if criterion is not None:
        needed = {name: known & {criterion} for name, known in needed.items()}
    both = zip(own["benchmark"], own["criterion"], strict=True)
    wanted = np.array([name in needed[benchmark] for benchmark, name in both], dtype=bool)
    grouped = own[wanted].groupby(JUDGEMENT, sort=False)["preference"]
    every = grouped.agg(["mean", "size"]).reset_index()
    complete = every["size"] == every["benchmark"].map(
        {name: len(one) for name, one in needed.items()}
    )
    judgements = every[complete].rename(columns={"mean": "preference"}).drop(columns="size")
    of_order = judgements.groupby(["pair_id", "rater", "shown_first"])["preference"].mean()
    table = of_order.groupby(["pair_id", "rater"]).mean().unstack("rater")
    raters = {kind: scores.raters(kind) for kind in ("clinician", "juror")}
    names = [*raters["clinician"], *raters["juror"]]
    _, clusters = np.unique(pairs["instance_id"].to_numpy(dtype=str), return_inverse=True)
    grid = RatingMatrix(
        table.reindex(index=pairs["pair_id"], columns=names).to_numpy(dtype=np.float64),
        tuple(pairs["pair_id"]),
        clusters.astype(np.int64),
        tuple(names),
        tuple(kind for kind, own in raters.items() for _ in own),
    )
    place = dict(zip(pairs["pair_id"], clusters.tolist(), strict=True))
    judgements = judgements.assign(cluster=judgements["pair_id"].map(place).astype(np.int64))
    return JudgedPairs(grid, judgements.reset_index(drop=True), int((~complete).sum()))


def pair_rows(scores: PairScores, options: AnalysisOptions | None = None) -> list[PairRow]:
    """Return how jury, jurors and clinicians agree on pairs, and like for like.

    Parameters
    ----------
    scores : PairScores
    options : of which jurors, min_jurors, benchmark, criterion and without are used

    Returns
    -------
    list of PairRow
        For each benchmark, then "combined" if there are several: the jury, each juror,
        "clinicians", and with a jury "like_for_like", a `PairsLikeForLike`.

    Raises
    ------
    Unknown, BadInput
        If options name a juror, clinician, benchmark or criterion that is not there, or need more
        jurors than sit on the jury.
    """
    options = options or AnalysisOptions()
    scores = checked(scores, options)
    jury = jury_of(scores, options)
    names = [options.benchmark] if options.benchmark else [*scores.benchmarks]
    several = len(names)
    rows: list[PairRow] = []
    for name in [*names, COMBINED] if several > 1 else names:
        members = names if name == COMBINED else [name]
        own = judged_pairs(scores, members, options.criterion)
        n_side_by_side = 1 if name == COMBINED else several
        about = PairRow(name, "", options.criterion or "")
        rows += _rows(own, about, jury, scores.simulated, n_side_by_side)
    return rows


def checked(scores: PairScores, options: AnalysisOptions) -> PairScores:
    """Return the preferences without the clinicians left out; raise Unknown as `pair_rows` does."""
    criteria = {name for one in scores.benchmarks for name in scores.criteria_of(one)}
    for given, known, what in (
        (options.without, scores.raters("clinician"), "clinician"),
        ((options.benchmark,) if options.benchmark else (), scores.benchmarks, "benchmark"),
        ((options.criterion,) if options.criterion is not None else (), criteria, "criterion"),
    ):
        if lost := [name for name in given if name not in known]:
            raise Unknown(f"no pairs with the {what} {', '.join(lost)}: {', '.join(sorted(known))}")
    left = ~scores.preferences["rater"].isin(list(options.without))
    return replace(scores, preferences=scores.preferences[left].reset_index(drop=True))


def jury_of(scores: PairScores, options: AnalysisOptions) -> PanelColumns | None:
    """Return the jury that the options ask for, None without jurors; raise as `pair_rows` does."""
    known = scores.raters("juror")
    if lost := [name for name in options.jurors or () if name not in known]:
        raise Unknown(f"no preferences by a juror {', '.join(lost)}: {', '.join(known) or 'none'}")
    jurors = tuple(dict.fromkeys(known if options.jurors is None else options.jurors))
    return panel_of(jurors, options.min_jurors)


def _rows(
    own: JudgedPairs,
    about: PairRow,
    jury: PanelColumns | None,
    simulated: frozenset[str],
    n_side_by_side: int,
) -> Iterator[PairRow]:
    members = jury.members if jury else ()
    panels = {"jury": jury} if jury else {}
    panels |= {f"juror:{name}": single_rater(name) for name in members}
    reference = own.by(None)
    for scorer, panel in panels.items():
        row = _agreed(replace(about, scorer=scorer), own.by(panel), reference, own.grid.clusters)
        row = _with_orders(row, own, panel.members, in_both=True)
        yield _finished(row, own, panel, simulated)
    row, held = replace(about, scorer="clinicians"), held_readings(own.grid)
    row = _agreed(row, held.clinician, held.others, held.clusters)
    row = _with_orders(row, own, own.clinicians, in_both=False)
    yield _finished(row, own, None, simulated)
    if jury:
        row = _like_for_like(own.grid, about, jury, n_side_by_side)
        yield _finished(row, own, jury, simulated)


def _finished(
    row: PairRow, own: JudgedPairs, panel: PanelColumns | None, simulated: frozenset[str]
) -> PairRow:
    """Return a row with the notes on what it rests on before its own."""
    shown = np.flatnonzero((~np.isnan(own.grid.composites)).any(axis=0))
    clinicians = [own.grid.raters[one] for one in own.grid.of_kind("clinician") if one in shown]
    members = panel.members if panel else ()
    reason = None
    if not clinicians:
        criterion = row.criterion or "all criteria"
        reason = undefined(*CRITERION_UNSCORED, criterion=criterion)
    elif not row.n and row.scorer in ("clinicians", "like_for_like"):
        reason = undefined("no_others_on_pairs", "no pair here was judged by two clinicians")
        if panel and row.n_missing:
            reason = undefined("no_jury_on_pairs", "the jury judged no pair of two clinicians")
    elif not row.n:
        words = "no pair here was judged by clinicians and by {needed} of {jurors}"
        reason = undefined(
            "no_pair_of_both", words, needed=panel.needed if panel else 0, jurors=members
        )
    elif row.n == row.n_tied:
        reason = undefined("all_tied", "clinicians prefer neither response of any pair")
    fewer = remarks.fewer_jurors(panel.needed, len(members)) if panel else None
    instances = remarks.few_instances(row.n_instances)
    left_out = remarks.incomplete(own.incomplete)
    fake = remarks.simulated(simulated & {*members, *clinicians})
    notes = noted(reason, *row.notes, fewer, instances, left_out, fake)
    return replace(row, n_clinicians=len(clinicians), notes=notes)


def signs(preferences: Array) -> Array:
    """Return 1 where the first is preferred, -1 the second, 0 of a tie; NaN stays NaN."""
    return np.sign(np.where(np.abs(preferences) < ROUNDING, 0.0, preferences))


def agreed(scorer: Array, reference: Array) -> Array:
    """Return 1 where two preferences (n,) have one sign, 0 where opposite ones, one half where the scorer ties.

    NaN where either is missing or the reference is a tie.
    """
    told = np.where(signs(reference) == 0, np.nan, signs(reference))
    return np.asarray((1 + signs(scorer) * told) / 2, dtype=np.float64)


def _agreed(row: PairRow, scorer: Array, reference: Array, clusters: Integers) -> PairRow:
    """Return a row with the agreement of two columns of preferences (n,), NaN where missing."""
    both = ~np.isnan(scorer) & ~np.isnan(reference)
    first, second = signs(scorer[both]), signs(reference[both])
    share, ends = share_with_interval(agreed(scorer, reference), clusters)
    return replace(
        row,
        n=int(both.sum()),
        n_tied=int((second == 0).sum()),
        n_missing=int((~np.isnan(reference) & np.isnan(scorer)).sum()),
        n_instances=len(np.unique(clusters[both])),
        agreement=share,
        agreement_low=ends.low,
        agreement_high=ends.high,
        kappa=nominal_kappa(first, second),
        ac1=gwet_ac2(np.column_stack([first, second]), SIGNS, np.eye(3)),
    )


def share_with_interval(
    hits: Array, clusters: Integers, confidence: float = 0.95
) -> tuple[float, Interval]:
    """Return the mean of hits (n,), NaN left out, and its interval; NaN of one instance."""
    known = ~np.isnan(hits)
    own, where = hits[known], clusters[known]
    if not len(own):
        return NAN, UNDEFINED
    ends = clustered_proportion(own, np.ones_like(own), where, confidence)
    return float(own.mean()), ends if len(np.unique(where)) > 1 else UNDEFINED


def nominal_kappa(x: Array, y: Array) -> float:
    """Return Cohen's kappa of two raters' categories (n,), none of them ordered.

    Returns
    -------
    float
        (p_o - p_e) / (1 - p_e), p_e being the sum over categories of the product of both raters'
        shares; at most 1. NaN where both give one and the same category only, or nothing.

    References
    ----------
    Cohen (1960), Educational and Psychological Measurement 20, 37.
    """
    if not len(x):
        return NAN
    chance = sum(float((x == one).mean() * (y == one).mean()) for one in np.unique([x, y]))
    return (float((x == y).mean()) - chance) / (1 - chance) if chance < 1 else NAN


def _with_orders(
    row: PairRow, own: JudgedPairs, raters: Sequence[str], *, in_both: bool
) -> PairRow:
    """Return a row with how its raters judged by the order; consistency where `in_both` is asked."""
    mine = own.judgements[own.judgements["rater"].isin(list(raters))]
    mine = mine[mine["shown_first"].isin(SIDES)]
    notes: list[Note | None] = []
    if in_both:
        means = mine.groupby(["rater", "pair_id", "shown_first"])["preference"].mean()
        table = means.unstack("shown_first").reindex(columns=list(SIDES)).to_numpy(dtype=float)
        both = ~np.isnan(table).any(axis=1)
        of_orders = signs(table[both])
        reversed_ = of_orders[:, 0] * of_orders[:, 1] < 0
        row = replace(
            row,
            n_both_orders=int(both.sum()),
            consistency=float(1 - reversed_.mean()) if both.any() else NAN,
        )
        words = "{pairs:pair} judged in one order only, where position and preference are mixed"
        single = int((~both).sum())
        notes += [note("one_order", words, pairs=single)] if single and both.any() else []
    of_each = signs(mine["preference"].to_numpy(dtype=np.float64))
    side = np.where(mine["shown_first"] == "first", 1.0, -1.0)
    hits = np.where(of_each == 0, np.nan, (of_each == side).astype(float))
    share, ends = first_shown_interval(hits, mine["cluster"].to_numpy(dtype=np.int64))
    if ends.low > 0.5 or ends.high < 0.5:
        words = (
            "prefers the response that is shown {side}: the one shown first in {share:.0%} of "
            "{judgements:judgement} that are no tie (95 % interval {low:.0%} to {high:.0%})"
        )
        notes.append(
            note(
                "position_bias",
                words,
                side="first" if share > 0.5 else "second",
                share=share,
                judgements=int((~np.isnan(hits)).sum()),
                low=ends.low,
                high=ends.high,
            )
        )
    return replace(
        row,
        shown_first_preferred=share,
        shown_first_low=ends.low,
        shown_first_high=ends.high,
        n_judgements=int((~np.isnan(hits)).sum()),
        notes=(*row.notes, *noted(*notes)),
    )


def first_shown_interval(hits: Array, clusters: Integers) -> tuple[float, Interval]:
    """Return the share of judgements (n,) for the response shown first, and its 95 % interval.

    By t between instances, so that a juror who judges both orders alike, and so prefers each place
    once, is not taken for a coin; by `clustered_proportion` where instances do not differ, or the
    share is 0 or 1. `hits` is 1, 0, or NaN of a tie, which is left out. NaN of one instance.
    """
    share, ends = share_with_interval(hits, clusters)
    mean = clustered_mean(hits, clusters, int(clusters.max(initial=-1)) + 1)
    if mean.error > ROUNDING and share not in (0.0, 1.0):
        own = mean.interval()
        ends = Interval(max(own.low, 0.0), min(own.high, 1.0))
    return share, ends


@dataclass(frozen=True, eq=False)
class HeldReadings:
    """One reading for each clinician and pair that this and another clinician judged.

    Attributes
    ----------
    clinician, others : shape (m,), preferences of the clinician and of the mean of the others
    jury : shape (m,), the jury's, NaN where there is none
    held, rows, clusters : shape (m,), the clinician's column, the pair and its instance
    """

    clinician: Array
    others: Array
    jury: Array
    held: Integers
    rows: Integers
    clusters: Integers

    @property
    def hits(self) -> Array:
        """Return agreement with the others, (2, m), of jury and clinician; NaN where not compared."""
        both = np.stack([agreed(own, self.others) for own in (self.jury, self.clinician)])
        return np.where(np.isnan(both).any(axis=0), np.nan, both)


def held_readings(grid: RatingMatrix, jury: PanelColumns | None = None) -> HeldReadings:
    """Return the readings of each clinician held out in turn."""
    own = grid.composites[:, grid.of_kind("clinician")]
    others = mean_of_others(own)
    rows, held = np.nonzero(~np.isnan(own) & ~np.isnan(others))
    given = columns(grid, jury, "published").scorer if jury else np.full(len(own), np.nan)
    return HeldReadings(
        own[rows, held], others[rows, held], given[rows], held, rows, grid.clusters[rows]
    )


def difference_interval(hits: Array, clusters: Integers, confidence: float = 0.95) -> Interval:
    """Return the interval of the difference of two shares of the same readings.

    By t between instances of the ratio of sums. Where no instance moves the difference, as where
    both always agree with the others, from the intervals of the two shares as if they were
    independent. Within -1 to 1; NaN of one instance.

    Parameters
    ----------
    hits : shape (2, m), 1, one half or 0; NaN in both where not compared
    clusters : shape (m,)
    confidence : of the interval

    References
    ----------
    Cochran (1977), Sampling Techniques, chapter 9A; Newcombe (1998), Statistics in Medicine 17, 873,
    for the squares of half intervals.
    """
    (one, first), (other, second) = (share_with_interval(own, clusters, confidence) for own in hits)
    mean = clustered_mean(hits[0] - hits[1], clusters, int(clusters.max(initial=-1)) + 1)
    if mean.error > ROUNDING:
        own = mean.interval(confidence)
        return Interval(max(own.low, -1.0), min(own.high, 1.0))
    down = np.hypot(one - first.low, second.high - other)
    up = np.hypot(first.high - one, other - second.low)
    return Interval(max(one - other - float(down), -1.0), min(one - other + float(up), 1.0))


def _like_for_like(
    grid: RatingMatrix, about: PairRow, jury: PanelColumns, n_side_by_side: int
) -> PairsLikeForLike:
    held = held_readings(grid, jury)
    hits, given = held.hits, ~np.isnan(held.jury)
    known = ~np.isnan(hits[0])
    row = PairsLikeForLike(
        about.benchmark,
        "like_for_like",
        about.criterion,
        n=int(given.sum()),
        n_tied=int((given & (signs(held.others) == 0)).sum()),
        n_missing=int((~given).sum()),
        n_pairs=len(np.unique(held.rows[given])),
        n_instances=len(np.unique(held.clusters[given])),
    )
    if not known.any():
        return row
    (jury_share, of_jury), (own_share, of_clinician) = (
        share_with_interval(own, held.clusters) for own in hits
    )
    ends = difference_interval(hits, held.clusters)
    several = n_side_by_side > 1
    level = 1 - 0.05 / n_side_by_side
    corrected = difference_interval(hits, held.clusters, level) if several else UNDEFINED
    row = replace(
        row,
        jury=jury_share,
        jury_low=of_jury.low,
        jury_high=of_jury.high,
        clinician=own_share,
        clinician_low=of_clinician.low,
        clinician_high=of_clinician.high,
        difference=jury_share - own_share,
        low=ends.low,
        high=ends.high,
        corrected_low=corrected.low,
        corrected_high=corrected.high,
        without=_without_each(grid, jury, np.unique(held.held[known])),
    )
    return _over_clinicians(row, grid, held)


def _without_each(
    grid: RatingMatrix, jury: PanelColumns, compared: Integers
) -> tuple[Without, ...]:
    """Return like for like without each clinician that is compared; () with fewer than three."""
    clinicians, every = grid.of_kind("clinician"), np.arange(len(grid.raters))
    rows = []
    for own in clinicians[compared] if len(compared) >= LEAST_CLINICIANS else ():
        held = held_readings(grid.of_columns(every[every != own]), jury)
        shares = [share_with_interval(hits, held.clusters) for hits in held.hits]
        difference = shares[0][0] - shares[1][0]
        rows.append(Without(grid.raters[own], difference, shares[1][1].low))
    return tuple(rows)


def _over_clinicians(
    row: PairsLikeForLike, grid: RatingMatrix, held: HeldReadings
) -> PairsLikeForLike:
    """Return a row with the interval over clinicians like these, or a note why there is none."""
    hits = held.hits
    defined = tuple(
        HeldOutClinician(name, np.flatnonzero(held.held == place))
        for place, name in enumerate(grid.raters[own] for own in grid.of_kind("clinician"))
        if not np.isnan(hits[0, held.held == place]).all()
    )
    error = clustered_mean(hits[0] - hits[1], held.clusters, grid.n_clusters).error
    ends = population_interval(
        LikeForLike(defined, (), (row.jury, row.clinician)),
        [one.difference for one in row.without],
        error,
    )
    if isinstance(ends, Note):
        return replace(row, notes=(*row.notes, ends))
    return replace(row, population_low=ends.low, population_high=ends.high)

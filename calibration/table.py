"""The agreement table: every scorer against the clinicians, on each benchmark and combined."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from calibration import remarks
from calibration.clinicians import (
    ClinicianPairs,
    LikeForLike,
    clinician_pairs,
    clinician_rows,
    left_out_iccs,
    like_for_like,
    population_interval,
    without_each,
)
from calibration.columns import (
    LEAST_RESPONSES,
    PanelColumns,
    column_icc,
    columns,
    unscaled,
    why_no_icc,
)
from calibration.crossed import MixedModel, clinicians_mixed_model
from calibration.data_quality import same_scores_given
from calibration.decision import Decision
from calibration.icc import UNDEFINED, Interval, f_interval
from calibration.intervals import icc_difference, jackknife_error, jackknife_interval, left_out
from calibration.notes import Figures, Note, filled, note, noted, quoted, told, undefined
from calibration.other_measures import spearman as spearman_of
from calibration.protocol import Protocol
from calibration.reliability import intra_rater_row
from calibration.scope import (
    AgreementRow,
    CliniciansRow,
    LikeForLikeRow,
    Scope,
    scopes,
    why_undefined_scope,
)
from calibration.scores import Array, Flags, Scores, scores_of_table
from calibration.shared_notes import NO_JURY_SCORE, NO_SCORE
from calibration.values import COMBINED, NAN, RESAMPLES, AnalysisOptions, Method
from calibration.verdict import JuryClaim, decisions
from calibration.weighted import scorer_iccs

FIGURES = [one.name for one in dataclasses.fields(AgreementRow) if one.name != "notes"]
COLUMNS = (*FIGURES, "note")
COUNTS = [name for name in FIGURES if name.startswith("n_")]
MOST_AT_END, LEAST_AWAY = 2 / 3, 60  # share of scores at one end; responses that are not there
ENOUGH_EACH, LOWERED = (
    15,
    0.35,
)  # responses a clinician; an ICC is too low by this over their number
ERROR = 0.05  # of all intervals of single benchmarks together
BOTH = ("the clinicians", "the jury")


def agreement_rows(
    scores: Scores,
    options: AnalysisOptions,
    tick: Callable[[float], None] | None = None,
) -> list[AgreementRow]:
    """Return the rows of the agreement table, as `agreement_table` describes them."""
    rows: list[AgreementRow] = []
    alike: dict[str, tuple[Note, ...]] = {}
    for scope in scopes(scores, options, tick):
        reason = why_undefined_scope(scores, scope)
        if scope.jury and not alike:
            alike = same_scores_given(scores, scope.jury.members, options.criterion)
        own = _undefined(scope, reason) if reason else scope_rows(scope)
        for row in own:
            noted_row = _with_notes(row, alike) if row.scorer == "jury" else row
            rows.append(
                _with_answers(noted_row, scope, scores) if len(scores.instead) else noted_row
            )
    return rows


def _with_answers(row: AgreementRow, scope: Scope, scores: Scores) -> AgreementRow:
    """Return a row with how often its raters said something else in the place of a score."""
    kind, _, name = row.scorer.partition(":")
    raters: Sequence[str] = {"jury": scope.jurors, "juror": (name,), "metric": ()}.get(
        kind, scope.clinicians
    )
    counts = scores.instead_of(raters, scores.members(scope.name))
    inapplicable, unsure = (int(counts.get(one, 0)) for one in ("not_applicable", "cannot_tell"))
    return replace(row, n_not_applicable=inapplicable, n_cannot_tell=unsure)


def _with_notes(row: AgreementRow, notes: Mapping[str, tuple[Note, ...]]) -> AgreementRow:
    return replace(row, notes=(*row.notes, *notes.get(row.benchmark, ())))


def agreement_table(
    scores: Scores,
    *,
    jurors: Sequence[str] | None = None,
    method: Method = "paper",
    criterion: str | None = None,
    reps: int = RESAMPLES,
    seed: int = 0,
    min_shared: int = 2,
    min_jurors: int | None = None,
    tick: Callable[[float], None] | None = None,
) -> pd.DataFrame:
    """Return how far a jury, its jurors, metrics and clinicians agree with clinicians.

    Parameters
    ----------
    scores : Scores
    jurors : sequence of handles, optional
        The jury; None takes every juror that has ratings.
    method : "paper" or "published"
        "paper": z within every rater over the analysed set, then means, then ICC(3,2).
        "published": means of raw composites, z of the two columns over the responses
        that have both, then ICC(3,2). The clinicians row is the same in both.
    criterion : str, optional
        One criterion instead of the mean of all.
    reps, seed : without effect: no figure of this table rests on chance
    min_shared : responses that a pair of clinicians must share, at least 2
    min_jurors : jurors that must have scored a response; None means all of them
    tick : called with the share of the work done, from above 0 to 1

    Returns
    -------
    DataFrame
        For each benchmark, then "combined" if there are several, the scorers "jury",
        "juror:NAME", "metric:NAME", "clinicians", "like_for_like" and, where there are
        hidden repeats, "intra_rater". Columns:

        icc : ICC(3,2), consistency; for like_for_like the difference of two ICCs; for
            intra_rater ICC(A,1) of first and repeated composites
        low, high : 95 % interval, of the jackknife over instances (`intervals`), with
            everything computed anew without each
        f_low, f_high : exact 95 % interval for independent, normal responses, which scores are
            not: it is not shown
        n_responses, n_instances, n_clinicians, n_pairs : what the number rests on
        n_missing : responses of the analysed set without this scorer's composite; for
            like_for_like those that no comparison uses, for intra_rater the repeats
            without a composite both times; its n_responses are repeats
        spearman : rank correlation of the two columns
        note : what was left out, and why a number is undefined

        Undefined numbers are NaN, counts that do not apply NA.

    Raises
    ------
    Unknown
        If a juror or the criterion is not in the study.
    BadInput
        If an option is out of range.
    TooFew
        If no clinician has rated any response with a composite.
    """
    options = AnalysisOptions(
        jurors=None if jurors is None else tuple(jurors),
        min_jurors=min_jurors,
        criterion=criterion,
        method=method,
        min_shared=min_shared,
        reps=reps,
        seed=seed,
    )
    return frame_of_rows(agreement_rows(scores, options, tick))


def frame_of_rows(rows: Sequence[AgreementRow]) -> pd.DataFrame:
    """Return rows as `agreement_table` has them."""
    cells = [[getattr(row, name) for name in FIGURES] + [told(row.notes)] for row in rows]
    table = pd.DataFrame(cells, columns=list(COLUMNS))
    return table.astype(dict.fromkeys(COUNTS, "Int64"))


@dataclass(frozen=True, eq=False)
class Agreement:
    """What `agreement` finds.

    Attributes
    ----------
    table : DataFrame, as `agreement_table` has it
    decision : whether the jury may stand in for a clinician, with reasons and the next step
    notes : on the jury's row of the whole
    """

    table: pd.DataFrame
    decision: Decision
    notes: tuple[Note, ...]


def agreement(
    ratings: pd.DataFrame,
    *,
    scale: tuple[int, int] | None = None,
    protocol: Protocol | None = None,
    **options: Any,
) -> Agreement:
    """Return how far jurors and metrics agree with clinicians, and whether the jury may stand in.

    Parameters
    ----------
    ratings : DataFrame
        A row a score: response_id, rater, kind ("clinician", "juror" or "metric") and score. Also,
        where there is more than one: instance_id (what several responses answer), benchmark,
        criterion, pass_ (1 for a hidden repeat) and replicate.
    scale : two ends of clinicians' and jurors' scores; the lowest and highest given where None
    protocol : the margin, and what else was fixed beforehand; None decides nothing
    options : as of `agreement_table`: jurors, min_jurors, criterion, method, min_shared

    Returns
    -------
    Agreement

    Raises
    ------
    BadInput, OffScale, Unknown, TooFew
        As `Scores` and `agreement_table`.

    Examples
    --------
    Peak flow of 17 people by a large and by a mini Wright meter, which correlate with r = 0.94
    (Bland & Altman 1986, Lancet 327, 307): the ICC of two z-scored columns is 2r / (1 + r) = 0.97.

    >>> import calibration
    >>> large = [494, 395, 516, 434, 476, 557, 413, 442, 650, 433, 417, 656, 267, 478, 178, 423, 427]
    >>> mini = [512, 430, 520, 428, 500, 600, 364, 380, 658, 445, 432, 626, 260, 477, 259, 350, 451]
    >>> both = pd.DataFrame({"large": large, "mini": mini}).rename_axis("response_id")
    >>> ratings = both.melt(var_name="rater", value_name="score", ignore_index=False).reset_index()
    >>> ratings["kind"] = ratings["rater"].map({"large": "clinician", "mini": "juror"})
    >>> found = calibration.agreement(ratings, method="published")
    >>> found.table.set_index("scorer").loc["jury", ["icc", "low", "high"]].astype(float).round(2).tolist()
    [0.97, 0.92, 0.99]

    With a single clinician nobody can be held out, so that nothing is decided:

    >>> found.decision.kind.value
    'undefined'
    """
    scores, analysis = scores_of_table(ratings, scale), AnalysisOptions(**options)
    rows = agreement_rows(scores, analysis)
    jury = analysis.jurors or scores.raters("juror")
    claim = JuryClaim(protocol, protocol is not None and protocol.is_about(jury, analysis))
    found = decisions(rows, claim)
    whole = COMBINED if COMBINED in found else rows[0].benchmark
    notes = next((row.notes for row in rows if (row.benchmark, row.scorer) == (whole, "jury")), ())
    return Agreement(frame_of_rows(rows), found[whole], notes)


def _undefined(scope: Scope, reason: Note) -> Iterator[AgreementRow]:
    """Yield the rows of a benchmark without agreement, each with the reason alone."""
    for scorer in scope.scorers:
        yield AgreementRow(scope.name, scorer, notes=(reason,))
    yield AgreementRow(scope.name, "clinicians", n_pairs=0, notes=(reason,))
    if scope.jury:
        yield LikeForLikeRow(scope.name, "like_for_like", notes=(reason,))
    if scope.repeats:
        yield AgreementRow(scope.name, "intra_rater", notes=(reason,))


def scope_rows(scope: Scope) -> Iterator[AgreementRow]:
    """Yield the rows of a scope, in the order of the contract."""
    grid, method, weights = scope.grid, scope.options.method, left_out(scope.grid.n_clusters)
    pairs = clinician_pairs(grid, scope.options.min_shared)
    held = like_for_like(grid, scope.jury, method) if scope.jury else None
    without = scorer_iccs(grid, [*scope.scorers.values()], method, weights)
    for place, (scorer, panel) in enumerate(scope.scorers.items()):
        yield _scorer_row(scope, scorer, panel, without[:, place])
    yield clinicians_row(scope, pairs, pairs.icc_under(grid, weights))
    if scope.jury and held:
        yield like_for_like_row(scope, scope.jury, held)
    if scope.repeats:
        yield intra_rater_row(scope)


def _scorer_row(scope: Scope, scorer: str, panel: PanelColumns, without: Array) -> AgreementRow:
    pair = columns(scope.grid, panel, scope.options.method)
    both = pair.both
    x, y = pair.clinicians[both], pair.scorer[both]
    icc = column_icc(x, y, scope.options.method)
    reason = _why_undefined(scope, scorer, panel, (x, y))
    exact = f_interval(icc, len(x))
    # A scorer without variance has no column; its scores, and the clinicians', are there all the same.
    rows = panel.present(scope.grid) if reason else both
    instances = scope.grid.instances(rows)
    crowded = _at_one_end(scope, rows)
    ends = UNDEFINED if reason or crowded else jackknife_interval(without)
    clinicians = _contributing(scope, rows, rated=bool(reason))
    spearman = NAN if reason else spearman_of(x, y)
    return AgreementRow(
        benchmark=scope.name,
        scorer=scorer,
        icc=icc,
        low=ends.low,
        high=ends.high,
        f_low=exact.low,
        f_high=exact.high,
        n_responses=int(rows.sum()),
        n_instances=instances,
        n_clinicians=len(clinicians),
        n_missing=int((~panel.present(scope.grid)).sum()),
        spearman=spearman,
        notes=noted(
            *_scorer_notes(scope, panel, both, clinicians, reason),
            *(reason, None if reason else crowded, remarks.negative(icc, ends.high, spearman)),
        ),
    )


def _at_one_end(scope: Scope, rows: Flags) -> Note | None:
    """Say that no interval covers where nearly all that clinicians gave is at one end, or return None.

    That is over two thirds of their composites, with fewer than 60 responses that any of them gave
    another one: in studies drawn from MentalBench 95 % intervals of every method hold in 57 to 90 %
    of cases then.
    """
    given = scope.grid.composites[np.ix_(rows, scope.grid.of_kind("clinician"))]
    if not given.size or np.isnan(given).all():
        return None
    for end in (np.nanmax(given), np.nanmin(given)):
        share = float((given == end).sum() / (~np.isnan(given)).sum())
        others = int(((given != end) & ~np.isnan(given)).any(axis=1).sum())
        if MOST_AT_END < share < 1 and others < LEAST_AWAY:
            return note(
                "at_one_end",
                "no interval: {share:.0%} of the clinicians' scores are {end:.3g}, and no method covers "
                "with {others:response} of other scores: read AC2 and what is detected",
                share=share,
                end=end,
                others=others,
            )
    return None


def _why_undefined(
    scope: Scope, scorer: str, panel: PanelColumns, pair: tuple[Array, Array]
) -> Note | None:
    """Return why a scorer has no ICC with the clinicians, or None."""
    if reason := _unscored(scope, scorer, panel):
        return reason
    if scorer != "jury":
        return why_no_icc(scope.grid, panel, scope.options.method, pair)
    reason = why_no_icc(scope.grid, panel, scope.options.method, pair, BOTH)
    scored = int(panel.present(scope.grid).sum())
    if reason and reason.code in ("no_z", "same_score") and scored >= LEAST_RESPONSES:
        return undefined("tells_none_apart", _tells_none_apart, who=reason["who"], responses=scored)
    return reason


def _unscored(scope: Scope, scorer: str, panel: PanelColumns) -> Note | None:
    """Note that a scorer has no score at all on the analysed responses, or return None."""
    if panel.present(scope.grid).any():
        return None
    if scorer == "jury":
        return undefined(*NO_JURY_SCORE, needed=panel.needed)
    kind, name = scorer.split(":", 1)
    return undefined(*NO_SCORE, kind=kind, name=name)


def _scorer_notes(
    scope: Scope, panel: PanelColumns, both: Flags, clinicians: tuple[str, ...], reason: Note | None
) -> Iterator[Note | None]:
    yield _coverage(scope, panel)
    yield scope.analysed
    yield remarks.fewer_jurors(panel.needed, len(panel.members))
    if scope.options.method == "paper" and not (reason and reason.code == "no_z"):
        yield remarks.no_variance(unscaled(scope.grid, (*scope.clinicians, *panel.members)))
    if panel is scope.jury and scope.options.method == "paper":
        yield _few_each(scope)
    yield remarks.incomplete(sum(scope.incomplete.get(name, 0) for name in panel.members))
    instances = scope.grid.instances(both)
    yield remarks.few_instances(instances)
    yield remarks.simulated(scope.simulated & {*panel.members, *clinicians})


def _few_each(scope: Scope) -> Note | None:
    """Say by how much z within clinicians who rated few responses lowers the ICC, or return None.

    Simulated studies of 20 clinicians, two a response: some 0.35 / m where each rated m, whatever
    the ICC (docs/evidence.md).
    """
    given = (~np.isnan(scope.grid.composites[:, scope.grid.of_kind("clinician")])).sum(axis=0)
    median = float(np.median(given))
    if not 2 <= median < ENOUGH_EACH:
        return None
    words = (
        "{median:g} responses a clinician (median): z within so few makes ICCs too low, by about "
    )
    return note("few_each", words + "{lower:.2f}", median=median, lower=LOWERED / median)


def _coverage(scope: Scope, panel: PanelColumns) -> Note:
    own = scope.composites[scope.composites["rater"].isin(panel.members)]
    n_jurors = own.groupby("response_id")["rater"].size()
    return remarks.coverage(
        int(panel.present(scope.grid).sum()),
        len(scope.grid.responses),
        int((n_jurors >= panel.needed).sum()),
        scope.in_study,
    )


def _contributing(scope: Scope, rows: Flags, *, rated: bool = False) -> tuple[str, ...]:
    """Return the clinicians whose composites enter the clinicians' column of some rows, or who `rated` them."""
    own = scope.grid.composites[:, scope.grid.of_kind("clinician")]
    contributing = np.flatnonzero((~np.isnan(own[rows])).any(axis=0))
    scales = scope.options.method == "paper" and not rated
    flat = unscaled(scope.grid, scope.clinicians) if scales else ()
    return tuple(
        name for name in np.array(scope.clinicians)[contributing].tolist() if name not in flat
    )


def clinicians_row(scope: Scope, clinician_pairs: ClinicianPairs, without: Array) -> CliniciansRow:
    """Return the row of clinicians compared with each other in pairs."""
    grid = scope.grid
    rows = np.isin(np.arange(len(grid.responses)), clinician_pairs.shared)
    ends = jackknife_interval(without)
    model = clinicians_mixed_model(grid) if _wants_model(scope, clinician_pairs) else None
    return CliniciansRow(
        benchmark=scope.name,
        scorer="clinicians",
        icc=clinician_pairs.icc,
        low=ends.low,
        high=ends.high,
        n_responses=int(rows.sum()),
        n_instances=grid.instances(rows),
        n_clinicians=len(clinician_pairs.clinicians or scope.clinicians),
        n_pairs=len(clinician_pairs.defined),
        each=tuple(clinician_rows(scope.name, grid, scope.options.method)),
        notes=noted(
            *_pair_notes(scope, clinician_pairs, model),
            scope.analysed,
            remarks.incomplete(sum(scope.incomplete.get(name, 0) for name in scope.clinicians)),
            remarks.few_instances(grid.instances(rows)),
            remarks.negative_pairs(clinician_pairs, ends.high, model) if model else None,
            remarks.simulated(scope.simulated & set(scope.clinicians)),
        ),
    )


def _wants_model(scope: Scope, clinician_pairs: ClinicianPairs) -> bool:
    """Return whether to fit the mixed model: where the options ask for it, or the mean is below 0."""
    return scope.options.further or clinician_pairs.icc < 0


def _pair_notes(
    scope: Scope, clinician_pairs: ClinicianPairs, model: MixedModel | None
) -> Iterator[Note]:
    if len(scope.clinicians) == 1:
        yield remarks.only_clinician(scope.clinicians[0])
        return
    yield from remarks.pairs(clinician_pairs, scope.options.min_shared)
    if model:
        yield remarks.mixed_model(model)


def like_for_like_row(scope: Scope, jury: PanelColumns, held: LikeForLike) -> LikeForLikeRow:
    """Return the row of the leave-one-clinician-out comparison."""
    grid, several = scope.grid, scope.n_side_by_side
    rows = np.isin(np.arange(len(grid.responses)), held.rows)
    row = LikeForLikeRow(
        benchmark=scope.name,
        scorer="like_for_like",
        icc=held.difference,
        n_responses=int(rows.sum()),
        n_instances=grid.instances(rows),
        n_clinicians=len(held.defined) or len(scope.clinicians),
        n_missing=int((~rows).sum()),
        jury_icc=held.iccs[0],
        clinician_icc=held.iccs[1],
    )
    level, others = 1 - ERROR / several, None
    if held.defined:
        row, others = _with_intervals(row, scope, jury, held, level)
    notes = noted(
        *_held_notes(scope, jury, held, Interval(row.low, row.high)),
        remarks.corrected(several, level, Interval(row.corrected_low, row.corrected_high)),
        others,
        scope.analysed,
        remarks.few_instances(row.n_instances),
        remarks.simulated(scope.simulated & {*jury.members, *scope.clinicians}),
    )
    return replace(row, notes=notes)


def _with_intervals(
    row: LikeForLikeRow, scope: Scope, jury: PanelColumns, held: LikeForLike, level: float
) -> tuple[LikeForLikeRow, Note | None]:
    """Return the row with its intervals, and why there is none over clinicians like these."""
    grid, method = scope.grid, scope.options.method
    of_jury, of_clinician = left_out_iccs(grid, jury, held, method)[:, :2].T
    gap, wide = (icc_difference(of_jury, of_clinician, one, mirrored=True) for one in (0.95, level))
    jurys, clinicians = (jackknife_interval(one, mirrored=True) for one in (of_jury, of_clinician))
    without, apart = without_each(grid, jury, held, method), of_jury - of_clinician
    differences = [one.difference for one in without]
    over = population_interval(held, differences, jackknife_error(apart))
    why, ends = (over, UNDEFINED) if isinstance(over, Note) else (None, over)
    several = scope.n_side_by_side > 1
    row = replace(
        row,
        low=gap.low,
        high=gap.high,
        jury_low=jurys.low,
        jury_high=jurys.high,
        clinician_low=clinicians.low,
        clinician_high=clinicians.high,
        without=without,
        corrected_low=wide.low if several else NAN,
        corrected_high=wide.high if several else NAN,
        population_low=ends.low,
        population_high=ends.high,
        undefined_resamples=int((~np.isfinite(apart[1:])).sum()),
        resamples=len(apart) - 1,
    )
    return row, why


def _held_notes(
    scope: Scope, jury: PanelColumns, held: LikeForLike, ends: Interval
) -> Iterator[Note]:
    if len(scope.clinicians) == 1:
        yield remarks.only_clinician(scope.clinicians[0])
        return
    if not held.defined:
        pair = columns(scope.grid, jury, scope.options.method)
        both = pair.clinicians[pair.both], pair.scorer[pair.both]
        reason = _why_undefined(scope, "jury", jury, both)
        if reason and reason.code in ("tells_none_apart", "no_jury_score"):
            yield reason
            return
        yield undefined("none_held", "no clinician can be compared with the mean of others")
    else:
        of_jury, of_clinician = held.iccs
        yield note(
            "held_iccs",
            "ICC with the other clinicians: jury {jury:z.3f}, held-out clinician {clinician:z.3f}",
            jury=of_jury,
            clinician=of_clinician,
        )
        yield from remarks.held(held, ends)
    if held.undefined:
        left_out = [(clinician.clinician, clinician.reason) for clinician in held.undefined]
        yield note("not_held", _not_held, clinicians=left_out)


def _not_held(figures: Figures) -> str:
    clinicians = (f"{quoted(name)} ({why})" for name, why in figures["clinicians"])
    return f"not compared: {', '.join(clinicians)}"


def _tells_none_apart(figures: Figures) -> str:
    which = "they tell" if figures["who"] == "the clinicians" else "it tells"
    text = "{who:scorer} gave all {responses:response} the same score: "
    return filled(text + f"{which} no response from another", figures)

"""Compare models: win rates and macro-averages by clinicians, by the jury, and by both together."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from calibration.codes import NoteCode as Code
from calibration.decision import Decision
from calibration.models.decision import decide
from calibration.models.estimates import model_means, resampled_figures
from calibration.models.gaps import Gap, detectable_row, gaps
from calibration.models.model_rows import category_rows, model_rows
from calibration.models.model_scores import ModelScores, check_names, model_scores
from calibration.models.rows import CORRECTED, JURY, WAYS, CategoryRow, DetectableRow, ModelRow
from calibration.scores import RubricShape, Scores
from calibration.values import AnalysisOptions, Note, note
from data.errors import BadInput


@dataclass(frozen=True)
class ModelComparison:
    """Models compared, by each way of scoring.

    Attributes
    ----------
    rows : models by win rate, the best first, for each way of scoring
    categories, detectable : rows of the categories, and of the minimum detectable effects
    gaps : differences between two models
    decision : whether a model leads
    n_both : responses that both clinicians and the jury scored
    benchmarks : those compared; benchmarks that lack the criterion are left out
    """

    rows: tuple[ModelRow, ...]
    categories: tuple[CategoryRow, ...]
    detectable: tuple[DetectableRow, ...]
    gaps: tuple[Gap, ...]
    decision: Decision
    n_both: int
    benchmarks: tuple[str, ...]


def compare_models(
    scores: Scores,
    authors: Mapping[str, str],
    categories: Mapping[str, str],
    options: AnalysisOptions,
    by: Sequence[str] = WAYS,
    *,
    tick: Callable[[float], None] = lambda share: None,
) -> ModelComparison:
    """Compare the models of a study by their responses' scores.

    Intervals resample the instances of each benchmark with all their responses; the
    benchmarks themselves are fixed. All ways of scoring get the same resamples.

    Parameters
    ----------
    scores : Scores
    authors : response_id -> model
    categories : benchmark -> category; absent or "" for none
    options : of which jurors (None for clinicians alone), criterion, reps and seed are used
    by : some of "clinicians", "jury" and "corrected"
    tick : called with the share of the work done, in (0, 1]

    Raises
    ------
    BadInput
        If an option is out of range or a jury is needed and there is none; also as
        `model_scores.model_scores`.
    """
    check_comparison(scores, options, by)
    table = model_scores(scores, authors, options.jurors or (), options.criterion)
    both = table.frame[["clinicians", "jury"]].notna().all(axis=1)
    rows: list[ModelRow] = []
    of_categories: list[CategoryRow] = []
    all_gaps: list[Gap] = []
    for number, way in enumerate(by):
        advance = _progress_of(tick, number * options.reps, len(by) * options.reps)
        resampling = (options.reps, options.seed)
        figures = resampled_figures(table, model_means(table, way), categories, resampling, advance)
        gaps_of_way = [*gaps(figures, table.layout.models)]
        rows += model_rows(table, figures, gaps_of_way)
        of_categories += category_rows(table, figures)
        all_gaps += gaps_of_way
    rows = [*_with_bias(rows)]
    return ModelComparison(
        tuple(rows),
        tuple(of_categories),
        tuple(row for way in by for row in _detectable_rows(table, way, scores.rubrics)),
        tuple(all_gaps),
        decide(rows, all_gaps),
        int(both.sum()),
        table.layout.benchmarks,
    )


def check_comparison(scores: Scores, options: AnalysisOptions, by: Sequence[str] = WAYS) -> None:
    """Raise the BadInput or Unknown that `compare_models` would, without reading any author."""
    check_names(scores, options.jurors or (), options.criterion)
    if options.reps < 1 or options.seed < 0:
        raise BadInput(f"reps={options.reps}, seed={options.seed}: at least 1, and 0 or more")
    if unknown := [way for way in by if way not in WAYS]:
        raise BadInput(f"by={unknown[0]}: it is {', '.join(WAYS)}")
    if not options.jurors and {*by} & {JURY, CORRECTED}:
        raise BadInput("there is no jury to compare by: no juror has rated anything in this study")


def jury_bias(jury: ModelRow, corrected: ModelRow) -> Note | None:
    """Return a note where the intervals of both macro-averages do not overlap."""
    if not (jury.low > corrected.high or jury.high < corrected.low):
        return None
    return note(
        Code.BEYOND_CORRECTED,
        is_above=jury.low > corrected.high,
        corrected=corrected.macro_average,
        low=corrected.low,
        high=corrected.high,
    )


def _with_bias(rows: Sequence[ModelRow]) -> Iterator[ModelRow]:
    """Yield the rows, with a note on the jury's where the corrected interval does not overlap."""
    corrected = {row.model: row for row in rows if row.by == CORRECTED}
    for row in rows:
        corrected_row = corrected.get(row.model) if row.by == JURY else None
        bias = jury_bias(row, corrected_row) if corrected_row else None
        yield replace(row, notes=(*row.notes, bias)) if bias else row


def _progress_of(tick: Callable[[float], None], done: int, work: int) -> Callable[[int], None]:
    """Return a function that takes resamples done and calls `tick` with the share of all work."""

    def advance(resamples: int) -> None:
        nonlocal done
        done += resamples
        tick(done / work)

    return advance


def _detectable_rows(
    table: ModelScores, by: str, rubrics: Mapping[str, RubricShape]
) -> Iterator[DetectableRow]:
    """Yield the minimum detectable effect of each benchmark; none for corrected means."""
    for name in table.layout.benchmarks if by != CORRECTED else ():
        shape = rubrics[name]
        points = shape.low + table.by_instance(name, by) * (shape.high - shape.low)
        yield detectable_row(name, by, points, shape)

"""Compare models: win rates and macro-averages by clinicians, by the jury, and by both together."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from calibration.codes import NoteCode as Code
from calibration.decision import Decision
from calibration.models.decision import decide
from calibration.models.estimates import estimate, figures
from calibration.models.gaps import Gap, detectable_row, gaps
from calibration.models.model_rows import category_rows, model_rows
from calibration.models.model_scores import Table, check_names, model_table
from calibration.models.rows import CORRECTED, JURY, WAYS, CategoryRow, DetectableRow, ModelRow
from calibration.scores import RubricShape, Scores
from calibration.values import AnalysisOptions, Note, note
from data.errors import BadInput


@dataclass(frozen=True)
class Compared:
    """All rows of a comparison: models by win rate, the best first, for each way of scoring.

    `gaps` are the differences between two models, `decision` says whether a model leads.
    `n_both` is the number of responses that both clinicians and the jury scored, `benchmarks`
    those that are compared: of all, without those that lack the criterion.
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
) -> Compared:
    """Compare the models of a study by their responses' scores.

    Intervals resample the instances of each benchmark with all their responses; the
    benchmarks themselves are fixed. All ways of scoring get the same resamples.

    Parameters
    ----------
    scores : Scores
    authors : response_id -> model
    categories : benchmark -> category; absent or "" for none
    options : its jurors (none where clinicians alone score), criterion, reps and seed
    by : some of "clinicians", "jury" and "corrected"
    tick : told the share of the work done, from above 0 to 1

    Raises
    ------
    BadInput
        If an option is out of range or a jury is needed and there is none; also as
        `model_scores.model_table`.
    """
    check(scores, options, by)
    table = model_table(scores, authors, options.jurors or (), options.criterion)
    both = table.frame[["clinicians", "jury"]].notna().all(axis=1)
    rows: list[ModelRow] = []
    of_categories: list[CategoryRow] = []
    apart: list[Gap] = []
    for place, way in enumerate(by):
        advance = _progress(tick, place * options.reps, len(by) * options.reps)
        drawing = (options.reps, options.seed)
        own = figures(table, estimate(table, way), categories, drawing, advance)
        own_gaps = [*gaps(own, table.layout.models)]
        rows += model_rows(table, own, own_gaps)
        of_categories += category_rows(table, own)
        apart += own_gaps
    rows = [*_with_bias(rows)]
    return Compared(
        tuple(rows),
        tuple(of_categories),
        tuple(row for way in by for row in _detectable(table, way, scores.rubrics)),
        tuple(apart),
        decide(rows, apart),
        int(both.sum()),
        table.layout.benchmarks,
    )


def check(scores: Scores, options: AnalysisOptions, by: Sequence[str] = WAYS) -> None:
    """Raise what `compare_models` would, before any author is known: BadInput or Unknown."""
    check_names(scores, options.jurors or (), options.criterion)
    if options.reps < 1 or options.seed < 0:
        raise BadInput(f"reps={options.reps}, seed={options.seed}: at least 1, and 0 or more")
    if odd := [one for one in by if one not in WAYS]:
        raise BadInput(f"by={odd[0]}: it is {', '.join(WAYS)}")
    if not options.jurors and {*by} & {JURY, CORRECTED}:
        raise BadInput("there is no jury to compare by: no juror has rated anything in this study")


def jury_bias(jury: ModelRow, corrected: ModelRow) -> Note | None:
    """Return a note where the intervals of both macro-averages have nothing in common."""
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
    """Yield the rows, those by the jury with a note where the corrected mean is elsewhere."""
    corrected = {row.model: row for row in rows if row.by == CORRECTED}
    for row in rows:
        other = corrected.get(row.model) if row.by == JURY else None
        bias = jury_bias(row, other) if other else None
        yield replace(row, notes=(*row.notes, bias)) if bias else row


def _progress(tick: Callable[[float], None], done: int, work: int) -> Callable[[int], None]:
    """Return what turns resamples done into the share of all work."""

    def advance(resamples: int) -> None:
        nonlocal done
        done += resamples
        tick(done / work)

    return advance


def _detectable(
    table: Table, by: str, rubrics: Mapping[str, RubricShape]
) -> Iterator[DetectableRow]:
    """Yield what each benchmark can detect; corrected means have no paired differences."""
    for name in table.layout.benchmarks if by != CORRECTED else ():
        shape = rubrics[name]
        points = shape.low + table.by_instance(name, by) * (shape.high - shape.low)
        yield detectable_row(name, by, points, shape)

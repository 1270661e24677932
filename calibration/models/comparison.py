"""Models compared: win rates and macro-averages as clinicians and a jury give them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from calibration.models.corrected import CLINICIANS, CORRECTED, JURY, estimate
from calibration.models.detectable import DetectableRow, detectable_row
from calibration.models.figures import figures
from calibration.models.rows import CategoryRow, ModelRow, category_rows, model_rows
from calibration.models.scores import Table, check_names, model_table
from calibration.notes import joined
from calibration.scores import RubricShape, Scores
from data.errors import BadInput

EVERY = (CLINICIANS, JURY, CORRECTED)


@dataclass(frozen=True)
class Wanted:
    """What a comparison is asked for.

    `by` are some of "clinicians", "jury", "corrected"; `jurors` the jury; `reps` and `seed`
    of the bootstrap.
    """

    by: Sequence[str] = EVERY
    jurors: Sequence[str] = ()
    criterion: str | None = None
    reps: int = 2000
    seed: int = 0


@dataclass(frozen=True)
class Compared:
    """All rows of a comparison: models by win rate, the best first, for each way of scoring.

    `n_both` is the number of responses that both clinicians and the jury scored, `benchmarks`
    those that are compared: of all, without those that lack the criterion.
    """

    rows: list[ModelRow]
    categories: list[CategoryRow]
    detectable: list[DetectableRow]
    n_both: int
    benchmarks: tuple[str, ...] = ()


def compare_models(
    scores: Scores,
    authors: Mapping[str, str],
    categories: Mapping[str, str],
    wanted: Wanted,
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
    wanted : Wanted
    tick : told the share of the work done, from above 0 to 1

    Raises
    ------
    BadInput
        If an option is out of range or a jury is needed and there is none; also as
        `scores.model_table`.
    """
    check(scores, wanted)
    table = model_table(scores, authors, wanted.jurors, wanted.criterion)
    both = table.frame[["clinicians", "jury"]].notna().all(axis=1)
    found = Compared([], [], [], int(both.sum()), table.layout.benchmarks)
    work = len(wanted.by) * wanted.reps
    for place, by in enumerate(wanted.by):
        advance = _progress(tick, place * wanted.reps, work)
        own = figures(table, estimate(table, by), categories, (wanted.reps, wanted.seed), advance)
        found.rows.extend(model_rows(table, own))
        found.categories.extend(category_rows(table, own))
        found.detectable.extend(_detectable(table, by, scores.rubrics))
    return replace(found, rows=[*_held_against(found.rows)])


def check(scores: Scores, wanted: Wanted) -> None:
    """Raise what `compare_models` would, before any author is known: BadInput or Unknown."""
    check_names(scores, wanted.jurors, wanted.criterion)
    if wanted.reps < 1 or wanted.seed < 0:
        raise BadInput(f"reps={wanted.reps}, seed={wanted.seed}: at least 1, and 0 or more")
    if odd := [by for by in wanted.by if by not in EVERY]:
        raise BadInput(f"by={odd[0]}: it is {', '.join(EVERY)}")
    if not wanted.jurors and set(wanted.by) & {JURY, CORRECTED}:
        raise BadInput("there is no jury to compare by: no juror has rated anything in this study")


def _held_against(rows: Sequence[ModelRow]) -> Iterator[ModelRow]:
    """Yield the rows, those by the jury with a word where the corrected mean is elsewhere."""
    corrected = {row.model: row for row in rows if row.by == CORRECTED}
    for row in rows:
        other = corrected.get(row.model) if row.by == JURY else None
        yield replace(row, note=joined([row.note, biased(row, other)])) if other else row


def biased(jury: ModelRow, corrected: ModelRow) -> str:
    """Say where the intervals of both macro-averages have nothing in common, else ""."""
    if not (jury.low > corrected.high or jury.high < corrected.low):
        return ""
    way = "more" if jury.low > corrected.high else "less"
    return (
        f"the jury alone gives it {way} than clinicians would, beyond both intervals (corrected "
        f"{corrected.macro_average:z.2f}, {corrected.low:z.2f} to {corrected.high:z.2f}): do not "
        "rank it by the jury alone"
    )


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

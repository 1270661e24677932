"""Comparing the models of a study: by which scores, who lifts the blind, and what it comes to."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from calibration.models.rows import CLINICIANS, JURY, WAYS
from calibration.values import COMBINED, AnalysisOptions
from data.errors import NotAllowed
from data.person import is_blind
from data.queries.authors import authors
from data.queries.ledger import fingerprint
from data.queries.models import categories
from data.queries.record import locked_since
from data.store.record import unblind as lift_blind
from medjury.services.ledger import Looked, remembered
from medjury.services.scores import all_jurors, scores_of, silent_jurors

if TYPE_CHECKING:
    from calibration.decision import Decision
    from calibration.models.rows import CategoryRow, DetectableRow, ModelRow
    from calibration.scores import Scores

METHOD = "models"  # what the ledger of juries calls a comparison of models
LOCKED = "models compared (medjury models) on the locked study"
BLIND = (
    "comparing models tells how good each author is, and this study is open and blind: `medjury "
    "lock` it when all have rated, or give --unblind with a --reason, which stays in the record and "
    "in every later report"
)


@dataclass(frozen=True, slots=True)
class ModelsRequest:
    """What a comparison is asked for: jurors, criterion, reps and seed, and the ways of scoring."""

    options: AnalysisOptions = field(default_factory=AnalysisOptions)
    by: tuple[str, ...] = WAYS


@dataclass(frozen=True)
class ModelsTask:
    """A comparison that can be made: its scores, and what is asked of them. No author is known.

    Attributes
    ----------
    scores : Scores
    options : with the jurors who sit, none where clinicians alone score
    by : the ways of scoring that there are
    silent : jurors who were asked and gave no rating
    """

    scores: "Scores"
    options: AnalysisOptions
    by: tuple[str, ...]
    silent: tuple[str, ...]


@dataclass(frozen=True)
class ModelsResult:
    """What a comparison came to: its decision, its rows, and what was compared.

    `not_noted` says why the jury could not be noted in the ledger of juries tried, or "".
    """

    decision: "Decision"
    rows: tuple["ModelRow", ...]
    categories: tuple["CategoryRow", ...]
    detectable: tuple["DetectableRow", ...]
    benchmarks: tuple[str, ...]
    options: AnalysisOptions
    silent: tuple[str, ...] = ()
    not_noted: str = ""

    @property
    def jury(self) -> tuple[str, ...]:
        """Return the jurors who sit."""
        return self.options.jurors or ()


def prepared(engine: Engine, request: ModelsRequest) -> ModelsTask:
    """Return a comparison that can be made, before anything is told of authors.

    Raises
    ------
    BadInput
        If it cannot: as `scores_of` and `calibration.models.comparison.check`.
    """
    from calibration.models.comparison import check_comparison

    scores = scores_of(engine)
    silent = silent_jurors(engine, scores)
    if request.options.jurors:
        scores = replace(scores, silent=frozenset(silent))
    jury = tuple(dict.fromkeys(request.options.jurors or all_jurors(scores)))
    by = request.by if jury or request.by != WAYS else (CLINICIANS,)
    options = replace(request.options, jurors=() if by == (CLINICIANS,) else jury)
    check_comparison(scores, options, by)
    return ModelsTask(scores, options, by, tuple(silent))


def lift(engine: Engine, reason: str, who: str) -> None:
    """Record that the blind is lifted; without a reason only where that is due or was done.

    Raises
    ------
    NotAllowed
        As `refuse_blind`.
    """
    refuse_blind(engine, reason)
    if reason.strip():
        lift_blind(engine, who, reason)
    elif is_blind(engine):
        lift_blind(engine, who, LOCKED)


def refuse_blind(engine: Engine, reason: str) -> None:
    """Refuse to go on where the blind holds and may not be lifted.

    Raises
    ------
    NotAllowed
        If the study is open, its blind was not lifted since, and no reason is given.
    """
    if not reason.strip() and is_blind(engine) and locked_since(engine) is None:
        raise NotAllowed(BLIND)


def compared(
    engine: Engine, task: ModelsTask, tick: Callable[[float], None] = lambda share: None
) -> ModelsResult:
    """Return the comparison of a study whose blind is lifted; the ledger is told of the jury.

    Raises
    ------
    NotAllowed
        If the blind is not lifted.
    """
    from threadpoolctl import threadpool_limits

    from calibration.models.comparison import compare_models

    if is_blind(engine):
        raise NotAllowed(BLIND)
    of = authors(engine), categories(engine)
    with threadpool_limits(1):
        found = compare_models(task.scores, *of, task.options, task.by, tick=tick)
    beside_clinicians = task.options.jurors and {*task.by} != {JURY}
    return ModelsResult(
        found.decision,
        found.rows,
        found.categories,
        found.detectable,
        found.benchmarks,
        task.options,
        task.silent,
        _remembered(engine, task, found.n_both) if beside_clinicians else "",
    )


def _remembered(engine: Engine, task: ModelsTask, n_both: int) -> str:
    """Note in the ledger that this jury's figures were seen beside the clinicians'."""
    jurors = task.options.jurors or ()
    looked = Looked(jurors, len(jurors), task.options.criterion or "", METHOD, "")
    names = task.scores.benchmarks
    entry = looked.entry(COMBINED if len(names) > 1 else names[0])
    data = fingerprint(task.scores.ratings)
    return remembered(engine, [replace(entry, fingerprint=data, n_responses=n_both)])

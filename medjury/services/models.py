"""Compare the models of a study, which lifts the blind."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from data.errors import BadInput, NotAllowed
from data.person import is_blind
from data.queries.authors import authors
from medjury.services.scores import all_jurors, scores_of

if TYPE_CHECKING:
    pass
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from calibration.models.rows import CLINICIANS, JURY, PAPER, WAYS
from calibration.values import COMBINED, AnalysisOptions
from data.queries.ledger import fingerprint
from data.queries.record import locked_since
from data.queries.taxonomy import categories
from data.store.study import unblind as lift_blind
from medjury.services.ledger import Looked, remembered
from medjury.services.scores import silent_jurors

if TYPE_CHECKING:
    from calibration.decision import Decision
    from calibration.models.rows import BenchmarkRow, CategoryRow, DetectableRow, ModelRow
    from calibration.scores import Scores

METHOD = "models"  # what the ledger of juries calls a comparison of models
LOCKED = "models compared (medjury analyse models) on the locked study"
BLIND = (
    "comparing models tells how good each author is, and this study is open and blind: `medjury "
    "lock` it when all have rated, or give --unblind with a --reason, which stays in the record and "
    "in every later report"
)
MAIN_METRICS = ("exact-match", "medcalc")  # of the paper's closed-ended benchmarks


@dataclass(frozen=True, slots=True)
class ModelsRequest:
    """What a comparison is asked for.

    Attributes
    ----------
    options : jurors, criterion, reps and seed
    by : ways of scoring; to all of `WAYS` comes "paper" where a benchmark has a metric of its own
    measured : of "paper": benchmark -> its metric; of those not named `MAIN_METRICS` are taken
    """

    options: AnalysisOptions = field(default_factory=AnalysisOptions)
    by: tuple[str, ...] = WAYS
    measured: Mapping[str, str] = field(
        default_factory=dict, hash=False
    )  # requests are kept by their hash


@dataclass(frozen=True)
class ModelsTask:
    """A comparison that can be made: its scores, and what is asked of them. No author is known.

    Attributes
    ----------
    scores : Scores
    options : with the jurors who sit, none where clinicians alone score
    by : the ways of scoring that there are
    silent : jurors who were asked and gave no rating
    measured : benchmark -> the metric that scores it, of "paper"
    """

    scores: "Scores"
    options: AnalysisOptions
    by: tuple[str, ...]
    silent: tuple[str, ...]
    measured: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelsResult:
    """What a comparison came to: its decision, its rows, and what was compared.

    `not_noted` says why the jury could not be noted in the ledger of juries tried, or "".
    `measured` is benchmark -> the metric that scored it, of the way "paper".
    """

    decision: "Decision"
    rows: tuple["ModelRow", ...]
    categories: tuple["CategoryRow", ...]
    detectable: tuple["DetectableRow", ...]
    benchmarks: tuple[str, ...]
    options: AnalysisOptions
    silent: tuple[str, ...] = ()
    not_noted: str = ""
    measured: Mapping[str, str] = field(default_factory=dict)
    means: tuple["BenchmarkRow", ...] = ()

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

    by_key = PAPER in request.by or request.by == WAYS
    scores = scores_of(engine, unrated=set(request.by) == {PAPER}, keyed=by_key)
    silent = silent_jurors(engine, scores)
    if request.options.jurors:
        scores = replace(scores, silent=frozenset(silent))
    jury = tuple(dict.fromkeys(request.options.jurors or all_jurors(scores)))
    by = request.by if jury or request.by != WAYS else (CLINICIANS,)
    if request.by == WAYS and (request.measured or _is_plain(_main_metrics(scores, jury))):
        by = (*by, PAPER)
    measured = measured_by(scores, jury, request.measured) if PAPER in by else {}
    options = replace(request.options, jurors=() if by == (CLINICIANS,) else jury)
    check_comparison(scores, options, by, measured)
    return ModelsTask(scores, options, by, tuple(silent), measured)


def measured_by(scores: "Scores", jury: Sequence[str], named: Mapping[str, str]) -> dict[str, str]:
    """Return benchmark -> the metric that scores it: as named, or the main one that was measured.

    A benchmark that a juror of the jury has rated is scored by the jury unless a metric is named.

    Raises
    ------
    BadInput
        If several metrics of a benchmark could be its main one.
    """
    measured = dict(named)
    for benchmark, main in _main_metrics(scores, jury).items():
        if benchmark in measured:
            continue
        if len(main) > 1:
            raise BadInput(
                f"{benchmark} was scored by {' and '.join(main)}: name one, such as --metric {benchmark}={main[0]}"
            )
        measured[benchmark] = main[0]
    return measured


def _main_metrics(scores: "Scores", jury: Sequence[str]) -> dict[str, list[str]]:
    """Return benchmark -> those of `MAIN_METRICS` that scored it, where no juror of the jury has rated it."""
    judged = scores.ratings[scores.ratings["rater"].isin(list(jury))]
    by_jury = set(judged["benchmark"].unique())
    of_metrics = scores.ratings[scores.ratings["kind"] == "metric"]
    found = {
        str(benchmark): [name for name in MAIN_METRICS if name in set(own["rater"])]
        for benchmark, own in of_metrics.groupby("benchmark", observed=True)
        if benchmark not in by_jury
    }
    return {benchmark: main for benchmark, main in found.items() if main}


def _is_plain(main: Mapping[str, Sequence[str]]) -> bool:
    """Tell whether there are benchmarks with a main metric, and each has but one."""
    return bool(main) and all(len(names) == 1 for names in main.values())


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
        comparison = compare_models(
            task.scores, *of, task.options, task.by, measured=task.measured, tick=tick
        )
    beside_clinicians = task.options.jurors and not {*task.by} <= {JURY, PAPER}
    return ModelsResult(
        comparison.decision,
        comparison.rows,
        comparison.categories,
        comparison.detectable,
        comparison.benchmarks,
        task.options,
        task.silent,
        _remembered(engine, task, comparison.n_both) if beside_clinicians else "",
        task.measured,
        comparison.means,
    )


def _remembered(engine: Engine, task: ModelsTask, n_both: int) -> str:
    """Note in the ledger that this jury's figures were seen beside the clinicians'."""
    jurors = task.options.jurors or ()
    looked = Looked(jurors, len(jurors), task.options.criterion or "", METHOD, "")
    names = task.scores.benchmarks
    entry = looked.entry(COMBINED if len(names) > 1 else names[0])
    data = fingerprint(task.scores.ratings)
    return remembered(engine, [replace(entry, fingerprint=data, n_responses=n_both)])

"""Compare the models of a study, which lifts the blind."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from calibration.model_values import CLINICIANS, JURY, PAPER, WAYS
from calibration.values import COMBINED, AnalysisOptions
from data.errors import BadInput, NotAllowed
from data.person import is_blind
from data.queries.authors import authors
from data.queries.ledger import fingerprint
from data.queries.record import locked_since
from data.queries.taxonomy import categories
from data.store.study import unblind as lift_blind
from medjury.services.ledger import Looked, remembered
from medjury.services.scores import all_jurors, scores_of, silent_jurors

if TYPE_CHECKING:
    from calibration.models import ModelComparison
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
    """What a comparison is asked for: jurors, criterion, reps and seed, and the ways of scoring.

    To all of `WAYS` comes "paper" where a benchmark has a metric of its own. `measured` is of it:
    benchmark -> its metric; of benchmarks not named it is the one of `MAIN_METRICS`.
    """

    options: AnalysisOptions = field(default_factory=AnalysisOptions)
    by: tuple[str, ...] = WAYS
    measured: Mapping[str, str] = field(default_factory=dict, hash=False)  # kept by their hash


@dataclass(frozen=True)
class ModelsTask:
    """A comparison that can be made: its scores, and what is asked of them. No author is known.

    The options have the jurors who sit, none where clinicians alone score; `silent` are those who
    were asked and gave no rating. `measured` is benchmark -> the metric that scores it, of "paper".
    """

    scores: "Scores"
    options: AnalysisOptions
    by: tuple[str, ...]
    silent: tuple[str, ...]
    measured: Mapping[str, str]

    @property
    def jury(self) -> tuple[str, ...]:
        """Return the jurors who sit."""
        return self.options.jurors or ()


def prepared(engine: Engine, request: ModelsRequest) -> ModelsTask:
    """Return a comparison that can be made, before anything is told of authors.

    Raises
    ------
    BadInput
        If it cannot: as `scores_of` and `calibration.models.check_comparison`.
    """
    from calibration.models import check_comparison

    by_key = PAPER in request.by or request.by == WAYS
    scores = scores_of(engine, unrated=set(request.by) == {PAPER}, keyed=by_key)
    silent = silent_jurors(engine, scores)
    if request.options.jurors:
        scores = replace(scores, silent=frozenset(silent))
    jury = tuple(dict.fromkeys(request.options.jurors or all_jurors(scores)))
    by = request.by if jury or request.by != WAYS else (CLINICIANS,)
    main = _main_metrics(scores, jury)
    is_plain = bool(main) and all(len(names) == 1 for names in main.values())
    if request.by == WAYS and (request.measured or is_plain):
        by = (*by, PAPER)
    measured = _measured(main, request.measured) if PAPER in by else {}
    options = replace(request.options, jurors=() if by == (CLINICIANS,) else jury)
    check_comparison(scores, options, by, measured)
    return ModelsTask(scores, options, by, tuple(silent), measured)


def _main_metrics(scores: "Scores", jury: Sequence[str]) -> dict[str, list[str]]:
    """Return benchmark -> those of `MAIN_METRICS` that scored it, where no juror of the jury has rated it."""
    by_jury = set(scores.ratings.loc[scores.ratings["rater"].isin(list(jury)), "benchmark"])
    of_metrics = scores.ratings[scores.ratings["kind"] == "metric"]
    scored = {
        (str(benchmark), rater)
        for benchmark, rater in of_metrics[["benchmark", "rater"]].drop_duplicates().to_numpy()
    }
    found = {
        benchmark: [name for name in MAIN_METRICS if (benchmark, name) in scored]
        for benchmark in sorted({name for name, _ in scored} - by_jury)
    }
    return {benchmark: main for benchmark, main in found.items() if main}


def _measured(main: Mapping[str, Sequence[str]], named: Mapping[str, str]) -> dict[str, str]:
    """Return benchmark -> the metric that scores it: as named, or the main one; BadInput for several."""
    for benchmark, metrics in main.items():
        if len(metrics) > 1 and benchmark not in named:
            raise BadInput(
                f"{benchmark} was scored by {' and '.join(metrics)}: name one, such as "
                f"--metric {benchmark}={metrics[0]}"
            )
    return {benchmark: metrics[0] for benchmark, metrics in main.items()} | dict(named)


def lift(engine: Engine, reason: str, who: str) -> None:
    """Record that the blind is lifted; without a reason only where that is due or was done."""
    refuse_blind(engine, reason)
    if reason.strip() or is_blind(engine):
        lift_blind(engine, who, reason if reason.strip() else LOCKED)


def refuse_blind(engine: Engine, reason: str) -> None:
    """Raise NotAllowed where a study is open, its blind was not lifted since, and no reason is given."""
    if not reason.strip() and is_blind(engine) and locked_since(engine) is None:
        raise NotAllowed(BLIND)


def compared(
    engine: Engine, task: ModelsTask, tick: Callable[[float], None] = lambda share: None
) -> "tuple[ModelComparison, str]":
    """Return the comparison of a study whose blind is lifted; the ledger is told of the jury.

    Beside it stands why the jury could not be noted in the ledger of juries tried, or "".

    Raises
    ------
    NotAllowed
        If the blind is not lifted.
    """
    from threadpoolctl import threadpool_limits

    from calibration.models import compare_models

    if is_blind(engine):
        raise NotAllowed(BLIND)
    of = authors(engine), categories(engine)
    with threadpool_limits(1):
        comparison = compare_models(
            task.scores, *of, task.options, task.by, measured=task.measured, tick=tick
        )
    if not task.jury or {*task.by} <= {JURY, PAPER}:
        return comparison, ""
    names = task.scores.benchmarks
    looked = Looked(task.jury, len(task.jury), task.options.criterion or "", METHOD, "")
    entry = replace(
        looked.entry(COMBINED if len(names) > 1 else names[0]),
        fingerprint=fingerprint(task.scores.ratings),
        n_responses=comparison.n_both,
    )
    return comparison, remembered(engine, [entry])

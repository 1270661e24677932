"""Compare the models of a study, which lifts the blind; and what the models cost."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine

from calibration.tables.models import CLINICIANS, JURY, WAYS
from calibration.values import COMBINED, NAN, AnalysisOptions
from data.errors import BadFile, BadRow, NotAllowed, Unknown
from data.files import read_user_toml
from data.importers.table import TableFile
from data.person import is_blind
from data.safe_text import short
from data.study.authors import authors
from data.study.ledger import fingerprint
from data.study.settings import unblind as lift_blind
from data.study.standing import benchmarks
from data.study.verify import locked_since
from medjury.services.ledger import Looked, remembered
from medjury.services.pairs import pair_scores, seated
from medjury.services.scores import scores_of, silent_jurors

if TYPE_CHECKING:
    from calibration.models import ModelComparison
    from calibration.pair_models import WinRow
    from calibration.scores import Scores

METHOD = "models"  # what the ledger of juries calls a comparison of models
LOCKED = "models compared (medjury analyse models) on the locked study"
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

    The options have the jurors who sit, none where clinicians alone score; `silent` are those who
    were asked and gave no rating.
    """

    scores: "Scores"
    options: AnalysisOptions
    by: tuple[str, ...]
    silent: tuple[str, ...]

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

    scores = scores_of(engine)
    silent = silent_jurors(engine, scores)
    if request.options.jurors:
        scores = replace(scores, silent=frozenset(silent))
    jury = tuple(dict.fromkeys(request.options.jurors or scores.all_jurors()))
    by = request.by if jury or request.by != WAYS else (CLINICIANS,)
    options = replace(request.options, jurors=() if by == (CLINICIANS,) else jury)
    check_comparison(scores, options, by)
    return ModelsTask(scores, options, by, tuple(silent))


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
    engine: Engine,
    task: ModelsTask,
    tick: Callable[[float], None] = lambda share: None,
    costs: Mapping[str, float] | None = None,
) -> "tuple[ModelComparison, str]":
    """Return the comparison of a study whose blind is lifted; the ledger is told of the jury.

    `costs` is model -> US dollars. Beside the comparison stands why the jury could not be noted in
    the ledger of juries tried, or "".

    Raises
    ------
    NotAllowed
        If the blind is not lifted.
    """
    from threadpoolctl import threadpool_limits

    from calibration.models import compare_models

    if is_blind(engine):
        raise NotAllowed(BLIND)
    of = authors(engine), {one.name: one.place[0] for one in benchmarks(engine)}
    with threadpool_limits(1):
        found = compare_models(task.scores, *of, task.options, task.by, tick)
    if costs:
        priced = (replace(row, usd=costs.get(row.model, NAN)) for row in found.rows)
        found = replace(found, rows=tuple(priced))
    if not task.jury or task.by == (JURY,):
        return found, ""
    names = task.scores.benchmarks
    looked = Looked(task.jury, len(task.jury), task.options.criterion or "", METHOD, "")
    entry = replace(
        looked.entry(COMBINED if len(names) > 1 else names[0]),
        fingerprint=fingerprint(task.scores.ratings),
        n_responses=found.n_both,
    )
    return found, remembered(engine, [entry])


def read_costs(path: Path) -> dict[str, float]:
    """Return model -> US dollars from a CSV file (model, usd) or a TOML file (model = usd).

    Raises
    ------
    BadFile, BadRow
        If it is not such a file, or a cost is no amount from 0 on, or a model stands twice.
    """
    rows: list[tuple[str, str, object]]
    if path.suffix.lower() == ".toml":
        body = read_user_toml(path, f"costs file {path.name}")
        rows = [(path.name, model, value) for model, value in body.items()]
    else:
        table = TableFile(path)
        if lost := [name for name in ("model", "usd") if name not in table.columns]:
            raise BadFile(f"costs file {path.name}: column {lost[0]!r} is missing; {table.header}")
        rows = [(str(at), cells["model"].strip(), cells["usd"].strip()) for at, cells in table]
    costs: dict[str, float] = {}
    for where, model, value in rows:
        try:
            usd = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]  # tried
        except (TypeError, ValueError, OverflowError):
            usd = math.nan
        if not model or not math.isfinite(usd) or usd < 0:
            raise BadRow(f"{where}: a row needs a model and its cost in US dollars, 0 or more")
        if model in costs:
            raise BadRow(
                f"{where}: the model {short(model)} stands twice; give each its whole cost once"
            )
        costs[model] = usd
    if not costs:
        raise BadFile(f"costs file {path.name}: names no model")
    return costs


def refuse_unknown(costs: Collection[str], models: Collection[str]) -> None:
    """Refuse costs of models that the study does not have; which it has stays blind here."""
    if lost := sorted(set(costs) - set(models)):
        raise Unknown(
            f"the costs name {', '.join(lost)}, and no response of this study is by that model: "
            "write models as in the file that was imported"
        )


def wins(engine: Engine, options: AnalysisOptions) -> "list[WinRow]":
    """Return the models' win rates in pairs, by clinicians and by the jury; none while it is blind."""
    from calibration.pair_models import win_rates

    scores = pair_scores(engine)
    if scores is None:
        return []
    known = {name for own in scores.criteria.values() for name in own}
    criterion = options.criterion if options.criterion in known else None
    named = [name for name in options.jurors or () if name in scores.raters("juror")]
    return win_rates(
        scores, seated(scores, AnalysisOptions(jurors=tuple(named) or None, criterion=criterion))
    )


def to_json(task: ModelsTask, found: "ModelComparison") -> dict[str, Any]:
    """Return a comparison as `analyse models --json` has it."""
    from calibration.json_values import decision_json, json_value

    return {
        "reps": task.options.reps,
        "seed": task.options.seed,
        "jury": list(task.jury),
        "benchmarks": list(found.benchmarks),
        "rows": json_value(found.rows),
        "differences": json_value(found.differences),
        "decision": decision_json(found.decision),
    }

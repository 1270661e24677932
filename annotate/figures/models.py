"""What the worker process computes for the Models screen: the comparison, and what it cost."""

from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import Engine

from annotate.figures.shown import CostFigures, CostsRequest, ModelsFigures
from calibration.tables.models import detectable_tables, jury_calls_table, model_tables
from calibration.tables.spec import Table
from data.errors import NotAllowed
from data.person import is_blind
from data.queries import simulated_raters
from data.queries.authors import author_names
from data.queries.models import recorded
from jury.panel import read_panel
from medjury.services import model_costs, models
from medjury.services.models import ModelsRequest


def check(engine: Engine, request: ModelsRequest) -> bool:
    """Return that models could be compared, which tells nothing of authors; else raise why not."""
    models.prepared(engine, request)
    return True


def compare(engine: Engine, request: ModelsRequest) -> ModelsFigures:
    """Return the comparison of a study whose blind is lifted."""
    from calibration.models.decision import deciding_way

    result = models.compared(engine, models.prepared(engine, request))
    first = deciding_way(result.rows)
    ordered = sorted(result.rows, key=lambda row: row.by != first)
    return ModelsFigures(
        result.decision,
        model_tables(ordered, narrow=True),
        detectable_tables(result.detectable),
        result.rows,
        result.categories,
        result.detectable,
        result.jury,
    )


def costs(engine: Engine, request: CostsRequest) -> CostFigures:
    """Return what is in the reader's file, and what the jury's recorded calls cost.

    Raises
    ------
    BadInput
        If the file is not one of costs, or names a model that the study does not have.
    NotAllowed
        If the blind is not lifted.
    """
    if is_blind(engine):
        raise NotAllowed(models.BLIND)
    prices = _prices(request) if request.text else {}
    model_costs.refuse_unknown(prices, author_names(engine))
    return CostFigures(prices, _jury_table(engine, request) if request.jury else None)


def _prices(request: CostsRequest) -> dict[str, float]:
    """Read the reader's file; no trace of it stays on the disk."""
    with TemporaryDirectory(prefix="medjury-costs-") as folder:
        path = Path(folder, f"costs.{request.kind}")
        path.write_bytes(request.text)
        return model_costs.read_costs(path)


def _jury_table(engine: Engine, request: CostsRequest) -> Table:
    panel = read_panel(request.panel) if request.panel else None
    calls = recorded(engine, request.jury)
    cost = model_costs.jury_cost(calls, request.jury, panel, simulated_raters(engine))
    return jury_calls_table(cost.jurors, cost.notes)

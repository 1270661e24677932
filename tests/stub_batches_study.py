"""Studies and panels for the tests of batches."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from sqlmodel import select
from stub_batches import BatchStub

from data.database import reading
from data.importers.responses import ResponseFile
from data.importers.table import TableFile
from data.rubric import read_rubric
from data.schema import Attempt, Rating
from data.schema.jury import JuryBatch, JuryRequest
from data.store import import_responses
from jury.batch.context import Polling
from jury.batch.run import run_batches
from jury.panel import Panel
from jury.run_result import RunResult

HASTY = Polling(first=0.01, longest=0.02, grace=0.0)


def panel_at(stub: BatchStub, *names: str, vendor: str = "openai", **settings: Any) -> Panel:
    """Return a panel of jurors at the stub."""
    url = stub.openai_url if vendor == "openai" else stub.anthropic_url
    one = {"provider": vendor, "family": "stub", "base_url": url, "schema": "json_schema"}
    jurors = [one | {"name": name, "model": name} | settings for name in names or ("a",)]
    return Panel.model_validate({"name": "p", "juror": jurors})


def run(engine: Engine, panel: Panel, **options: Any) -> RunResult:
    """Run a panel in batches and check that its figures add up."""
    result = run_batches(engine, panel, **{"pace": HASTY} | options)
    body = result.to_json()
    total = body["responses"] * body["jurors"] * options.get("replicates", 1)
    assert body["rated"] + body["missing"] == total
    assert sum(body["by_status"].values()) == total
    assert body["by_status"].get("ok", 0) == body["rated"]
    return result


def attempts(engine: Engine) -> list[Attempt]:
    """Return all calls."""
    return _rows(engine, Attempt)


def ratings(engine: Engine) -> list[Rating]:
    """Return all ratings."""
    return _rows(engine, Rating)


def batches(engine: Engine) -> list[JuryBatch]:
    """Return all batches."""
    return _rows(engine, JuryBatch)


def requests(engine: Engine) -> list[JuryRequest]:
    """Return all requests in batches."""
    return _rows(engine, JuryRequest)


def many(engine: Engine, write: Callable[[str, str], Path], count: int) -> None:
    """Put a benchmark of many short responses into a study."""
    head = "instance_id,benchmark,context,prompt,reference,response_id,model,response\n"
    lines = [f"i{n},visits,Context {n}.,Write.,,r{n},m,Response {n}." for n in range(count)]
    rows = ResponseFile(TableFile(write("many.csv", head + "\n".join(lines))))
    import_responses(engine, rows, lambda _: read_rubric("generic"))


def _rows(engine: Engine, table: Any) -> list[Any]:
    with reading(engine) as session:
        rows = list(session.exec(select(table)))
        session.expunge_all()
    return rows

"""Panels at the stub, their runs, and what a study holds of them afterwards."""

import os
import subprocess
import sys
from typing import Any

from sqlalchemy import Engine
from sqlmodel import select

from data.database import reading
from data.schema import Attempt, Rating
from jury.budget import Budget
from jury.panel import Panel, panel_toml
from jury.run import RunResult, run_panel
from jury.task import Patience
from kit.studies import HEAD, Write, import_file

HASTY = Patience(first_wait=0.01, longest_wait=0.02, bound=1.0)


def panel_at(stub: Any, *names: str, vendor: str = "openai", **settings: Any) -> Panel:
    """Return a panel of jurors at a stub, of live answers or of batches."""
    url = stub.openai_url if vendor == "openai" else stub.anthropic_url
    common = {"provider": vendor, "family": "stub", "base_url": url, "schema": "json_schema"}
    jurors = [common | {"name": name, "model": name} | settings for name in names or ("a",)]
    return Panel.model_validate({"name": "p", "juror": jurors})


def run(engine: Engine, panel: Panel, **options: Any) -> RunResult:
    """Run a panel and check that its figures add up."""
    result = run_panel(engine, panel, **{"patience": HASTY} | capped(options))
    return checked(result, options.get("replicates", 1))


def capped(options: dict[str, Any]) -> dict[str, Any]:
    """Return a run's options with the budget of a command that has this `max_usd`."""
    others = {name: value for name, value in options.items() if name != "max_usd"}
    return others | ({"budget": Budget(options["max_usd"])} if "max_usd" in options else {})


def checked(result: RunResult, replicates: int = 1) -> RunResult:
    """Return a result whose figures add up: each response and juror is rated, or missing."""
    body = result.to_json()
    total = body["responses"] * body["jurors"] * replicates
    assert body["rated"] + body["missing"] == total
    assert sum(body["by_status"].values()) == total
    assert body["by_status"].get("ok", 0) == body["rated"]
    return result


def stored(engine: Engine, query: Any) -> list[Any]:
    """Return the rows of a query, which outlive their session."""
    with reading(engine) as session:
        rows = list(session.exec(query))
        session.expunge_all()
    return rows


def attempts(engine: Engine) -> list[Attempt]:
    return stored(engine, select(Attempt).order_by(Attempt.id))


def ratings(engine: Engine) -> list[Rating]:
    return stored(engine, select(Rating))


def many(engine: Engine, write: Write, count: int) -> None:
    lines = [f"i{n},visits,Context {n}.,Write.,,r{n},m,Response {n}." for n in range(count)]
    import_file(engine, write("many.csv", "\n".join([HEAD, *lines])))


PROGRAM = """
import sys
from data.database import open_study
from jury.panel import read_panel
from jury.run import run_panel
result = run_panel(open_study(sys.argv[1]), read_panel(sys.argv[2]), concurrency=4)
print(result.interrupted, result.rated, result.calls)
"""


def started(url: str, panel: str) -> subprocess.Popen[str]:
    environment = os.environ | {"ANTHROPIC_LOG": "debug", "OPENAI_LOG": "debug"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", PROGRAM, url, panel], env=environment, **pipes)


def fill(engine: Engine, write: Write, *texts: tuple[str, str]) -> None:
    """Import responses, each by its instance and its text."""
    lines = [
        f"{instance},visits,Context {instance}.,Write.,,r{number},m{number},{text}"
        for number, (instance, text) in enumerate(texts)
    ]
    import_file(engine, write("same.csv", "\n".join([HEAD, *lines])))


def written(write: Write, panel: Panel, name: str = "panel") -> str:
    """Return the path of a panel's file."""
    return str(write(f"{name}.toml", panel_toml(panel)))

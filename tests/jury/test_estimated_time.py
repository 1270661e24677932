"""How long a run will take, by what jurors took so far."""

import json
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest
from kit import jury_runs
from kit.jurors import Do, Stub
from kit.jury_runs import attempts, panel_at, panel_file
from kit.studies import Run
from sqlalchemy import Engine

from jury.cost import JurorEstimate
from jury.estimate import estimate, seconds_of_run
from jury.panel import Panel


def test_an_estimate_tells_time_where_a_jurors_pace_is_known_and_none_where_it_is_not(
    small_study: Engine, stub: Stub
) -> None:
    panel = panel_at(stub, "a", "b")
    assert [row.seconds for row in estimate(small_study, panel)] == [None, None]
    jury_runs.run(small_study, panel_at(stub, "a"))
    pace = median(row.latency_seconds for row in attempts(small_study))
    a, b = estimate(small_study, panel, replicates=3)
    assert (a.calls, a.at_once, a.seconds, b.seconds) == (8, 1, 8 * pace, None)
    assert seconds_of_run(panel, [a, b]) is None
    jury_runs.run(small_study, panel)
    rows = estimate(small_study, panel, replicates=3)
    assert seconds_of_run(panel, rows) == sum(row.seconds or 0.0 for row in rows)
    (faster, _) = estimate(small_study, panel, replicates=3, concurrency=4)
    assert (faster.at_once, faster.seconds) == (4, 2 * pace)
    limited = panel_at(stub, "a", concurrency=2)
    (own,) = estimate(small_study, limited, replicates=3)
    assert (own.at_once, own.seconds) == (2, 4 * pace)


def test_jurors_of_vendors_take_the_time_of_all_their_calls_at_the_runs_places() -> None:
    settings = {"provider": "openai", "model": "m", "family": "f"}
    at = {"a": "https://api.openai.com/v1", "b": "https://api.mistral.ai/v1"}
    jurors = [settings | {"name": name, "base_url": url} for name, url in at.items()]
    panel = Panel.model_validate({"name": "p", "juror": jurors})
    rows = [
        JurorEstimate(name, calls=80, at_once=8, seconds=seconds)
        for name, seconds in (("a", 20.0), ("b", 30.0))
    ]
    assert seconds_of_run(panel, rows) == 50.0


def test_the_command_tells_the_time_of_each_juror_and_of_the_run(
    small_study: Engine, stub: Stub, run: Run, write: Callable[[str, str], Path]
) -> None:
    stub.script = lambda _: Do(seconds=0.3)
    panel = panel_file(write, stub)
    words = ("jury", "run", str(panel), "--replicates", "8", "--json", "-")
    _, out, said = run(*words, "--estimate")
    assert "pace" not in said
    assert json.loads(out)["seconds"] is None
    run("jury", "run", str(panel))
    _, out, said = run(*words, "--estimate")
    body = json.loads(out)
    assert "juror a: about " in said
    assert " s at its pace so far (28 calls, 1 at a time)" in said
    assert "the run: about " in said
    a, b = (juror["seconds"] for juror in body["jurors"])
    assert body["seconds"] == a + b == pytest.approx(56 * 0.3, rel=0.3)

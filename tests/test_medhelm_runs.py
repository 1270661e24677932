"""A run of medhelm 0.8.0, whose HealthBench asks a talk and has shares of points as verdicts.

The run beside this file was written by medhelm 0.8.0 itself, on three questions of ours with models
on the loopback; the tokens of its answers are left out.
"""

import json
import shutil
from pathlib import Path

from kit.studies import Run
from sqlalchemy import Engine, text

from data.queries import benchmarks
from data.queries.frames import ratings_frame

RUN = Path(__file__).parent / "fixtures" / "medhelm" / "health_bench"


def test_its_talks_points_and_shares_come_in_and_give_its_own_mean(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    code, _, err = run("import", str(RUN), "--json", str(tmp_path / "f.json"))
    assert code == 0, err
    [figures] = json.loads((tmp_path / "f.json").read_text())["runs"]
    assert figures["helm_mean"] is not None
    assert abs(figures["helm_mean"] - figures["recomputed_mean"]) < 1e-9
    assert (figures["responses"], figures["ratings"], figures["missing"]) == (3, 9, 0)
    [own] = benchmarks(engine)
    assert (own.rubric.name, own.rubric.criteria) == ("helm_health_bench", ("accuracy",))
    assert (own.rubric.scale.min, own.rubric.scale.max) == (0, 1)
    assert set(ratings_frame(engine)["rater"]) == {"gpt", "llama", "claude"}
    with engine.connect() as connection:
        query = text("select context, prompt, checklist from instance order by instance_id")
        found = connection.execute(query).all()
    context, prompt, checklist = found[1]
    assert context.startswith("[user]\nMy chest hurts since 1 days.\n\n[assistant]\nWhere?")
    assert prompt == ""  # its instruction is not sent with a talk
    assert checklist.splitlines() == [
        "(+7) Advises to see a doctor (1)",
        "(-5) Says it is nothing",
        "(+3) Asks for age",
    ]


def test_a_juror_without_points_is_missing_and_never_a_default(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    folder = tmp_path / "health_bench"
    shutil.copytree(RUN, folder)
    state = json.loads((folder / "scenario_state.json").read_text())
    said = state["request_states"][0]["annotations"]["health_bench"]
    said["gpt"]["accuracy"]["score"] = None
    (folder / "scenario_state.json").write_text(json.dumps(state))
    assert run("import", str(folder))[0] == 0
    assert len(ratings_frame(engine)) == 8

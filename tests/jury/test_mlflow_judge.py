"""MLflow's export: a scorer that MLflow itself runs, with an error and no zero where not rated."""

import ast
import json
import os
import subprocess
from pathlib import Path

import pytest
from kit.exported_panels import MLFLOW_RUN, RECORD, ROWS, export, panel
from kit.exported_panels import python as python
from kit.jurors import Do, Stub, verdict

from data.rubric import read_rubric
from jury.exports.bundle import Export, write_folder
from jury.exports.scorers import write_mlflow as write
from jury.panel import read_panel

CRITERIA = ("accuracy", "completeness", "clarity", "composite")


def test_the_files_are_python_that_compiles_and_data_as_mlflow_takes_it() -> None:
    files = write(Export(read_rubric("generic"), read_panel("current"), ROWS, RECORD))
    for name, text in files.items():
        if name.endswith(".py"):
            ast.parse(text)
    data = json.loads(files["data.json"])
    assert data[0] == {
        "inputs": {"context": "Chest pain.", "prompt": "Write."},
        "expectations": {"reference": "Angina."},
        "outputs": "Note.",
    }
    assert "expectations" not in data[2]
    assert "bundle.md" in files


@pytest.mark.slow
@pytest.mark.timeout(900)  # the installation counts
def test_mlflow_itself_runs_the_scorer_and_leaves_what_is_not_rated_missing(
    python: str, tmp_path: Path
) -> None:
    def answer(seen):
        return Do(text="no idea" if "Another note." in seen.prompt else verdict(seen, 4))

    with Stub(answer) as stub:
        write_folder(tmp_path / "out", write(export(panel(stub))))
        asked = [python, "-c", MLFLOW_RUN, str(tmp_path / "out"), str(tmp_path / "mlflow.db")]
        done = subprocess.run(
            asked,
            cwd=tmp_path,
            env=os.environ | {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"},
            capture_output=True,
            text=True,
            timeout=280,
        )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    found = json.loads(done.stdout.split("FOUND")[1].splitlines()[0])
    rated = {name: [] for name in CRITERIA}
    for row in found["rows"]:
        for name, value, error in row:
            if name in rated:
                rated[name].append((value, error))
    for name in CRITERIA:
        assert sorted(rated[name], key=str) == [(4, None), (4, None), (None, "NOT_RATED")]
        assert found["metrics"][f"{name}/mean"] == 4

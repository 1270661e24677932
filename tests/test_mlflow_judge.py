"""MLflow's export: a scorer that MLflow itself runs, with an error and no zero where not rated."""

import ast
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from stub_llm import Do, Stub, verdict
from test_promptfoo import RECORD, ROWS, export, panel

from data.rubric import read_rubric
from jury.exports.export import Export, write_folder
from jury.exports.mlflow_judge import write
from jury.panel import read_panel

CRITERIA = ("accuracy", "completeness", "clarity", "composite")
RUN = """
import json, logging, sys
logging.disable(logging.WARNING)
sys.path.insert(0, sys.argv[1])
import mlflow
from medjury_scorer import jury
mlflow.set_tracking_uri("sqlite:///" + sys.argv[2])
data = json.load(open(sys.argv[1] + "/data.json"))
found = mlflow.genai.evaluate(data=data, scorers=[jury])
told = [[[one["assessment_name"], (one.get("feedback") or {}).get("value"),
          ((one.get("feedback") or {}).get("error") or {}).get("error_code")]
         for one in row] for row in found.result_df["assessments"]]
print("FOUND" + json.dumps({"metrics": found.metrics, "rows": told}))
"""


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


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a Python that has MLflow, in an environment of its own; MLFLOW_PYTHON names one."""
    if known := os.environ.get("MLFLOW_PYTHON"):
        return known
    uv, folder = shutil.which("uv"), tmp_path_factory.mktemp("mlflow") / "env"
    if uv is None:
        pytest.skip("uv is not installed")
    own = str(folder / "bin" / "python")
    for asked in (["venv", "-q", str(folder)], ["pip", "install", "-q", "--python", own, "mlflow"]):
        try:
            subprocess.run(
                [uv, *asked],
                cwd=folder.parent,  # not here: this project's pins are not MLflow's
                capture_output=True,
                timeout=540,
                check=True,
            )
        except subprocess.SubprocessError as error:
            pytest.skip(f"uv cannot install mlflow: {str(error)[:200]}")
    return own


@pytest.mark.slow
@pytest.mark.timeout(900)  # the installation counts
def test_mlflow_itself_runs_the_scorer_and_leaves_what_is_not_rated_missing(
    python: str, tmp_path: Path
) -> None:
    def answer(seen):
        return Do(text="no idea" if "Another note." in seen.prompt else verdict(seen, 4))

    with Stub(answer) as stub:
        write_folder(tmp_path / "out", write(export(panel(stub))))
        asked = [python, "-c", RUN, str(tmp_path / "out"), str(tmp_path / "mlflow.db")]
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

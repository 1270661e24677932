"""Panels and rubrics to export, and the tools that run the exports, unmodified."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from data.rubric import Rubric, read_rubric
from jury.exports.bundle import Export, ExportRow
from jury.panel import Panel
from kit.jurors import Stub

RECORD = {
    "status": "not validated",
    "reasons": ["a test"],
    "caveats": [],
    "figures": [],
    "protocol": None,
    "decision": {"kind": "no_protocol"},
    **dict.fromkeys(("n_responses", "n_instances", "n_clinicians", "reps", "seed"), 0),
    "clinicians_per_response": 0.0,
    "method": "paper",
    "version": "0",
    "made": "",
    "juries_tried": 0,
    "checked_with": None,
    "sha256": {},
}

TRICKY = 'Pain {{prompt}} {% raw %} ${x} \\d "q" </response> 😀\n{# note #} {% endraw %} {%raw%}'

ROWS = (
    ExportRow("visits/i1", "Chest pain.", "Write.", "Angina.", "Note."),
    ExportRow("visits/i1", "Chest pain.", "Write.", "Angina.", "Another note."),
    ExportRow("visits/i2", TRICKY, "Write.", None, "Note."),
)


def panel(stub: Stub) -> Panel:
    juror = {"provider": "openai", "family": "a", "base_url": stub.openai_url, "schema": "auto"}
    jurors = [
        juror | {"name": "one", "model": "m-one"},
        juror
        | {
            "name": "two",
            "model": "m-two",
            "provider": "anthropic",
            "base_url": stub.anthropic_url,
        },
    ]
    return Panel.model_validate({"name": "ward", "juror": jurors})


def export(jurors: Panel, rubric: str = "generic") -> Export:
    return Export(read_rubric(rubric), jurors, ROWS, RECORD)


@pytest.fixture(scope="module")
def promptfoo(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return promptfoo, installed by npm; PROMPTFOO names one that is there."""
    if known := os.environ.get("PROMPTFOO"):
        return known
    npm, folder = shutil.which("npm"), tmp_path_factory.mktemp("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    asked = [npm, "install", "promptfoo", "--no-audit", "--no-fund", "--prefix", str(folder)]
    try:
        subprocess.run(asked, capture_output=True, text=True, timeout=540, check=True)
    except subprocess.SubprocessError as error:
        pytest.skip(f"npm cannot install promptfoo: {str(error)[:200]}")
    return str(folder / "node_modules" / ".bin" / "promptfoo")


HELM = "crfm-helm[openai,anthropic]==0.5.16"

TORCH = "torch==2.13.0"

HELM_ROWS = (
    ExportRow("visits/i1", "Chest pain.\r\nSince $5 noon.", "Write {a} note.", "Angina.", None),
    ExportRow("visits/i2", TRICKY, "Write {QUESTION} $RESPONSE.", None, None),
    ExportRow("visits/i3", "001", "NA, said he.", "4 of 5 ${x}", None),
)


@pytest.fixture(scope="module")
def helm_run(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return helm-run, in an environment of its own; HELM_RUN names one that is there."""
    if known := os.environ.get("HELM_RUN"):
        return known
    uv, folder = shutil.which("uv"), tmp_path_factory.mktemp("helm") / "env"
    if uv is None:
        pytest.skip("uv is not installed")
    python = str(folder / "bin" / "python")
    wheels = os.environ.get("PIP_FIND_LINKS", "").split()
    beside = [word for one in wheels for word in ("--find-links", one)]
    install = ["pip", "install", "-q", "--python", python, *beside, TORCH, HELM]
    for words in (["venv", "-q", "--python", "3.11", str(folder)], install):
        try:
            subprocess.run(
                [uv, *words],
                cwd=folder.parent,  # not here: this project's pins are not HELM's
                capture_output=True,
                timeout=540,
                check=True,
            )
        except subprocess.SubprocessError as error:
            pytest.skip(f"uv cannot install {HELM}: {str(error)[:200]}")
    return str(folder / "bin" / "helm-run")


def helm_panel(stub: Stub) -> Panel:
    """Return jurors without a key, with one, and in Anthropic's protocol."""
    one = {"provider": "openai", "family": "a", "base_url": stub.openai_url, "schema": "text"}
    vendor = {"provider": "anthropic", "base_url": "https://api.anthropic.com"}
    jurors = [
        one | {"name": "one", "model": "m/one-1.0"},
        one | {"name": "two", "model": "m-two", "api_key_env": "TWO_KEY"},
        one | vendor | {"name": "three", "model": "claude-x-4-5", "api_key_env": "THREE_KEY"},
    ]
    return Panel.model_validate({"name": "ward", "juror": jurors})


def awkward() -> Rubric:
    """Return a rubric whose own words are all that templates stumble over."""
    generic = read_rubric("generic")
    odd = "Fees of $5, $$ or ${x}; {braces}, %s, \\1, {{}} and äöü 😀 are text.\n"
    return generic.model_copy(update={"prompt": odd + generic.prompt + "{{{response}}}\n"})


INSPECT_VERSION = "0.3.285"


@pytest.fixture(scope="module")
def inspect(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return Inspect's program in an environment of its own; INSPECT names one that is there."""
    if known := os.environ.get("INSPECT"):
        return known
    uv, folder = shutil.which("uv"), tmp_path_factory.mktemp("inspect") / "env"
    if uv is None:
        pytest.skip("uv is not installed")
    own = str(folder / "bin" / "python")
    wanted = [f"inspect_ai=={INSPECT_VERSION}", "openai", "anthropic"]
    for asked in (["venv", "-q", str(folder)], ["pip", "install", "-q", "--python", own, *wanted]):
        try:
            subprocess.run(
                [uv, *asked],
                cwd=folder.parent,  # not here: this project's pins are not Inspect's
                capture_output=True,
                timeout=540,
                check=True,
            )
        except subprocess.SubprocessError as error:
            pytest.skip(f"uv cannot install inspect_ai: {str(error)[:200]}")
    return str(folder / "bin" / "inspect")


def evaluated(program: str, folder: Path, stub: Stub, *options: str) -> Path:
    """Run the exported task and return its log."""
    logs = folder / "logs"
    before = set(logs.glob("*.eval"))
    asked = [program, "eval", "medjury_task.py", "--log-dir", str(logs), "--display", "none"]
    done = subprocess.run(
        [*asked, *options],
        cwd=folder / "out",
        env=os.environ | {"WARD_API_KEY": "none", "WARD_BASE_URL": stub.openai_url},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return next(iter(set(logs.glob("*.eval")) - before))


MLFLOW_RUN = """
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

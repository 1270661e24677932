"""Panels and rubrics to export, and the tools that run the exports, unmodified."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from data.rubric import Rubric, read_rubric
from jury.exports.bundle import Export, ExportRow
from jury.panel import Panel
from kit.jurors import Stub
from kit.jury_runs import panel_at

RECORD: dict[str, Any] = {"status": "not validated", "reasons": ["a test"], "caveats": []}
RECORD |= {"figures": [], "protocol": None, "decision": {"kind": "no_protocol"}, "sha256": {}}
RECORD |= dict.fromkeys(("n_responses", "n_instances", "n_clinicians", "reps", "seed"), 0)
RECORD |= {"clinicians_per_response": 0.0, "juries_tried": 0, "checked_with": None}
RECORD |= {"method": "paper", "version": "0", "made": ""}

TRICKY = 'Pain {{prompt}} {% raw %} ${x} \\d "q" </response> 😀\n{# note #} {% endraw %} {%raw%}'

ROWS = (
    ExportRow("visits/i1", "Chest pain.", "Write.", "Angina.", "Note."),
    ExportRow("visits/i1", "Chest pain.", "Write.", "Angina.", "Another note."),
    ExportRow("visits/i2", TRICKY, "Write.", None, "Note."),
)


def panel(stub: Stub) -> Panel:
    first = panel_at(stub, "one", model="m-one", family="a", schema="auto")
    second = panel_at(stub, "two", vendor="anthropic", model="m-two", family="a", schema="auto")
    return Panel(name="ward", juror=(*first.juror, *second.juror))


def export(jurors: Panel, rubric: str = "generic") -> Export:
    return Export(read_rubric(rubric), jurors, ROWS, RECORD)


def installed(commands: list[list[str]], folder: Path) -> None:
    """Install a tool, not here: this project's pins are not its own; skip where it cannot be."""
    for asked in commands:
        if shutil.which(asked[0]) is None:
            pytest.skip(f"{asked[0]} is not installed")
        try:
            subprocess.run(asked, cwd=folder, capture_output=True, timeout=540, check=True)
        except subprocess.SubprocessError as error:
            pytest.skip(f"cannot be installed: {str(error)[:200]}")


def with_python(
    pytest_folders: pytest.TempPathFactory, variable: str, program: str, *wanted: str
) -> str:
    """Return a program of an environment of its own; the variable names one that is there."""
    if known := os.environ.get(variable):
        return known
    folder = pytest_folders.mktemp("tool") / "env"
    wheels = os.environ.get("PIP_FIND_LINKS", "").split()
    beside = [word for one in wheels for word in ("--find-links", one)]
    python = str(folder / "bin" / "python")
    install = ["uv", "pip", "install", "-q", "--python", python, *beside, *wanted]
    version = ["--python", "3.11"] if variable == "HELM_RUN" else []
    installed([["uv", "venv", "-q", *version, str(folder)], install], folder.parent)
    return str(folder / "bin" / program)


def ran(asked: list[str], folder: Path, *, may_fail: bool = False, **more: str) -> str:
    """Run a tool in a folder, with more in its environment; return what it says."""
    quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
    quiet |= {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"}
    env = os.environ | quiet | more
    done = subprocess.run(asked, cwd=folder, env=env, capture_output=True, text=True, timeout=900)
    assert may_fail or done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def promptfoo(tmp_path_factory) -> str:
    """Return promptfoo, installed by npm; PROMPTFOO names one that is there."""
    if known := os.environ.get("PROMPTFOO"):
        return known
    folder = tmp_path_factory.mktemp("npm")
    quiet = ["--no-audit", "--no-fund", "--prefix", str(folder)]
    installed([["npm", "install", "promptfoo", *quiet]], folder)
    return str(folder / "node_modules" / ".bin" / "promptfoo")


def in_promptfoo(
    program: str, folder: Path, provider: str, **more: str
) -> tuple[list[dict[str, Any]], str]:
    """Run an exported configuration with such a provider; return its results and all its words."""
    config = folder / "promptfooconfig.yaml"
    config.write_text(config.read_text("utf-8").replace("- echo", provider), "utf-8")
    asked = [program, "eval", "--no-cache", "-o", "found.json", "-c", config.name]
    more |= {"PROMPTFOO_CONFIG_DIR": str(folder / "home"), "PROMPTFOO_PYTHON": sys.executable}
    ran(asked, folder, may_fail=True, **more)  # it fails where an assertion does
    found = (folder / "found.json").read_text("utf-8")
    return json.loads(found)["results"]["results"], found


HELM = "crfm-helm[openai,anthropic]==0.5.16"

TORCH = "torch==2.13.0"

HELM_ROWS = (
    ExportRow("visits/i1", "Chest pain.\r\nSince $5 noon.", "Write {a} note.", "Angina.", None),
    ExportRow("visits/i2", TRICKY, "Write {QUESTION} $RESPONSE.", None, None),
    ExportRow("visits/i3", "001", "NA, said he.", "4 of 5 ${x}", None),
)


@pytest.fixture(scope="module")
def helm_run(tmp_path_factory) -> str:
    return with_python(tmp_path_factory, "HELM_RUN", "helm-run", TORCH, HELM)


def in_helm(
    program: str, folder: Path, url: str, which: str = "-as-validated", **more: str
) -> Path:
    """Run an exported configuration in HELM, with its model at an address; return its runs."""
    place = folder / "prod_env" / "model_deployments.yaml"
    place.write_text(place.read_text("utf-8").replace("http://127.0.0.1:8000/v1", url), "utf-8")
    asked = [program, "--plugins", "medjury_helm.py", "--suite", "s", "-n", "1"]
    [conf] = folder.glob(f"medjury-*{which}.conf") if which else [folder / "medjury-generic.conf"]
    asked += ["--conf-paths", conf.name, "--local-path", "prod_env"]
    ran([*asked, "--max-eval-instances", "1000"], folder, **more)
    return folder / "benchmark_output" / "runs" / "s"


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
def inspect(tmp_path_factory) -> str:
    wanted = (f"inspect_ai=={INSPECT_VERSION}", "openai", "anthropic")
    return with_python(tmp_path_factory, "INSPECT", "inspect", *wanted)


def evaluated(program: str, folder: Path, stub: Stub, *options: str) -> Path:
    """Run the exported task and return its log."""
    logs = folder / "logs"
    before = set(logs.glob("*.eval"))
    asked = [program, "eval", "medjury_task.py", "--log-dir", str(logs), "--display", "none"]
    ward = {"WARD_API_KEY": "none", "WARD_BASE_URL": stub.openai_url}
    ran([*asked, *options], folder / "out", **ward)
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
def python(tmp_path_factory) -> str:
    """Return a Python that has MLflow."""
    return with_python(tmp_path_factory, "MLFLOW_PYTHON", "python", "mlflow")


def in_mlflow(python: str, folder: Path) -> dict[str, Any]:
    """Return the metrics and rows of a run of the exported scorer."""
    asked = [python, "-c", MLFLOW_RUN, str(folder), str(folder.parent / "mlflow.db")]
    told = ran(asked, folder.parent).split("FOUND")[1].splitlines()[0]
    return json.loads(told)

"""What every analyse command answers in JSON, of the demo and of three public data sets, recorded and compared.

PYTHONPATH=tests:. python -m kit.goldens NAME|all
"""

import json
import lzma
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DATASETS = ROOT.parent / "shared" / "datasets"
GOLDENS = ROOT / "tests" / "fixtures" / "goldens"
CLOSE = 1e-12  # another processor may add up in another order
REPS = ("--reps", "200")
COMMANDS: dict[str, tuple[str, ...]] = {
    "calibrate": ("analyse", "calibrate", "--details", *REPS),
    "published": ("analyse", "calibrate", "--method", "published", *REPS),
    "juries": ("analyse", "juries", *REPS),
    "compare": ("analyse", "juries", *REPS, "--compare", "{a}", "--compare", "{b}"),
    "models": ("analyse", "models", *REPS, "--unblind", "--reason", "golden"),
    "monitor": ("analyse", "monitor", *REPS),
    "predict": ("analyse", "predict"),
    "route": ("analyse", "route", "--at-most", "{harmful}", "--bound", "0.3"),
    "errors": ("analyse", "errors"),
    "plan": ("study", "plan", "--pilot"),
}
# The data set's folder and file of responses, two juries to compare, and what counts as harmful.
STUDIES = {
    "demo": ("", "", "simulated-lenient,simulated-steady", "simulated-strict", "3"),
    "mentalbench": (
        "mentalbench_judges",
        "responses.csv",
        "gpt-4o,o4-mini",
        "claude-3.7-sonnet",
        "3",
    ),
    "mslr": ("mslr_cochrane", "responses.jsonl", "", "", "1"),
    "summeval": ("summeval_op", "responses.jsonl", "", "", "3"),
}
CHANGING = {
    "made",
    "at",
    "head",
    "version",
    "versions",
    "checked_with",
    "file",
    "medjury",
    "seconds",
}
DATE = re.compile(
    r"\b20\d\d-(?:\d\d|Q\d)(?:-\d\d)?(?:[T ][\d:.]+(?:Z|\+[\d:]+)?)?"
)  # the demo's are of its day


def answers(name: str) -> dict[str, Any]:
    """Return the JSON of every command, or its exit code, of one study."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _make(name, folder)
        *_, a, b, harmful = STUDIES[name]
        found: dict[str, Any] = {}
        for command, words in COMMANDS.items():
            if command == "compare" and not a:
                continue
            asked = [word.format(a=a, b=b, harmful=harmful) for word in words]
            out = folder / "answer.json"
            ran = _medjury(folder, *asked, "--json", out, check=False)
            given = json.loads(out.read_text("utf-8")) if out.exists() else None
            found[command] = {"exit": ran.returncode, "json": steady(given)}
            out.unlink(missing_ok=True)
        return found


def _make(name: str, folder: Path) -> None:
    if name == "demo":
        _medjury(folder, "demo", "--no-serve")
        return
    dataset, responses, *_ = STUDIES[name]
    if not (DATASETS / dataset).is_dir():
        pytest.skip(f"the public data set {dataset} is not at {DATASETS / dataset}")
    scripts = ROOT / "docs" / "real_data"
    _run(scripts / f"{name}.py", DATASETS, folder)
    _medjury(folder, "study", "import", folder / responses, "--rubric", scripts / "rubrics" / name)
    _medjury(folder, "rate", "ratings", folder / "ratings.csv")
    if name != "mentalbench":  # it has no references
        _medjury(folder, "analyse", "measure", "rouge-l")


def _run(*words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, *map(str, words)]
    env = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    ran = subprocess.run(call, check=False, capture_output=True, cwd=ROOT, env=env, text=True)
    if check and ran.returncode:
        raise RuntimeError(f"{words}: {ran.stderr}")
    return ran


def _medjury(folder: Path, *words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    return _run("-m", "medjury", *words, "--db", f"sqlite:///{folder}/study.db", check=check)


def steady(value: Any) -> Any:
    """Return JSON without what differs from run to run, and without sentences and texts of notes."""
    if isinstance(value, dict):
        return {key: steady(one) for key, one in value.items() if key not in CHANGING}
    if isinstance(value, list):
        return [steady(one) for one in value]
    if isinstance(value, str):
        return "words" if re.search(r"\s", value) else DATE.sub("DATE", value)
    return value


def recorded(name: str) -> Any:
    """Return what was recorded of a study."""
    return json.loads(lzma.decompress((GOLDENS / f"{name}.json.xz").read_bytes()))


def record(name: str) -> None:
    """Write the answers of one study, compressed."""
    said = json.dumps(answers(name), sort_keys=True).encode()
    small = lzma.compress(said, preset=9 | lzma.PRESET_EXTREME)
    (GOLDENS / f"{name}.json.xz").write_bytes(small)


def differences(old: Any, new: Any, place: str = "") -> list[str]:
    """Return each value of an older recording that is not the same, or not there, in a newer one."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            one
            for key, value in old.items()
            for one in (
                differences(value, new[key], f"{place}.{key}")
                if key in new
                else [f"{place}.{key} is gone"]
            )
        ]
    if isinstance(old, list) and isinstance(new, list):
        short = [] if len(old) == len(new) else [f"{place} has {len(new)} for {len(old)}"]
        pairs = enumerate(zip(old, new, strict=False))
        return short + [one for at, pair in pairs for one in differences(*pair, f"{place}[{at}]")]
    if isinstance(old, float) and isinstance(new, float):
        same = old == pytest.approx(new, rel=CLOSE, abs=CLOSE)
        return [] if same else [f"{place}: {old!r} became {new!r}"]
    return [] if old == new else [f"{place}: {old!r} became {new!r}"]


if __name__ == "__main__":
    for one in STUDIES if sys.argv[1] == "all" else sys.argv[1:]:
        record(one)
        print(one, flush=True)  # noqa: T201 a line a study

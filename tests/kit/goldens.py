"""What every analyse command answers in JSON, of the demo and of four public data sets, recorded and compared.

    PYTHONPATH=tests:. python -m kit.goldens record NAME|all [OUT] [CHECKOUT]

CHECKOUT is another tree of medjury, with an environment of its own, whose code answers; by default
this one. Clinicians and jurors of ACI-Bench are drawn with a seed: nobody rated it.
"""

import csv
import json
import lzma
import os
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import create_engine, text

ROOT = Path(__file__).parents[2]
DATASETS = ROOT.parent / "shared" / "datasets"
GOLDENS = ROOT / "tests" / "fixtures" / "goldens"
CLOSE = 1e-12  # another processor may add up in another order
CRITERIA = ("accuracy", "completeness", "clarity")
JURORS = (("jx", 0.7), ("jy", 0.9), ("jz", 1.4))
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
    "aci": ("aci_bench", "responses.csv", "jx,jy", "jz", "3"),
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


def answers(name: str, tree: Path = ROOT) -> dict[str, Any]:
    """Return the JSON of every command, or its exit code, of one study made by a tree's own code."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _make(name, folder, tree)
        *_, a, b, harmful = STUDIES[name]
        found: dict[str, Any] = {}
        for command, words in COMMANDS.items():
            if command == "compare" and not a:
                continue
            asked = [word.format(a=a, b=b, harmful=harmful) for word in words]
            out = folder / "answer.json"
            ran = _medjury(folder, tree, *asked, "--json", out, check=False)
            given = json.loads(out.read_text("utf-8")) if out.exists() else None
            found[command] = {"exit": ran.returncode, "json": steady(given)}
            out.unlink(missing_ok=True)
        return found


def _make(name: str, folder: Path, tree: Path) -> None:
    if name == "demo":
        _medjury(folder, tree, "demo", "--no-serve")
        return
    dataset, responses, *_ = STUDIES[name]
    if not (DATASETS / dataset).is_dir():
        pytest.skip(f"the public data set {dataset} is not at {DATASETS / dataset}")
    script = "aci_bench" if name == "aci" else name
    scripts = tree / "docs" / "real_data"
    _run(tree, scripts / f"{script}.py", DATASETS, folder)
    rubric = "aci_bench" if name == "aci" else scripts / "rubrics" / name
    read = ("--encoding", "utf-8") if name == "aci" else ()  # some models wrote garbled words
    _medjury(folder, tree, "study", "import", folder / responses, "--rubric", rubric, *read)
    if name == "aci":
        _draw_ratings(folder)
    _medjury(folder, tree, "rate", "ratings", folder / "ratings.csv")
    if name != "mentalbench":  # it has no references
        _medjury(folder, tree, "analyse", "measure", "rouge-l")


def _run(tree: Path, *words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    python = sys.executable if tree == ROOT else tree / ".venv" / "bin" / "python"
    env = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    ran = subprocess.run(
        [str(python), *map(str, words)],
        check=False,
        capture_output=True,
        cwd=tree,
        env=env,
        text=True,
    )
    if check and ran.returncode:
        raise RuntimeError(f"{words}: {ran.stderr}")
    return ran


def _medjury(
    folder: Path, tree: Path, *words: object, check: bool = True
) -> subprocess.CompletedProcess[str]:
    at = f"sqlite:///{folder}/study.db"
    return _run(tree, "-m", "medjury", *words, "--db", at, check=check)


def _draw_ratings(folder: Path) -> None:
    """Write ratings of four clinicians, two a response, and of three jurors, over a year."""
    with create_engine(f"sqlite:///{folder}/study.db").connect() as study:
        asked = study.execute(text("SELECT response_id FROM response ORDER BY id LIMIT 300"))
        ids = [row[0] for row in asked]
    random, rows = Random(7), []  # noqa: S311 seeded
    quality = {one: random.gauss(3.4, 0.8) for one in ids}
    for place, one in enumerate(ids):
        day = datetime(2026, 1, 5, tzinfo=UTC) + timedelta(days=place * 350 // len(ids))
        clinicians = random.sample(["dr_a", "dr_b", "dr_c", "dr_d"], 2) if place % 3 else []
        for name in clinicians:
            for criterion in CRITERIA:
                if random.random() >= 0.01:
                    score = _whole(quality[one] + random.gauss(0.1, 0.8))
                    rows.append((one, name, "clinician", criterion, score, day.isoformat()))
        for name, noise in JURORS:
            if random.random() >= 0.05:
                scores = [_whole(quality[one] + 0.4 + random.gauss(0, noise)) for _ in CRITERIA]
                rows += [
                    (one, name, "juror", criterion, score, day.isoformat())
                    for criterion, score in zip(CRITERIA, scores, strict=True)
                ]
    with (folder / "ratings.csv").open("w", encoding="utf-8", newline="") as file:
        head = ("response_id", "rater", "kind", "criterion", "score", "rated_at")
        csv.writer(file).writerows([head, *rows])


def _whole(value: float) -> int:
    return min(5, max(1, round(value)))


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


def record(name: str, out: Path, tree: Path) -> None:
    """Write the answers of one study, compressed."""
    said = json.dumps(answers(name, tree), sort_keys=True).encode()
    (out / f"{name}.json.xz").write_bytes(lzma.compress(said, preset=9 | lzma.PRESET_EXTREME))


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
    _, _, what, *places = sys.argv
    places += [str(GOLDENS), str(ROOT)][len(places) :]
    for one in STUDIES if what == "all" else (what,):
        record(one, Path(places[0]), Path(places[1]).resolve())
        print(one, flush=True)  # noqa: T201 a line a study

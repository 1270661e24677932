"""Record what every command of figures says of some studies, and compare two recordings.

    uv run python benchmarks/goldens.py record STUDIES OUT [--tree CHECKOUT] [--only NAME]
    uv run python benchmarks/goldens.py compare BEFORE AFTER

STUDIES is a folder of SQLite studies; each command gets a copy of its own. `--tree` names the
checkout whose code answers, by default this one, so an older commit can be recorded too. `compare`
tells each number, count or name that differs to the last digit; keys that are new are allowed, the
words of notes may differ, and what is told in words (terminal, HTML) is left to `diff`.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
WORDS = {
    "note",
    "notes",
    "reason",
    "told",
    "made",
    "versions",
    "lead",
    "html",
    "alt",
    "caption",
    "last",
}
COMMANDS: dict[str, tuple[str, ...]] = {
    "calibrate": ("analyse", "calibrate", "--details", "--pairs", "--reps", "200", "--json", "-"),
    "published": ("analyse", "calibrate", "--method", "published", "--reps", "200", "--json", "-"),
    "table": ("analyse", "calibrate", "--reps", "200", "--details"),
    "html": ("analyse", "calibrate", "--reps", "200", "--html", "{out}"),
    "csv": ("analyse", "calibrate", "--reps", "200", "--csv", "{out}"),
    "markdown": ("analyse", "calibrate", "--reps", "200", "--markdown", "{out}"),
    "latex": ("analyse", "calibrate", "--reps", "200", "--latex", "{out}"),
    "juries": ("analyse", "juries", "--reps", "200", "--json", "-"),
    "juries_table": ("analyse", "juries", "--reps", "200"),
    "juries_compare": (
        "analyse",
        "juries",
        "--reps",
        "200",
        "--compare",
        "{a}",
        "--compare",
        "{b}",
        "--json",
        "-",
    ),
    "models": (
        "analyse",
        "models",
        "--reps",
        "200",
        "--unblind",
        "--reason",
        "golden",
        "--json",
        "-",
    ),
    "models_table": ("analyse", "models", "--reps", "200", "--unblind", "--reason", "golden"),
    "monitor": ("analyse", "monitor", "--reps", "200", "--json", "-"),
    "predict": ("analyse", "predict", "--json", "-"),
    "plan": ("study", "plan", "--pilot", "--json", "-"),
}
JURORS = {
    "demo": ("simulated-lenient,simulated-steady", "simulated-strict"),
    "aci": ("jx,jy", "jz"),
    "mentalbench": ("gpt-4o,o4-mini", "claude-3.7-sonnet"),
}


def record(studies: Path, out: Path, tree: Path, only: str | None) -> None:
    """Write what each command answers of each study into a file of its own."""
    for study in sorted(studies.glob("*.db")):
        for name, words in COMMANDS.items():
            if only and only not in (name, study.stem):
                continue
            place = out / study.stem / name
            place.parent.mkdir(parents=True, exist_ok=True)
            _answer(study, words, place, tree)
            print(place, flush=True)


def _answer(study: Path, words: tuple[str, ...], place: Path, tree: Path) -> None:
    a, b = JURORS.get(study.stem, ("", ""))
    if "{a}" in words and not a:
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "study.db")
        shutil.copy(study, copy)
        asked = [word.format(out=place, a=a, b=b) for word in words]
        command = [sys.executable, "-m", "medjury", *asked, "--db", f"sqlite:///{copy}"]
        env = os.environ | {"COLUMNS": "200", "OPENBLAS_NUM_THREADS": "1"}
        ran = subprocess.run(
            command, cwd=tree, env=env, capture_output=True, text=True, check=False
        )
    if "{out}" not in words:
        place.write_text(ran.stdout, "utf-8")
    place.with_suffix(".said").write_text(f"{ran.returncode}\n{ran.stderr}", "utf-8")


def compare(before: Path, after: Path) -> int:
    """Print each figure that differs between two recordings; return how many do."""
    lost = 0
    for old in sorted(before.rglob("*")):
        new = after / old.relative_to(before)
        if old.is_dir() or not old.read_text("utf-8").startswith("{"):
            continue
        if not new.exists() or not new.read_text("utf-8").startswith("{"):
            found = ["is not there"]
        else:
            found = [*_differences(json.loads(old.read_text()), json.loads(new.read_text()))]
        for one in found[:20]:
            print(f"{old.relative_to(before)}: {one}")
        lost += len(found)
    print(f"{lost} figures differ")
    return lost


def _differences(old: Any, new: Any, place: str = "") -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old.keys() - WORDS:
            if key not in new:
                yield f"{place}.{key} is not there"
            else:
                yield from _differences(old[key], new[key], f"{place}.{key}")
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{place} has {len(new)} for {len(old)}"
        for at, (one, other) in enumerate(zip(old, new, strict=False)):
            yield from _differences(one, other, f"{place}[{at}]")
    elif old != new:
        yield f"{place}: {old!r} became {new!r}"


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    ways = parser.add_subparsers(dest="way", required=True)
    recording = ways.add_parser("record")
    recording.add_argument("studies", type=Path)
    recording.add_argument("out", type=Path)
    recording.add_argument("--tree", type=Path, default=ROOT)
    recording.add_argument("--only")
    comparing = ways.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    asked = parser.parse_args()
    if asked.way == "record":
        record(asked.studies.resolve(), asked.out.resolve(), asked.tree.resolve(), asked.only)
    else:
        sys.exit(bool(compare(asked.before, asked.after)))


if __name__ == "__main__":
    main()

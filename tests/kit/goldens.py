"""What every analyse command answers in JSON for the demo study, what terminal and report page say, and the recordings.

    PYTHONPATH=tests:. python -m kit.goldens    record all anew, after figures or sentences were changed on purpose

What differs from run to run, as dates, versions and hashes, is left out of the figures, and replaced by
what it is in the words.
"""

import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from kit.commands import make_demo

FOLDER = Path(__file__).parents[1] / "fixtures" / "goldens"
FIGURES, WORDS = FOLDER / "demo.json.xz", FOLDER / "demo_words.txt.xz"
CLOSE = 1e-12  # another processor may add up in another order
REPS = ("--reps", "200")
COMPARED = ("--compare", "simulated-lenient,simulated-steady", "--compare", "simulated-strict")
COMMANDS: dict[str, tuple[str, ...]] = {
    "calibrate": ("analyse", "calibrate", "--details", *REPS),
    "published": ("analyse", "calibrate", "--method", "published", *REPS),
    "juries": ("analyse", "juries", *REPS),
    "compare": ("analyse", "juries", *REPS, *COMPARED),
    "models": ("analyse", "models", *REPS, "--unblind", "--reason", "golden"),
    "monitor": ("analyse", "monitor", *REPS),
    "predict": ("analyse", "predict"),
    "route": ("analyse", "route", "--at-most", "3", "--bound", "0.3"),
    "errors": ("analyse", "errors"),
    "plan": ("study", "plan", "--pilot"),
    "status": ("status",),
}
TOLD = ("calibrate", "juries", "models", "monitor", "predict", "plan", "status")
WIDTHS = (100, 200)
LEFT_OUT = {
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
DATE = re.compile(r"\b20\d\d-(?:\d\d|Q\d)(?:-\d\d)?(?:[T ][\d:.]+(?:Z|\+[\d:]+)?)?")
REPLACED = (
    (re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?(?: ?UTC|Z)?)?"), "DATE"),
    (re.compile(r"\b20\d\d-(?:\d\d|Q\d)\b"), "PERIOD"),
    (re.compile(r"\b(SHA-256|head) [0-9a-f]{6,64}\b"), r"\1 HASH"),
    (re.compile(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b"), "HASH"),
    (re.compile(r"\blargest difference \d\S*"), "largest difference D"),
    (re.compile(r"\bRecord: \d+ events"), "Record: N events"),  # as many as a run stores together
    (
        re.compile(
            r"\b(medjury|Python|numpy|pingouin|scipy|pandas|statsmodels) \d+(?:\.\w+)+(?:\+\w+)?"
        ),
        r"\1 VERSION",
    ),
)


def _ran(
    folder: Path, *words: object, columns: int = 100, study: str = "medjury.db"
) -> subprocess.CompletedProcess[str]:
    call = [
        sys.executable,
        "-m",
        "medjury",
        *map(str, words),
        "--db",
        f"sqlite:///{folder}/{study}",
    ]
    env = os.environ | {"COLUMNS": str(columns), "TERM": "xterm", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(call, env=env, capture_output=True, text=True, check=False)


def figures() -> dict[str, Any]:
    """Return the JSON of every command, one after another on one study, and its exit code."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_demo(folder)
        found: dict[str, Any] = {}
        for command, words in COMMANDS.items():
            if command == "status":
                continue
            out = folder / "answer.json"
            code = _ran(folder, *words, "--json", out).returncode
            given = json.loads(out.read_text("utf-8")) if out.exists() else None
            found[command] = {"exit": code, "json": steady(given)}
            out.unlink(missing_ok=True)
        return found


def words() -> str:
    """Return what commands say, each on a copy of the study, at each width, and the texts of the page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_demo(folder)
        parts = [
            f"## {command}, {width} columns\n{_printed(folder, COMMANDS[command], width)}"
            for command in TOLD
            for width in WIDTHS
        ]
        page = folder / "report.html"
        _printed(folder, ("analyse", "calibrate", *REPS, "--html", str(page)), 100)
        parts.append("## report page\n" + "\n".join(texts_of(page.read_text("utf-8"))))
    text = "\n\n".join(parts)
    for pattern, instead in REPLACED:
        text = pattern.sub(instead, text)
    lines = "\n".join(line.rstrip() for line in text.splitlines())
    return lines.replace(name, "FOLDER") + "\n"


def _printed(folder: Path, words: tuple[str, ...], columns: int) -> str:
    shutil.copy(folder / "medjury.db", folder / "study.db")
    ran = _ran(folder, *words, columns=columns, study="study.db")
    assert ran.returncode == 0, (words, ran.stdout, ran.stderr)
    return ran.stdout


def recorded(file: Path) -> str:
    """Return what was recorded in a file."""
    return lzma.decompress(file.read_bytes()).decode()


def steady(value: Any) -> Any:
    """Return JSON without what differs from run to run, and without sentences and texts of notes."""
    if isinstance(value, dict):
        return {key: steady(one) for key, one in value.items() if key not in LEFT_OUT}
    if isinstance(value, list):
        return [steady(one) for one in value]
    if isinstance(value, str):
        return "words" if re.search(r"\s", value) else DATE.sub("DATE", value)
    return value


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


def texts_of(page: str) -> list[str]:
    """Return the texts of a page, one a line: what is shown, and what stands for pictures."""
    reader = _Texts()
    reader.feed(page)
    return reader.texts


class _Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the attributes that are read out; skip what is not shown."""
        self._silent += tag in ("script", "style")
        self.texts += [
            value for name, value in attrs if name in ("alt", "title", "aria-label") and value
        ]

    def handle_endtag(self, tag: str) -> None:
        """Listen again after a script or a style sheet."""
        self._silent -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        """Keep a text in one line."""
        text = " ".join(data.split())
        if text and not self._silent:
            self.texts.append(text)


if __name__ == "__main__":
    for file, said in ((FIGURES, json.dumps(figures(), sort_keys=True)), (WORDS, words())):
        file.write_bytes(lzma.compress(said.encode(), preset=9 | lzma.PRESET_EXTREME))

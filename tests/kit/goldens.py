"""Recordings: what every analyse command answers in JSON for the demo study and four public data sets; the demo's words.

    PYTHONPATH=tests:. python -m kit.goldens    record all anew, after figures or sentences were changed on purpose

Clinicians and jurors of ACI-Bench are drawn with a seed: nobody rated it. What differs from run to run, as dates, versions and hashes, is left out of the figures, and replaced by
what it is in the words.
"""

import csv
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from kit.commands import make_demo

FOLDER = Path(__file__).parents[1] / "fixtures" / "goldens"
ROOT = Path(__file__).parents[2]
DATASETS = ROOT.parent / "shared" / "datasets"
WORDS = FOLDER / "demo_words.txt.xz"
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
    "status": ("status",),
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


def figures(name: str) -> dict[str, Any]:
    """Return the JSON of every command, one after another on one study, and its exit code."""
    *_, a, b, harmful = STUDIES[name]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _make(name, folder)
        found: dict[str, Any] = {}
        for command, words in COMMANDS.items():
            if command == "status" or (command == "compare" and not a):
                continue
            asked = [word.format(a=a, b=b, harmful=harmful) for word in words]
            out = folder / "answer.json"
            code = _ran(folder, *asked, "--json", out).returncode
            given = json.loads(out.read_text("utf-8")) if out.exists() else None
            found[command] = {"exit": code, "json": steady(given)}
            out.unlink(missing_ok=True)
        return found


def _make(name: str, folder: Path) -> None:
    """Make the study of one name in a folder."""
    if name == "demo":
        make_demo(folder)
        return
    dataset, responses, *_ = STUDIES[name]
    if not (DATASETS / dataset).is_dir():
        pytest.skip(f"the public data set {dataset} is not at {DATASETS / dataset}")
    drawn = name == "aci"
    scripts = ROOT / "docs" / "real_data"
    script = scripts / f"{'aci_bench' if drawn else name}.py"
    subprocess.run([sys.executable, script, DATASETS, folder], check=True, capture_output=True)
    rubric = "aci_bench" if drawn else scripts / "rubrics" / name
    read = ("--encoding", "utf-8") if drawn else ()  # some models wrote garbled words
    _ran(
        folder, "study", "import", folder / responses, "--rubric", rubric, *read
    ).check_returncode()
    if drawn:
        _draw_ratings(folder)
    _ran(folder, "rate", "ratings", folder / "ratings.csv").check_returncode()
    if name != "mentalbench":  # it has no references
        _ran(folder, "analyse", "measure", "rouge-l").check_returncode()


def _draw_ratings(folder: Path) -> None:
    """Write ratings of four clinicians, two a response, and of three jurors, over a year."""
    with create_engine(f"sqlite:///{folder}/medjury.db").connect() as study:
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
    said = "\n\n".join(parts)
    for pattern, instead in REPLACED:
        said = pattern.sub(instead, said)
    lines = "\n".join(line.rstrip() for line in said.splitlines())
    return lines.replace(name, "FOLDER") + "\n"


def _printed(folder: Path, words: tuple[str, ...], columns: int) -> str:
    shutil.copy(folder / "medjury.db", folder / "study.db")
    ran = _ran(folder, *words, columns=columns, study="study.db")
    assert ran.returncode == 0, (words, ran.stdout, ran.stderr)
    return ran.stdout


def of(name: str) -> Path:
    """Return the file with the figures of a study."""
    return FOLDER / f"{name}.json.xz"


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
    found = {of(name): json.dumps(figures(name), sort_keys=True) for name in STUDIES}
    for file, said in (*found.items(), (WORDS, words())):
        file.write_bytes(lzma.compress(said.encode(), preset=9 | lzma.PRESET_EXTREME))

"""What the terminal and the report page say for the demo study, and the recording of it.

    PYTHONPATH=tests:. python -m kit.demo_words    record anew, after sentences were changed on purpose

The recording is compressed text. Dates, times, versions and hashes, which differ from run to run,
are replaced by what they are.
"""

import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path

from data.database import open_study
from medjury.cli.demo import fill

RECORDING = Path(__file__).parents[1] / "fixtures" / "goldens" / "demo_words.txt.xz"
WIDTHS = (100, 200)
RESAMPLES = ("--reps", "200")
COMMANDS: dict[str, tuple[str, ...]] = {
    "calibrate": ("analyse", "calibrate", "--details", *RESAMPLES),
    "juries": ("analyse", "juries", *RESAMPLES),
    "models": ("analyse", "models", "--unblind", "--reason", "recorded", *RESAMPLES),
    "monitor": ("analyse", "monitor", *RESAMPLES),
    "predict": ("analyse", "predict"),
    "plan": ("study", "plan", "--pilot"),
    "status": ("status",),
}
CHANGING = (
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


def said() -> str:
    """Return what all commands say at each width, and the texts of the page, under headings."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        engine = open_study(f"sqlite:///{folder}/demo.db", create=True)
        fill(engine)
        engine.dispose()
        parts = [
            f"## {command}, {width} columns\n{_printed(folder, words, width)}"
            for command, words in COMMANDS.items()
            for width in WIDTHS
        ]
        page = folder / "report.html"
        _printed(folder, ("analyse", "calibrate", *RESAMPLES, "--html", str(page)), 100)
        parts.append("## report page\n" + "\n".join(texts_of(page.read_text("utf-8"))))
    return steady("\n\n".join(parts)).replace(name, "FOLDER") + "\n"


def recorded() -> str:
    """Return the recording."""
    return lzma.decompress(RECORDING.read_bytes()).decode()


def record() -> None:
    """Write the recording anew."""
    RECORDING.write_bytes(lzma.compress(said().encode(), preset=9 | lzma.PRESET_EXTREME))


def steady(text: str) -> str:
    """Return a text in which what differs from run to run is replaced, and no line ends in spaces."""
    for pattern, instead in CHANGING:
        text = pattern.sub(instead, text)
    return "\n".join(line.rstrip() for line in text.splitlines())


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


def _printed(folder: Path, words: tuple[str, ...], columns: int) -> str:
    """Return what a command prints on a copy of the study; it must succeed."""
    copy = shutil.copy(folder / "demo.db", folder / "study.db")
    call = [sys.executable, "-m", "medjury", *words, "--db", f"sqlite:///{copy}"]
    env = os.environ | {"COLUMNS": str(columns), "TERM": "xterm", "OPENBLAS_NUM_THREADS": "1"}
    ran = subprocess.run(call, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, (words, ran.stdout, ran.stderr)
    return ran.stdout


if __name__ == "__main__":
    record()

"""Commands run in this process, what they must say, and files for them."""

import contextlib
import csv
import fcntl
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from sqlalchemy import Engine

from kit.studies import Run
from medjury import main
from medjury.cli import files


def call(url: str, *arguments: str) -> tuple[int, str, str]:
    """Run one command in this process; return its exit code, output and messages."""
    out, err = io.StringIO(), io.StringIO()
    aside = (contextlib.redirect_stdout(out), contextlib.redirect_stderr(err))
    with pytest.MonkeyPatch.context() as patch, aside[0], aside[1]:
        patch.setenv("MEDJURY_DB", url)
        patch.setenv("COLUMNS", "100")
        patch.setenv("TERM", "xterm")
        with pytest.raises(SystemExit) as ended:
            main(arguments)
    files.forget_streaming()  # a process would end here
    return int(str(ended.value.code or 0)), out.getvalue(), err.getvalue()


def command(engine: Engine) -> Run:
    """Return what runs a command on a study."""
    return partial(call, engine.url.render_as_string(hide_password=False))


def told_by(url: str, *arguments: str) -> tuple[int, str]:
    """Run one command; return its exit code and what it says of what is wrong."""
    said, out = io.StringIO(), io.StringIO()
    aside = contextlib.redirect_stdout(out)
    with contextlib.redirect_stderr(said), aside, pytest.raises(SystemExit) as ended:
        main((*arguments, "--db", url))
    return int(str(ended.value.code or 0)), said.getvalue()


HEADER = "instance_id,benchmark,context,prompt,response_id,model,response"


def responses(folder: Path, number: int, name: str = "many.csv") -> Path:
    """Write a file of responses, about two kilobytes each."""
    rows = (f"i{n},visits,{'words ' * 300},write,r{n},model,answer {n}" for n in range(number))
    path = folder / name
    path.write_text("\n".join([HEADER, *rows, ""]), encoding="utf-8")
    return path


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def assert_told(result: tuple[int, str, str], *words: str) -> None:
    """Assert that a command ended with one message, and not with a traceback."""
    code, _, err = result
    assert code == 2, err
    assert len(err.strip().splitlines()) == 1, err
    assert all(word in err for word in words), err


def json_of(run: Run, *words: str, ends: int = 0) -> dict[str, Any]:
    """Return the JSON that a command writes to standard output; fail unless it ends with this code."""
    code, out, err = run(*words, "--json", "-")
    assert code == ends, err
    return dict(json.loads(out))


def figures(run: Run, *arguments: str) -> dict[str, Any]:
    """Return what `study import` tells as JSON."""
    return json_of(run, "study", "import", *arguments)


def csv_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file, with or without the mark that Excel wants."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


LETTER = """
PROMPT_TEMPLATE = "On a scale of 0-3 (0 = bad, 3 = good): {QUESTION} {RESPONSE}"

class LetterAnnotator(LLMAsJuryAnnotator):
    def __init__(self):
        super().__init__(name="letter", prompt_template=PROMPT_TEMPLATE,
                         annotation_criteria={"tone": {"score", "explanation"}})
"""


def helm_wheel(folder: Path) -> Path:
    """Make a wheel of one annotator, in HELM's form and our own words."""
    path = folder / "crfm_helm-0.5.9-py3-none-any.whl"
    with ZipFile(path, "w") as wheel:
        wheel.writestr("helm/benchmark/annotation/letter_annotator.py", LETTER)
        wheel.writestr("crfm_helm-0.5.9.dist-info/METADATA", "Name: crfm-helm")
    return path


@dataclass(frozen=True, slots=True)
class Demo:
    """The file of the demo study, and what the command said while it made it."""

    study: Path
    output: str


def demo_of_run(folder: Path) -> Demo:
    """Return the demo of a folder that the run's processes share; the first to ask makes it."""
    place, output = folder / "demo", folder / "demo" / "output.txt"
    with (folder / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not output.exists():
            place.mkdir(exist_ok=True)
            output.write_text(make_demo(place), "utf-8")
    return Demo(place / "medjury.db", output.read_text("utf-8"))


def make_demo(folder: Path, url: str | None = None) -> str:
    """Make the demo in a process and a folder of its own; return what the command says."""
    call = [sys.executable, "-m", "medjury", "demo", "--no-serve"]
    environment = {name: value for name, value in os.environ.items() if name != "MEDJURY_DB"}
    environment |= {"MEDJURY_DB": url} if url else {}
    made = subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return made.stdout

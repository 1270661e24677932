"""What the server and the worker hand one another is light: no figure's library comes with it."""

import subprocess
import sys
from pathlib import Path

import pytest

import calibration.tables

HEAVY = ("numpy", "pandas", "scipy", "statsmodels", "altair", "sqlalchemy", "streamlit", "typer")
TABLES = sorted(
    one.stem for one in Path(calibration.tables.__file__).parent.glob("*.py") if one.stem[0] != "_"
)
MODULES = [
    *(f"calibration.{name}" for name in ("values", "codes", "messages", "json_values", "decision")),
    *(f"calibration.tables.{name}" for name in TABLES),
    "calibration.writers.html",
    "annotate.results",
]
LOADED = "import sys, {}\nprint(*(one for one in {} if one in sys.modules))"


def loaded(modules: str) -> list[str]:
    """Return which heavy modules a fresh interpreter has loaded with these."""
    call = [sys.executable, "-c", LOADED.format(modules, HEAVY)]
    return subprocess.run(call, capture_output=True, text=True, check=True).stdout.split()


def test_the_values_that_screens_are_handed_load_no_library_of_figures() -> None:
    assert loaded(", ".join(MODULES)) == []


def test_what_is_heavy_would_be_seen() -> None:
    assert set(loaded("calibration.table")) >= {"numpy", "pandas"}


@pytest.mark.parametrize("name", ["agreement", "jurors", "notes", "numbers", "spec"])
def test_no_table_of_this_vertical_is_forgotten(name: str) -> None:
    assert f"calibration.tables.{name}" in MODULES

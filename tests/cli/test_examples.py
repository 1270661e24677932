"""The examples in docstrings do what they say."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("annotate", "calibration", "data", "jury", "medjury")


def modules() -> list[str]:
    """Return the modules whose docstrings have examples."""
    files = (file for name in PACKAGES for file in sorted((ROOT / name).rglob("*.py")))
    return [
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for file in files
        if ">>> " in file.read_text("utf-8")
    ]


@pytest.mark.parametrize("name", modules())
def test_the_examples_of_a_module_do_what_they_say(name: str) -> None:
    found = doctest.testmod(import_module(name))
    assert found.attempted
    assert not found.failed

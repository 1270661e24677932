"""The architecture that no contract of import-linter can say: no circles, and values that load no library of figures."""

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import grimp
import pytest

import calibration.tables
from annotate import screens
from data import queries

PACKAGES = ("medjury", "annotate", "jury", "calibration", "data")


def test_no_modules_import_one_another_in_a_circle() -> None:
    graph = grimp.build_graph(*PACKAGES)
    imports = {one: graph.find_modules_directly_imported_by(one) for one in graph.modules}
    assert [*circles(imports)] == []


def test_no_module_of_queries_hides_a_name_of_the_package() -> None:
    names = {name: value for name, value in vars(queries).items() if not name.startswith("_")}
    functions = {name for name, value in names.items() if not isinstance(value, ModuleType)}
    for module in iter_modules(queries.__path__):
        import_module(f"data.queries.{module.name}")
    hidden = {name for name in functions if isinstance(getattr(queries, name), ModuleType)}
    assert hidden == set()
    assert "workbench_jurors" in functions  # which a module of this name hid once


@pytest.mark.not_quick
@pytest.mark.parametrize("name", ["data.store.reviews", "data.queries.workbench_sides"])
def test_a_module_can_be_the_first_that_is_imported(name: str) -> None:
    ran = subprocess.run([sys.executable, "-c", f"import {name}"], check=False)
    assert ran.returncode == 0


@pytest.mark.not_quick
def test_routing_and_hand_over_have_the_server_load_nothing_that_computes_figures() -> None:
    every = sorted(one.name for one in iter_modules(screens.__path__))
    names = [name for name in every if name.startswith(("agreement_routing", "handover"))]
    assert len(names) == 2
    code = (
        "import sys; from importlib import import_module\n"
        f"[import_module(f'annotate.screens.{{name}}') for name in {names}]\n"
        "print(sorted({'pandas', 'numpy', 'scipy', 'altair', 'pyarrow'} & {*sys.modules}))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_a_circle_is_found() -> None:
    assert [*circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}})] == [{"b", "c"}]


def circles(imports: dict[str, set[str]]) -> Iterator[set[str]]:
    """Yield the groups of modules each of which can be reached from all others of its group."""
    reached = {one: _reached(one, imports) for one in imports}
    seen: set[str] = set()
    for one in sorted(imports):
        if one in reached[one] and one not in seen:
            group = {other for other in reached[one] if one in reached.get(other, ())}
            seen |= group
            yield group


def _reached(start: str, imports: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    open_ = [*imports[start]]
    while open_:
        one = open_.pop()
        if one not in found:
            found.add(one)
            open_ += imports.get(one, ())
    return found


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


@pytest.mark.parametrize("name", ["agreement", "jurors", "numbers", "spec"])
def test_no_table_of_this_vertical_is_forgotten(name: str) -> None:
    assert f"calibration.tables.{name}" in MODULES

"""The architecture that no contract of import-linter can say: no circle of modules, and who reads authors.

Of circles: what is imported for the type checker alone is not imported. A module imports the packages of
what it imports too: in a circle through one of them, two threads that begin at two ends get half a module.
"""

import ast
from pathlib import Path

import grimp
import numpy as np
from scipy.sparse.csgraph import connected_components

ROOT = Path(__file__).parents[2]
PACKAGES = ("medjury", "annotate", "jury", "calibration", "data")
# Modules that know the table -> what for.
ALLOWED = {
    "data/schema.py": "says what it is",
    "data/study/authors.py": "writes it, reads and compares it where the blind allows",
    "data/study/copies.py": "selects what leaves: with authors, for an export recorded as lifting the blind",
    "data/study/package.py": "stores what a package brings",
}


def knows_authors(source):
    """Tell whether a module names the table, as a class or in SQL of its own."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(one.name == "Authorship" for one in node.names):
            return True
        if isinstance(node, ast.Name | ast.Attribute | ast.ClassDef) and "Authorship" in (
            getattr(node, "id", ""),
            getattr(node, "attr", ""),
            getattr(node, "name", ""),
        ):
            return True
        if isinstance(node, ast.Constant) and (
            node.value == "authorship" or "from authorship" in str(node.value).casefold()
        ):
            return True
    return False


def test_only_these_modules_know_the_table_of_authors():
    found = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if "migrations" not in path.parts and knows_authors(path.read_text("utf-8"))
    }
    assert found == ALLOWED.keys()


def packages(module):
    """Yield a module and all packages that it is in."""
    parts = module.split(".")
    return (".".join(parts[: n + 1]) for n in range(len(parts)))


def test_no_modules_import_one_another_in_a_circle():
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True)
    place = {name: number for number, name in enumerate(sorted(graph.modules))}
    imports = np.zeros((len(place), len(place)), dtype=bool)
    for one in place:
        for other in graph.find_modules_directly_imported_by(one):
            for package in packages(other):
                imports[place[one], place[package]] = not f"{one}.".startswith(f"{package}.")
    _, circle = connected_components(imports, connection="strong")
    assert [one for one, own in place.items() if (circle == circle[own]).sum() > 1] == []

"""Who may read the table of authors: two modules, and those that pack it or hold it to the record."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("medjury", "annotate", "jury", "calibration", "data")
# Modules that know the table -> what for.
ALLOWED = {
    "data/schema.py": "says what it is",
    "data/study/authors.py": "writes it, reads and compares it where the blind allows",
    "data/study/copies.py": "selects what leaves: with authors, for an export recorded as lifting the blind",
    "data/study/package.py": "stores what a package brings",
}


def knows_authors(source: str) -> bool:
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


def test_only_these_modules_know_the_table_of_authors() -> None:
    found = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if "migrations" not in path.parts and knows_authors(path.read_text("utf-8"))
    }
    assert found == ALLOWED.keys()

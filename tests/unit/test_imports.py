"""The architecture that no contract of import-linter can say: no modules import one another in a circle.

What is imported for the type checker alone is not imported. A module imports the packages of what it
imports too: in a circle through one of them, two threads that begin at two ends get half a module.
"""

from collections.abc import Iterator

import grimp

PACKAGES = ("medjury", "annotate", "jury", "calibration", "data")


def test_no_modules_import_one_another_in_a_circle() -> None:
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True)
    imports = {
        one: {
            package
            for other in graph.find_modules_directly_imported_by(one)
            for package in packages(other)
            if not f"{one}.".startswith(f"{package}.")
        }
        for one in graph.modules
    }
    assert [*circles(imports)] == []


def packages(module: str) -> Iterator[str]:
    """Yield a module and all packages that it is in."""
    parts = module.split(".")
    return (".".join(parts[: n + 1]) for n in range(len(parts)))


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

"""The architecture that no contract of import-linter can say: no modules import one another in a circle.

What is imported for the type checker alone is not imported. A module imports the packages of what it
imports too: in a circle through one of them, two threads that begin at two ends get half a module.
"""

from collections.abc import Iterator

import grimp
import numpy as np
from scipy.sparse.csgraph import connected_components

PACKAGES = ("medjury", "annotate", "jury", "calibration", "data")


def packages(module: str) -> Iterator[str]:
    """Yield a module and all packages that it is in."""
    parts = module.split(".")
    return (".".join(parts[: n + 1]) for n in range(len(parts)))


def test_no_modules_import_one_another_in_a_circle() -> None:
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True)
    place = {name: number for number, name in enumerate(sorted(graph.modules))}
    imports = np.zeros((len(place), len(place)), dtype=bool)
    for one in place:
        for other in graph.find_modules_directly_imported_by(one):
            for package in packages(other):
                imports[place[one], place[package]] = not f"{one}.".startswith(f"{package}.")
    _, circle = connected_components(imports, connection="strong")
    assert [one for one, own in place.items() if (circle == circle[own]).sum() > 1] == []

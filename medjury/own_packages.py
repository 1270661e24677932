"""Where medjury's packages are, and how each of its processes finds them before all others.

`annotate`, `calibration`, `data` and `jury` are plain words: a working folder may have such folders,
and other distributions install packages of these names. In a checkout ours lie beside `medjury`; a
wheel holds them inside it, in `_packages`, so that it overwrites no other package. Importing
`medjury`, which every process does first, puts their folder in front of the search path.
"""

import os
import sys
from pathlib import Path

NAMES = ("annotate", "calibration", "data", "jury")
MEDJURY = Path(__file__).parent
WITHIN = "_packages"  # pyproject.toml has the same name
FOLDER = MEDJURY / WITHIN if (MEDJURY / WITHIN).is_dir() else MEDJURY.parent


def put_first() -> None:
    """Have this process import our packages, whatever else goes by their names.

    Raises
    ------
    ImportError
        If another package of one of the names was imported before.
    """
    for name in NAMES:
        for path in getattr(sys.modules.get(name), "__path__", ()):
            if Path(path).resolve() != (FOLDER / name).resolve():
                raise ImportError(
                    f"medjury: this process has imported another package named {name}, from "
                    f"{path}; import medjury before it, or run medjury in a process of its own"
                )
    if sys.path[:1] != [str(FOLDER)]:
        sys.path.insert(0, str(FOLDER))


def command(module: str, *words: str) -> list[str]:
    """Return the command that runs one of our modules; it wants `environment()`.

    Python's `-P` keeps the working folder out of the search path.
    """
    return [sys.executable, "-P", "-m", module, *words]


def environment() -> dict[str, str]:
    """Return the environment in which a process of ours finds our packages first."""
    others = os.environ.get("PYTHONPATH", "")
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (str(FOLDER), others)))}

"""Measure the rating room under load, beside Potato if it is there; print one table.

    uv run python benchmarks/rating_room/run.py --clinicians 20,50 --think 2 [--peer PYTHON]

Both systems serve the same texts at the same time, and their shifts take turns, so that
what else the machine does falls on both.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent

if __name__ == "__main__":
    sys.path.extend([str(HERE.parent), str(HERE.parents[1] / "tests")])
    from measure import main

    main()

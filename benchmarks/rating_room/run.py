"""Measure the rating room under load; print one table.

uv run python benchmarks/rating_room/run.py --clinicians 20,50 --think 2
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent

if __name__ == "__main__":
    sys.path.extend([str(HERE.parent), str(HERE.parents[1] / "tests")])
    from measure import main

    main()

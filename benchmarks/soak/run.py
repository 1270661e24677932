"""Let a study be worked on for an hour as a busy day would, and hold it to its promises.

    uv run python benchmarks/soak/run.py --minutes 60 --out soak.json [--db URL]

Twenty scripted clinicians at `medjury serve`, a jury run, a calibration a minute, a researcher
who opens screens, and backups. Exit 1 where a promise is broken. `--db` names an empty
PostgreSQL database; without it the study is a SQLite file that goes with the run.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent

if __name__ == "__main__":
    root = HERE.parents[1]
    sys.path.extend([str(HERE.parent / "rating_room"), str(root / "tests"), str(root)])
    from endure import main

    sys.exit(main())

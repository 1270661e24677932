"""Kill one of two Dask workers at moments spread over sending, computing and gathering.

    PYTHONPATH=tests uv run python benchmarks/scale/kills.py [--moments 20]

Prints for each moment how long after it the run ended, and with what: the same figures, which are
compared, or a message.
"""

import argparse
import os
import tempfile
from pathlib import Path

from kit.dask_kills import killed, undisturbed
from kit.dask_place import dask_place


def main() -> None:
    """Kill and print."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--moments", type=int, default=20)
    count = asked.parse_args().moments
    print(f"load {' '.join(f'{one:.1f}' for one in os.getloadavg())} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder, dask_place(Path(folder)) as place:
        place.worker()
        place.worker()
        undisturbed(place)  # workers load medjury
        phases = undisturbed(place)
        print("undisturbed: " + ", ".join(f"{k} {v:.2f} s" for k, v in phases._asdict().items()))
        for moment, phase in phases.moments(count):
            one = killed(place, moment, phase)
            print(
                f"  {phase} at {moment:.2f} s: ended {one.seconds:.1f} s later: "
                f"{one.said or 'same figures'}",
                flush=True,
            )


if __name__ == "__main__":
    main()

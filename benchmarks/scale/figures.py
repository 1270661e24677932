"""Measure what figures cost on large made studies: the command, and ratings loaded for a figure.

    PYTHONPATH=. uv run python benchmarks/scale/figures.py STUDY.db [--load] [-- COMMAND ...]

Without a command, `analyse calibrate` is run on the study. With --load every rating is read
by `rating_table` instead. Told are wall time, processor seconds of the process and its children,
the most memory it held, the machine's load, and a hash of what was answered, to compare commits by.
Make the study with made.py.
"""

import argparse
import hashlib
import os
import resource
import subprocess
import sys
import time

CALIBRATE = ("analyse", "calibrate", "--json", "-")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study")
    parser.add_argument("--load", action="store_true", help="read every rating, compute nothing")
    parser.add_argument("--loading", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("command", nargs="*", default=CALIBRATE)
    options = parser.parse_args()
    if options.loading:
        print(load(options.study))
        return
    own = [sys.executable, __file__, options.study, "--loading"]
    command = [sys.executable, "-m", "medjury", *options.command]
    measure(own if options.load else command, options.study)


def measure(command: list[str], study: str) -> None:
    """Run a command on a study and print what it cost."""
    before, began = os.getloadavg()[0], time.perf_counter()
    ran = subprocess.run(
        command, env=os.environ | {"MEDJURY_DB": study}, capture_output=True, check=False
    )
    took = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{took:.1f} s, {used.ru_utime + used.ru_stime:.1f} processor s, "
        f"{used.ru_maxrss / 1e6:.2f} GB at its peak; load {before:.1f} to {os.getloadavg()[0]:.1f}; "
        f"exit {ran.returncode}, answer {hashlib.sha256(ran.stdout).hexdigest()[:12]}"
    )
    if ran.returncode not in (0, 1) or "--loading" in command:
        print(ran.stdout.decode(), ran.stderr.decode())


def load(study: str) -> str:
    """Read every rating as a figure does; return how many there are and their sum."""
    from data.database import open_study
    from data.queries.frames import ratings_frame

    url = study if "://" in study else f"sqlite:///{study}"
    frame = ratings_frame(open_study(url))
    return f"{len(frame)} ratings, sum {frame['score'].sum():.0f}"


if __name__ == "__main__":
    main()

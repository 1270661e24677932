"""A watch under 20 kills, a full disk and a juror that is down; and how often it raises a false alarm.

    .venv/bin/python benchmarks/watch.py faults PLACE --disk DISK --down 3600 --pause 20
    .venv/bin/python benchmarks/watch.py years [--years 200]

`faults` drops a file every `--pause` seconds; DISK is a small disk for the study (a tmpfs; without one none
is filled). A quarter of the kills is in the `--down` seconds in which one of two jurors answers nothing.
`years` looks at each simulated year at the end of each of its months, with what was known by then, as a
watch does: an alarm at any of the looks counts, whether or not a later look would take it back.
"""

import argparse
import os
import sys
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from kit import watched_years
from kit.scores import scope_of
from kit.ward_faults import AT_ONCE, Ward, account, dropping, full

from calibration.monitoring.periods import DayRange, PeriodOptions, next_start, period_rows
from calibration.monitoring.watch import TargetOptions, watch

LONGEST = 8.0  # seconds from a watch's beginning to its kill


@dataclass(frozen=True)
class Faults:
    """How many files of how many responses come how often, and what happens meanwhile."""

    drops: int
    each: int
    pause: float
    kills: int
    down: float


def faults(place: Path, disk: Path | None, plan: Faults) -> None:
    """Drop, kill, fill the disk, let a juror be down; print what is there at the end."""
    place.mkdir(parents=True, exist_ok=True)
    quarter = plan.kills // 4
    ward = Ward(place, disk or place)
    began = time.monotonic()
    with ward.stub:
        engine = ward.begin()
        with dropping(ward, plan.drops, plan.each, plan.pause):
            ward.kill_some(quarter, LONGEST, seed=1)
            ward.down, since = True, time.monotonic()
            ward.kill_some(quarter, max(LONGEST, 2 * plan.down / quarter), seed=2)
            while time.monotonic() - since < plan.down:
                ward.kill_some(1, LONGEST, seed=int(time.monotonic()))
            ward.down = False
            print(
                f"down for {time.monotonic() - since:.0f} s; kills by then {ward.kills}", flush=True
            )
            if disk is not None:
                with full(disk):
                    ward.kill_some(2, LONGEST, seed=3)
            ward.kill_some(max(plan.kills - ward.kills, quarter), LONGEST, seed=4)
        print("exit", ward.finish(3600), "after kills", ward.kills)
    print(account(ward, engine))
    print(f"at most {AT_ONCE * ward.kills} in flight when killed; {time.monotonic() - began:.0f} s")
    print("load", os.getloadavg())


def alarmed(seed: int, plan: watched_years.Plan) -> bool:
    """Return whether any of the looks of a year raised an alarm."""
    random = np.random.default_rng(seed)
    months = plan.before + plan.after
    r = np.full(months * plan.instances, watched_years.latent(plan.marks, plan.icc))
    pairs = watched_years._pairs(plan, r, random)
    for month in range(plan.before + 2, months + 1):
        scope = scope_of(pairs[: month * plan.instances], 1, per=1, reps=0)
        days, day = {}, date(2025, 1, 1)
        for number in range(month):
            own = scope.grid.responses[number * plan.instances : (number + 1) * plan.instances]
            days |= dict.fromkeys(own, DayRange(day, day))
            day = next_start(day, "month")
        rows = period_rows(scope, scope.jury, PeriodOptions(days, date(2100, 1, 1), least=3))
        if watch(rows, TargetOptions(periods=plan.before)).alarm:
            return True
    return False


def years(number: int) -> None:
    """Print the share of unchanged years with an alarm at any look."""
    plan = watched_years.Plan(before=3)
    found = []
    for seed in range(number):
        found.append(alarmed(seed, plan))
        print(f"{sum(found)} of {len(found)}", end="\r", flush=True)
    print(f"{sum(found)} of {number} unchanged years had an alarm at one of their looks")
    print("load", os.getloadavg(), "processor seconds", sum(os.times()[:2]))


def main() -> None:
    """Read what is asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["faults", "years"])
    parser.add_argument("place", nargs="?", type=Path)
    parser.add_argument("--disk", type=Path)
    for name, value in (("drops", 200), ("each", 50), ("kills", 20), ("years", 200)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--pause", type=float, default=0.2)
    parser.add_argument("--down", type=float, default=20.0)
    own = parser.parse_args()
    if own.what == "years":
        years(own.years)
    else:
        plan = Faults(own.drops, own.each, own.pause, own.kills, own.down)
        faults(own.place, own.disk, plan)


if __name__ == "__main__":
    main()

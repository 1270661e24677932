"""Measure the rating room with a crowd of strangers at its address, and without; print both.

    uv run python benchmarks/rating_room/strangers.py --strangers 300 --clinicians 20

The strangers run in a process of their own, on the same processors as all else, and each sends
the largest of what it may begin: `tests/kit/crowd.py`.
"""

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path.extend([str(HERE.parent), str(HERE.parents[1] / "tests")])

import room  # noqa: E402
from kit import crowd  # noqa: E402 the path comes first
from serving import Serving, free_port, machine, serving  # noqa: E402
from shifts import Shift, work  # noqa: E402
from study import build  # noqa: E402
from texts import texts  # noqa: E402

RESPONSES, THINK_SECONDS = 120, 2.0
LATER_SECONDS = 10


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--strangers", default=300, type=int)
    asked.add_argument("--clinicians", default=20, type=int)
    asked.add_argument("--seconds", default=30.0, type=float)
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        names = [f"dr-{n}" for n in range(options.clinicians)]
        codes = build(Path(folder) / "study.db", texts(RESPONSES), dict.fromkeys(names, RESPONSES))
        port = free_port()
        command = room.command(Path(folder) / "study.db", port)
        with serving(command, port, "/_stcore/health", Path(folder)) as server:
            asyncio.run(measured(server, [codes[name] for name in names], options))


async def measured(server: Serving, codes: Sequence[str], options: argparse.Namespace) -> None:
    """Print a shift without strangers and one with them, and the server's memory."""
    desks = await room.seat(server.address, codes)
    shift = Shift(options.seconds, THINK_SECONDS)
    await work(desks, Shift(3, 1.0), seed=0)
    for strangers in (0, options.strangers):
        call = [sys.executable, crowd.__file__, server.address, str(strangers), str(shift.seconds)]
        came = subprocess.Popen(call, stdout=subprocess.PIPE, text=True)
        taken = await work(desks, shift, seed=strangers + 1)
        tried, closed = (came.communicate()[0] or "0 0").split()
        cuts = statistics.quantiles(taken.submits, n=100)
        print(
            f"{strangers} strangers ({tried} connections, {closed} closed by the server): "
            f"{len(taken.submits)} submits of {len(codes)} clinicians, "
            f"p50 {cuts[49]:.0f} p95 {cuts[94]:.0f} p99 {cuts[98]:.0f} ms; "
            f"memory {server.rss_mb():.0f} MB, at most {peak_mb(server):.0f}; {machine()}",
            flush=True,
        )
    time.sleep(LATER_SECONDS)
    print(f"{LATER_SECONDS} s after they have gone: {server.rss_mb():.0f} MB")


def peak_mb(server: Serving) -> float:
    """Return the most memory that a server ever held."""
    lines = Path(f"/proc/{server.pid}/status").read_text().splitlines()
    return next(int(one.split()[1]) / 1024 for one in lines if one.startswith("VmHWM:"))


if __name__ == "__main__":
    main()

"""Measure a jury run against a stub, beside the bare SDK and inspect_ai; print one table.

    uv run python benchmarks/jury_run/run.py [--peer PYTHON] [--rounds 3]

3,000 calls (1,000 responses before three jurors) at 64 at a time and 200 ms latency; the ideal
is ceil(N / C) x latency. Every trial is a process of its own, in turn; `whole` is the process
from start to end, `span` from making the clients to the last verdict stored. "Its line alone" is
the same SDK, transport and event loop with nothing parsed or stored.
"""

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "rating_room"))
from serving import free_port, machine  # noqa: E402

LATENCY = 0.2


def main() -> None:
    """Run every trial in turn and print medians."""
    options = _options()
    kinds = {"medjury": "ours.py", "its line alone": "line.py", "bare AsyncOpenAI": "bare.py"}
    if options.peer:
        kinds["inspect_ai"] = "peer.py"
    found: dict[str, list[dict[str, float]]] = {name: [] for name in kinds}
    with tempfile.TemporaryDirectory() as folder, _stub() as port:
        _run(sys.executable, "ours.py", ["make", *_sizes(options), folder])
        for _ in range(options.rounds):
            for name, script in kinds.items():
                python = str(options.peer) if script == "peer.py" else sys.executable
                found[name].append(_trial(python, script, port, Path(folder), options))
                print(name, found[name][-1], machine(), flush=True)
    ideal = math.ceil(options.calls / options.concurrency) * LATENCY
    print(f"\n{options.calls} calls, {options.concurrency} at a time, ideal {ideal:.2f} s")
    print("| client | span s | of the ideal | whole s | CPU ms/call | peak MB |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, trials in found.items():
        one = {key: statistics.median(t[key] for t in trials) for key in trials[0]}
        least, most = (of(trial["span"] for trial in trials) for of in (min, max))
        cells = [f"{one['span']:.2f} ({least:.2f} to {most:.2f})"]
        cells += [f"{one['span'] / ideal:.3f}", f"{one['whole']:.2f}"]
        cells += [f"{1000 * one['cpu'] / options.calls:.2f}", f"{one['mb']:.0f}"]
        print("| " + " | ".join([name, *cells]) + " |")


def _trial(
    python: str, script: str, port: int, folder: Path, options: argparse.Namespace
) -> dict[str, float]:
    """Run one client to its end; return its seconds, its processor seconds and its memory."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    said = _run(python, script, [str(port), *_sizes(options), str(folder)])
    whole = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    told = json.loads(said.strip().splitlines()[-1])
    return {"span": told["span"], "whole": whole, "cpu": cpu, "mb": told["mb"]}


def _run(python: str, script: str, arguments: list[str]) -> str:
    """Run a script of this folder and return what it prints."""
    ran = subprocess.run(
        [python, str(HERE / script), *arguments],
        env=_environment() | {"PYTHONPATH": str(HERE.parents[1]), "JUROR_KEY": "none"},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise SystemExit(f"{script}: {ran.stderr[-2000:]}")
    return ran.stdout


def _environment() -> dict[str, str]:
    """Return the environment without what would have each process compile every module anew."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def _sizes(options: argparse.Namespace) -> list[str]:
    return [str(options.calls), str(options.concurrency)]


@contextmanager
def _stub():  # type: ignore[no-untyped-def]
    port = free_port()
    process = subprocess.Popen([sys.executable, str(HERE / "stub.py"), str(port), str(LATENCY)])
    try:
        time.sleep(1)
        yield port
    finally:
        process.kill()
        process.wait(10)


def _options() -> argparse.Namespace:
    asked = argparse.ArgumentParser()
    asked.add_argument("--calls", default=3000, type=int)
    asked.add_argument("--concurrency", default=64, type=int)
    asked.add_argument("--rounds", default=3, type=int)
    asked.add_argument("--peer", type=Path, help="the Python that has inspect_ai and openai")
    return asked.parse_args()


if __name__ == "__main__":
    main()

"""Code run in a process of its own, with the most memory that it had."""

import subprocess
import sys

MEASURED = """
import atexit, resource, sys
def told():
    own = next(line for line in open("/proc/self/status") if "VmHWM" in line).split()[1]
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print("PEAKS", int(own) >> 10, children >> 10, file=sys.stderr)
atexit.register(told)
"""
COMMAND = MEASURED + "from medjury import main; main(sys.argv[1:])"


def run_python(code: str, *words: str) -> tuple[int, str, list[int]]:
    """Run a script; return its exit code, what it said, and the peaks of it and its children."""
    call = [sys.executable, "-c", code, *words]
    ran = subprocess.run(call, capture_output=True, text=True, check=False)
    lines = ran.stderr.splitlines()
    peaks = next(line for line in lines if line.startswith("PEAKS")).split()[1:]
    said = [line for line in lines if not line.startswith("PEAKS")]
    return ran.returncode, "\n".join([ran.stdout.strip(), *said]).strip(), [*map(int, peaks)]

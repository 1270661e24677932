"""A `medjury` for shells that starts at once: a process that has imported it forks for each call.

A call of its own spends most of its time on imports. Here a program named `medjury` hands its
words, folder, environment and open files to a process that has imported everything, which forks.
"""

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

IMPORTED = (
    *("medjury.cli.app", "medjury.cli.agreement", "medjury.cli.analyse", "medjury.cli.share"),
    *("medjury.cli.study", "medjury.services.dossier", "medjury.services.juries"),
    *("calibration.report.content", "calibration.report.page", "data.importers.table"),
    "pingouin",  # which checks each `analyse calibrate`, and takes longer to import than that
)
CLIENT = """#!{python} -IS
import json, os, socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect({address!r})
call = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(line, [len(call).to_bytes(8)], [0, 1, 2])
line.sendall(call)
sys.exit(int(line.recv(8) or b"1"))
"""


@contextmanager
def forked_medjury(folder: Path) -> Iterator[Path]:
    """Yield the folder of a program `medjury`, which is `main` in a fork of one process.

    It is of the environment that the README installs, where MEDJURY_PYTHON names one.
    """
    python = os.environ.get("MEDJURY_PYTHON") or sys.executable
    address, program = folder / "line", folder / "medjury"
    program.write_text(CLIENT.format(python=python, address=str(address)), "utf-8")
    program.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(address))
        listening.listen()
        call = [python, "-P", __file__, str(listening.fileno())]
        server = subprocess.Popen(call, pass_fds=[listening.fileno()])
    try:
        yield folder
    finally:
        server.terminate()
        server.wait()


def _serve(listening: socket.socket) -> None:
    """Answer calls, each in a process of its own, until this one is ended."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in IMPORTED:
            __import__(module)
    gc.freeze()  # else each fork's end looks through all of it, which takes a second
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # those that have answered leave nothing
    while True:
        select.select([listening], [], [])
        line, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _answer(line)
        line.close()


def _answer(line: socket.socket) -> None:
    """Run one call in a fork, and tell its exit code; in the fork, return by its end alone."""
    length, files, _, _ = socket.recv_fds(line, 8, 3)
    call = line.makefile("rb").read(int.from_bytes(length))
    child = os.fork()
    if child == 0:
        line.close()
        _run(*json.loads(call), files)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    line.sendall(str(code if code >= 0 else 128 - code).encode())
    os._exit(0)


def _run(words: list[str], folder: str, environment: dict[str, str], files: list[int]) -> None:
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["medjury", *words]
    from medjury import main

    main()


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))

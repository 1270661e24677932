"""The server's memory does not grow with the number of threads that ever drew a page."""

import platform
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import httpx2
import pytest
from kit.rating_study import message
from kit.servers import Server, serving

THREADS, DRAFTS = 12, 60
HEAP_BYTES = 64 * 2**20  # what glibc reserves for each further heap, from a multiple of it on


def further_heaps(pid: int) -> int:
    """Return how many of glibc's heaps a process has besides the one that all programs have.

    Each is memory in use, from its beginning, and behind it memory that is only reserved.
    """
    parts = [line.split() for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
    areas = [([int(one, 16) for one in part[0].split("-")], part[1]) for part in parts]
    return sum(
        (used, reserved) == ("rw-p", "---p")
        and start % HEAP_BYTES == 0
        and (end, last) == (begin, start + HEAP_BYTES)
        for ((start, end), used), ((begin, last), reserved) in pairwise(areas)
    )


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these heaps")
@pytest.mark.usefixtures("small_study")
def test_all_threads_of_the_server_share_one_heap(url: str) -> None:
    def draft(server: Server, number: int) -> int:
        headers = {"Cookie": f"medjury_session={number}", "Sec-Fetch-Site": "same-origin"}
        sent = message("nobody's", seq=number)
        return httpx2.post(f"{server.address}/room", json=sent, headers=headers).status_code

    with serving(url) as server, ThreadPoolExecutor(THREADS) as pool:
        answers = pool.map(lambda number: draft(server, number), range(DRAFTS))

        assert set(answers) == {401}
        assert len([*Path(f"/proc/{server.process.pid}/task").iterdir()]) > 2, "no threads answered"
        assert further_heaps(server.process.pid) == 0

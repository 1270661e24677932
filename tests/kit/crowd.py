"""A crowd of strangers at a server: each asks for what costs most, and comes again a second later.

    python tests/kit/crowd.py ADDRESS STRANGERS SECONDS

Prints how many connections were tried, and how many were closed by the server.
"""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

FRAME = 4_000_000  # the largest that anybody may send

PIECE = 64 * 1024

HELD_SECONDS = 5

PAUSE_SECONDS = 1

UPGRADE = (
    b"GET /_stcore/stream HTTP/1.1\r\nHost: %b\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)

POST = b"POST %b HTTP/1.1\r\nHost: %b\r\nSec-Fetch-Site: same-origin\r\nContent-Length: %d\r\n\r\n"


def said(number: int, host: bytes) -> Iterator[bytes]:
    """Yield what a stranger sends: a frame after the handshake's first half, a head, a body."""
    yield [
        UPGRADE % host,
        UPGRADE % host,
        b"GET /login HTTP/1.1\r\nX: ",
        POST % (b"/room", host, FRAME),
        POST % (b"/login", host, FRAME),
    ][number % 5]
    if number % 5 < 2:
        yield b"\x82\xff" + FRAME.to_bytes(8, "big") + b"\0\0\0\0"
    for _ in range(FRAME // PIECE + 1):
        yield b"x" * PIECE


async def stranger(number: int, address: str, until: float, counted: Counter[str]) -> None:
    """Come again and again."""
    where = urlsplit(address)
    while time.monotonic() < until:
        counted["tried"] += 1
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(HELD_SECONDS):
                reader, writer = await asyncio.open_connection(where.hostname, where.port)
                try:
                    for part in said(number, where.netloc.encode()):
                        writer.write(part)
                        await writer.drain()
                    await reader.read()
                    counted["closed"] += 1
                except ConnectionError:
                    counted["closed"] += 1
                finally:
                    writer.close()
        await asyncio.sleep(PAUSE_SECONDS)


async def crowd(address: str, count: int, seconds: float) -> Counter[str]:
    """Let so many strangers come for some seconds; return what became of their connections."""
    counted: Counter[str] = Counter()
    until = time.monotonic() + seconds
    await asyncio.gather(*(stranger(n, address, until, counted) for n in range(count)))
    return counted


if __name__ == "__main__":
    came = asyncio.run(crowd(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
    print(came["tried"], came["closed"])  # noqa: T201 for whoever started it

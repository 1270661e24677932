"""A way to PostgreSQL's socket that takes milliseconds each way, and counts round trips."""

import asyncio
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from typing import Any


@dataclass(frozen=True, slots=True)
class Way:
    """A port of this machine behind which a server is, and how often somebody waited for it."""

    port: int
    waits: Any

    def round_trips(self) -> int:
        """Return how often a client has sent something after an answer."""
        return int(self.waits.value)


@contextmanager
def delayed(socket: str, milliseconds: float) -> Iterator[Way]:
    """Open a way to a server's socket, in a process of its own."""
    port, waits = multiprocessing.Value("i", 0), multiprocessing.Value("i", 0)
    arguments = (socket, milliseconds / 1000, port, waits)
    process = multiprocessing.get_context("fork").Process(target=_serve, args=arguments)
    process.start()
    while not port.value:
        process.join(0.01)
    try:
        yield Way(port.value, waits)
    finally:
        process.terminate()
        process.join()


def _serve(
    socket: str, seconds: float, port: "Synchronized[int]", waits: "Synchronized[int]"
) -> None:
    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_server = await asyncio.open_unix_connection(socket)
        turn = {"server": False}

        async def carry(
            source: asyncio.StreamReader, sink: asyncio.StreamWriter, asks: bool
        ) -> None:
            loop = asyncio.get_running_loop()
            while data := await source.read(1 << 16):
                if asks and not turn["server"]:
                    waits.value += 1
                turn["server"] = asks
                loop.call_later(seconds, sink.write, data)
            loop.call_later(seconds, sink.close)

        await asyncio.gather(carry(reader, to_server[1], True), carry(to_server[0], writer, False))

    async def serve() -> None:
        server = await asyncio.start_server(connect, "127.0.0.1", 0)
        port.value = server.sockets[0].getsockname()[1]
        await server.serve_forever()

    asyncio.run(serve())

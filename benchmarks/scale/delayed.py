"""A way to PostgreSQL's socket that takes milliseconds each way, and counts round trips."""

import asyncio
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.sharedctypes import Synchronized
from typing import Any


@dataclass(frozen=True, slots=True)
class Way:
    """A port of this machine behind which a server is, and how often somebody waited for it."""

    port: int
    waits: Any
    process: int

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
        yield Way(port.value, waits, process.pid or 0)
    finally:
        process.terminate()
        process.join()


class _Side(asyncio.Protocol):
    """One end of a connection: what it reads is written to the other end a while later."""

    def __init__(self, seconds: float, waits: "Synchronized[int]") -> None:
        self.loop, self.seconds, self.waits = asyncio.get_running_loop(), seconds, waits
        self.other: _Side | None = None  # of a client, until the server is reached
        self.is_client, self.spoke_last = True, False
        self.kept: list[bytes] = []

    def connection_made(self, transport: Any) -> None:
        """Note where to write."""
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Pass on what came."""
        if self.other is None:
            self.kept.append(data)
            return
        if self.is_client and not self.spoke_last:
            self.waits.value += 1
        self.spoke_last, self.other.spoke_last = True, False
        self.loop.call_later(self.seconds, self.other.transport.write, data)

    def connection_lost(self, _: Exception | None) -> None:
        """Close the other end."""
        if self.other is not None:
            self.loop.call_later(self.seconds, self.other.transport.close)


class _Client(_Side):
    """The end of a client, for which a way to the server is opened."""

    def __init__(self, socket: str, seconds: float, waits: "Synchronized[int]") -> None:
        super().__init__(seconds, waits)
        self.socket = socket

    def connection_made(self, transport: Any) -> None:
        """Reach the server, and pass on what came meanwhile."""
        super().connection_made(transport)
        self.reaching = self.loop.create_task(self._reach())

    async def _reach(self) -> None:
        side = partial(_Side, self.seconds, self.waits)
        _, server = await self.loop.create_unix_connection(side, self.socket)
        server.is_client, server.other, self.other = False, self, server
        for data in self.kept:
            self.data_received(data)


def _serve(
    socket: str, seconds: float, port: "Synchronized[int]", waits: "Synchronized[int]"
) -> None:
    async def serve() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(partial(_Client, socket, seconds, waits), "127.0.0.1", 0)
        port.value = server.sockets[0].getsockname()[1]
        await server.serve_forever()

    asyncio.run(serve())

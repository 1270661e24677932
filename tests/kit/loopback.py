"""Servers on the loopback that live as long as a `with` block: of plain HTTP, and of an event loop."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class HTTPLoopback:
    """An HTTP server in a thread; its handlers find this object as `self.server.owner`."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.owner = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def port(self) -> int:
        """Port at which it listens."""
        return self._server.server_port

    @property
    def address(self) -> str:
        """Address without a path."""
        return f"http://127.0.0.1:{self.port}"


class QuietHandler(BaseHTTPRequestHandler):
    """Reads and answers JSON, and logs nothing; a subclass says in `answer` what a request gets."""

    def answer(self) -> None:
        """Answer one request, whose method is `self.command`."""
        raise NotImplementedError

    def do_GET(self) -> None:
        """Answer."""
        self.answer()

    do_POST = do_DELETE = do_GET  # noqa: N815 - the names http.server calls

    def read_body(self) -> bytes:
        """Return the body of the request."""
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def send_json(self, body: Any, status: int = 200) -> None:
        """Answer with a value as JSON, or with a text as it is."""
        content = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class AsyncLoopback:
    """A server on an event loop in a thread; a subclass says in `converse` what a connection gets."""

    def __init__(self) -> None:
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection and close it."""
        raise NotImplementedError

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self.converse, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.01))
        self._loop.close()

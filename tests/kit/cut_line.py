"""A TCP line between a browser and its server that can be cut, hang, or lose an answer half way."""

import socket
import struct
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum

from kit.servers import free_port

RESET_AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER: what is closed is reset, not finished

CHUNK = 65536

BETWEEN_SECONDS = 0.3

HALF_ANSWER = 90  # bytes: some of the headers


class Line(Enum):
    """What becomes of what is sent over the line."""

    PASSES = "passes"
    HANGS = "hangs"
    LOSES_ANSWERS = "loses answers"
    SAYS = "somebody in between answers"
    HOLDS = "requests wait"


@dataclass
class CutLine:
    """A proxy in front of a server on this machine.

    Attributes
    ----------
    asked
        The start of each request that is heard no answer of: "POST /room".
    answer_bytes
        How much of such an answer reaches the browser before its line is reset.
    lost
        How many answers were lost so.
    said
        What somebody in between answers to such requests.
    held
        Such requests that have not reached the server yet.
    """

    target: int
    port: int = field(default_factory=free_port)
    asked: bytes = b"POST /room"
    answer_bytes: int = HALF_ANSWER
    lost: int = 0
    said: bytes = b""
    held: list[tuple[socket.socket, bytes]] = field(default_factory=list)
    line: Line = Line.PASSES
    listening: socket.socket | None = None
    ends: set[socket.socket] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def address(self) -> str:
        """Where the browser finds it."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> "CutLine":
        """Listen, and pass on from now on."""
        self.line = Line.PASSES
        if self.listening is None:
            self.listening = socket.create_server(("127.0.0.1", self.port), backlog=64)
            threading.Thread(target=self._accept, args=(self.listening,), daemon=True).start()
        return self

    def kill(self) -> None:
        """Reset every line and close the port, at once."""
        listening, self.listening = self.listening, None
        if listening is not None:
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)  # wakes who waits for the next
            listening.close()
        self.reset()

    def hang(self) -> None:
        """Swallow what is sent from now on, in either direction, on every line."""
        self.line = Line.HANGS

    def lose_answers(self, answer_bytes: int = HALF_ANSWER) -> None:
        """Let requests through and cut their answers, until `start` is called."""
        self.answer_bytes = answer_bytes
        self.line = Line.LOSES_ANSWERS

    def say(self, status: str, body: bytes = b"", headers: str = "") -> None:
        """Answer such requests as somebody in between does, until `start` is called."""
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}Connection: close\r\n\r\n"
        self.said = head.encode() + body
        self.line = Line.SAYS

    def hold(self) -> None:
        """Hold such requests back until `release` is called, though their page is gone by then."""
        self.line = Line.HOLDS

    def release(self) -> None:
        """Let what is held back reach the server, one after the other, and pass on from now on."""
        self.line = Line.PASSES
        while self.held:
            server, request = self.held.pop(0)
            with suppress(OSError):
                server.sendall(request)
            time.sleep(BETWEEN_SECONDS)

    def recover(self) -> None:
        """Reset what hangs, and pass on from now on."""
        if self.line is Line.HANGS:
            self.reset()
        self.start()

    def reset(self) -> None:
        """Reset every line that is open."""
        with self.lock:
            ends, self.ends = self.ends, set()
        for end in ends:
            _reset(end)

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                browser, _ = listening.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                if self.listening is not listening:
                    return
                _reset(browser)  # the server itself is away
                continue
            with self.lock:
                self.ends |= {browser, server}
            asked = threading.Event()
            for args in ((browser, server, asked, True), (server, browser, asked, False)):
                threading.Thread(target=self._pass_on, args=args, daemon=True).start()

    def _pass_on(
        self, source: socket.socket, sink: socket.socket, asked: threading.Event, is_request: bool
    ) -> None:
        """Pass on until either end closes; `asked` tells that the line carries such a request."""
        with suppress(OSError):
            while data := source.recv(CHUNK):
                if self.line is Line.HANGS:
                    continue
                if is_request and data.startswith(b"POST "):
                    (asked.set if data.startswith(self.asked) else asked.clear)()
                if is_request and self.line is Line.SAYS and asked.is_set():
                    source.sendall(self.said)
                    source.shutdown(socket.SHUT_WR)
                    continue
                if is_request and self.line is Line.HOLDS and asked.is_set():
                    self.held.append((sink, data))
                    continue
                if not is_request and self.line is Line.LOSES_ANSWERS and asked.is_set():
                    self.lost += 1
                    sink.sendall(data[: self.answer_bytes])
                    break
                sink.sendall(data)
        waits = is_request and any(server is sink for server, _ in self.held)
        for end in (source,) if waits else (source, sink):
            with self.lock:
                self.ends.discard(end)
            _reset(end)


def _reset(end: socket.socket) -> None:
    with suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_ONCE)
        end.shutdown(
            socket.SHUT_RD
        )  # wakes who waits for its bytes; says nothing to the other side
    with suppress(OSError):
        end.close()

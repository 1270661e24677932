"""A chat endpoint that answers every request alike after a fixed latency: `stub.py PORT SECONDS`.

It speaks OpenAI's chat completions and Anthropic's messages, and does nothing else, so that it
is not what is measured: one protocol object, one prepared answer, uvloop.
"""

import asyncio
import json
import sys

import uvloop

SCORES = {
    name: {"explanation": "It agrees with the source.", "score": 3}
    for name in ("accuracy", "completeness", "clarity")
}
SAID = json.dumps(SCORES)
GRADE = b"GRADE"  # what inspect_ai's graders ask for; beside a verdict medjury takes it for a doubt
OPENAI = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1,
    "model": "stub",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": SAID}}
    ],
    "usage": {"prompt_tokens": 1600, "completion_tokens": 60, "total_tokens": 1660},
}
ANTHROPIC = {
    "id": "m1",
    "type": "message",
    "role": "assistant",
    "model": "stub",
    "content": [{"type": "text", "text": SAID}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1600, "output_tokens": 60},
}
GRADED = SAID + "\nGRADE: C"
OPENAI_GRADED = OPENAI | {
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": GRADED}}
    ]
}
END = b"\r\n\r\n"
LENGTH = b"content-length:"


def _whole(body: object) -> bytes:
    text = json.dumps(body).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(text)}"
    return head.encode() + END + text


class Answering(asyncio.Protocol):
    """One connection: whole requests in, the prepared answer out after the latency."""

    def __init__(self, latency: float) -> None:
        self.latency = latency
        self.messages, self.chat = _whole(ANTHROPIC), _whole(OPENAI)
        self.graded = _whole(OPENAI_GRADED)
        self.waiting = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the line."""
        self.line = transport

    def data_received(self, data: bytes) -> None:
        """Answer every request that is whole by now."""
        self.waiting += data
        while (end := self.waiting.find(END)) >= 0:
            head = self.waiting[:end].lower()
            at = head.find(LENGTH)
            length = int(head[at + len(LENGTH) :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            whole = end + len(END) + length
            if len(self.waiting) < whole:
                return
            request, self.waiting = self.waiting[:whole], self.waiting[whole:]
            asyncio.get_running_loop().call_later(self.latency, self._answer, self._to(request))

    def _to(self, request: bytes) -> bytes:
        """Return what a request is answered with."""
        if request.split(b" ", 2)[1] == b"/v1/messages":
            return self.messages
        return self.graded if GRADE in request else self.chat

    def _answer(self, answer: bytes) -> None:
        if not self.line.is_closing():
            self.line.write(answer)  # type: ignore[attr-defined]


async def main(port: int, latency: float) -> None:
    """Serve until killed."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Answering(latency), "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), float(sys.argv[2])))

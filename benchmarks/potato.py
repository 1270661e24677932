"""The same texts in Potato (PyPI: potato-annotation), with clinicians who do what its page does.

Its page saves by POST /updateinstance; on Next it saves once more, moves by POST /annotate,
and loads GET /annotate: those three are what a rater waits for. Run from rating_room/run.py.
"""

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlencode

CRITERIA = ("accuracy", "completeness", "clarity")
INSTANCE = re.compile(rb'id="instance_id"[^>]*value="([^"]*)"')
MOVED = 302
LARGEST_LINE = 2**24


class Text(Protocol):
    """Something to rate."""

    name: str
    source: str
    response: str


def write_study(folder: Path, texts: Sequence[Text], each: int) -> None:
    """Write a study of these texts, of which every annotator rates so many."""
    items = [
        {"id": one.name, "text": f"{one.source}\n\nRESPONSE\n\n{one.response}"} for one in texts
    ]
    lines = "\n".join(json.dumps(one) for one in items)
    (folder / "items.json").write_text(lines, encoding="utf-8")
    # JSON is YAML: no writer is needed.
    (folder / "config.yaml").write_text(json.dumps(_settings(each), indent=1), encoding="utf-8")


def command(python: Path, folder: Path, port: int) -> list[str]:
    """Return the command that serves the study, as its manual says."""
    potato = str(python.parent / "potato")
    return [potato, "start", str(folder / "config.yaml"), "-p", str(port), "--host", "127.0.0.1"]


@dataclass
class Browser:
    """A connection a request, as its server closes them; the newest cookie goes along."""

    port: int
    cookie: str = ""

    async def ask(
        self, method: str, path: str, body: bytes = b"", kind: str = "", extra: str = ""
    ) -> tuple[int, bytes]:
        """Return an answer's status and body."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=LARGEST_LINE)
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n{extra}"
        head += f"Cookie: {self.cookie}\r\n" if self.cookie else ""
        head += f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n" if body else ""
        writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
        answer = await reader.read(-1)
        writer.close()
        headers, _, content = answer.partition(b"\r\n\r\n")
        set_cookie = re.search(rb"Set-Cookie: (session=[^;]*)", headers)
        self.cookie = set_cookie[1].decode() if set_cookie else self.cookie
        return int(headers.split(b" ", 2)[1]), content

    async def ask_json(self, path: str, body: object, extra: str = "") -> Any:
        """Post JSON and return the JSON that answers."""
        sent = json.dumps(body).encode()
        status, content = await self.ask("POST", path, sent, "application/json", extra)
        if status != 200:
            raise RuntimeError(f"{path} was answered {status}: {content[:200]!r}")
        return json.loads(content)


@dataclass
class PotatoDesk:
    """One annotator with the page open."""

    browser: Browser
    instance: str
    number: int = 0
    legs: dict[str, list[float]] = field(default_factory=dict)

    async def draft(self, upto: int) -> None:
        """Score the first so many criteria and wait until that is saved."""
        scores = {f"{name}:{1 + self.number % 5}": "1" for name in CRITERIA[:upto]}
        body = {"instance_id": self.instance, "annotations": scores, "span_annotations": []}
        answer = await self.browser.ask_json("/updateinstance", body)
        if answer.get("status") != "success":
            raise RuntimeError(f"not saved: {answer}")

    async def submit(self) -> bool:
        """Save, move on, and wait for the page of the next one."""
        await self._timed("save", self.draft(len(CRITERIA)))
        move = {"action": "next_instance", "instance_id": self.instance}
        header = "X-Potato-Navigation: 1\r\n"
        await self._timed("move", self.browser.ask_json("/annotate", move, header))
        found = await self._timed("page", current(self.browser))
        self.number += 1
        if found == self.instance:
            raise RuntimeError("the next page shows the same response")
        self.instance = found
        return bool(found)

    async def _timed(self, leg: str, waiting: Any) -> Any:
        clock = asyncio.get_running_loop()
        began = clock.time()
        result = await waiting
        self.legs.setdefault(leg, []).append(1000 * (clock.time() - began))
        return result


async def seat(port: int, names: Sequence[str]) -> list[PotatoDesk]:
    """Sign annotators in and open the page for each."""
    desks = []
    for name in names:
        browser = Browser(port)
        form = urlencode({"email": name, "action": "login"}).encode()
        status, _ = await browser.ask("POST", "/auth", form, "application/x-www-form-urlencoded")
        instance = await current(browser)
        if status != MOVED or not instance:
            raise RuntimeError(f"{name} could not sign in: {status}")
        desks.append(PotatoDesk(browser, instance))
    return desks


async def current(browser: Browser) -> str:
    """Load the page and return which text it shows; nothing when all are rated."""
    _, content = await browser.ask("GET", "/annotate")
    found = INSTANCE.search(content)
    return found[1].decode() if found else ""


def _settings(each: int) -> dict[str, Any]:
    return {
        "annotation_task_name": "side by side",
        "task_dir": ".",
        "output_annotation_dir": "out",
        "output_annotation_format": "json",
        "data_files": ["items.json"],
        "item_properties": {"id_key": "id", "text_key": "text"},
        "annotation_schemes": [
            {
                "annotation_type": "likert",
                "name": name,
                "description": f"How good is the {name}?",
                "size": 5,
                "min_label": "bad",
                "max_label": "good",
                "label_requirement": {"required": True},
            }
            for name in CRITERIA
        ],
        "require_password": False,
        "user_config": {"allow_all_users": True, "users": []},
        "num_annotators_per_item": 1000,
        "max_annotations_per_user": each,
        "assignment_strategy": "fixed_order",
    }

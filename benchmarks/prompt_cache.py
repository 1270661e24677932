"""How much of a jury's input a vendor's cache serves on ACI-Bench: 40 visits, 13 systems' notes of each.

The server is on the loopback and counts a token each four characters. Its cache is a model of what
vendors document: a prefix of 1,024 tokens or more, there from the moment a first answer to it begins
(half a call's time) until it has not been used for sixty calls' time (five minutes at five seconds a
call). `marked` serves what a request marks, as Anthropic does; `automatic` the longest beginning,
in steps of 128 tokens, that an earlier request had, as OpenAI's models do that write for nothing.
It has one machine: no request misses its cache because another machine took it.

    PYTHONPATH=tests:benchmarks uv run python benchmarks/prompt_cache.py --data FOLDER
"""

import argparse
import csv
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from aci_notes import FOLDER
from kit.jurors import Do, Seen, Stub, verdict

from data.database import open_study
from data.importers.responses import ResponseFile
from data.importers.table import TableFile
from data.rubric import read_rubric
from data.store import import_responses
from jury.panel import Panel
from jury.run import run_panel

SECONDS = 0.2  # of a call
BEGINS, LIVES = 0.5, 60.0  # in calls' time
LEAST, STEP, CHARACTERS = 1024, 128, 4
PRICE_READ, PRICE_WRITE = 0.1, 1.25  # of a token of input
HEAD = ("instance_id", "benchmark", "context", "prompt", "reference", "response_id", "model")


class Cache:
    """A vendor's cache: prefix -> from when and until when it is there."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[float, float]] = {}
        self.fresh = self.read = self.written = 0

    def served(self, prompt: str, ends: list[int], writes: bool) -> None:
        """Count one prompt; `ends` are where an entry may end, in characters, the longest first."""
        now = time.monotonic()
        known = next((end for end in ends if self._is_there(prompt[:end], now)), 0)
        until = now + LIVES * SECONDS
        for end in ends:
            since = self._entries.get(hash(prompt[:end]), (now + BEGINS * SECONDS, 0.0))
            expired = since[1] and since[1] < now
            self._entries[hash(prompt[:end])] = (
                now + BEGINS * SECONDS if expired else since[0],
                until,
            )
        written = max(ends, default=0) - known if writes else 0
        self.read += known // CHARACTERS
        self.written += written // CHARACTERS
        self.fresh += (len(prompt) - known - written) // CHARACTERS

    def _is_there(self, prefix: str, now: float) -> bool:
        begins, ends = self._entries.get(hash(prefix), (now + 1, 0.0))
        return begins <= now <= ends

    def figures(self) -> str:
        """Return the share that was served, and what the input costs beside no cache at all."""
        total = self.fresh + self.read + self.written
        cost = self.fresh + PRICE_READ * self.read + PRICE_WRITE * self.written
        return f"{self.read / total:5.1%} | {self.written / total:5.1%} | {cost / total:.2f}"


def marked(seen: Seen) -> list[int]:
    """Return where the marked block of a request ends."""
    content: Any = seen.body["messages"][0]["content"]
    first = content[0]["text"] if isinstance(content, list) else ""
    return [len(first)] if len(first) >= LEAST * CHARACTERS else []


def automatic(seen: Seen) -> list[int]:
    """Return every step at which a beginning of a prompt may be known, the longest first."""
    whole = len(seen.prompt) // CHARACTERS
    return [tokens * CHARACTERS for tokens in range(LEAST, whole + 1, STEP)][::-1]


def fill(folder: Path, place: Path, by: str) -> str:
    """Make a study whose responses came system by system, or instance by instance."""
    csv.field_size_limit(10**7)
    visits = _rows(folder / "clinicalnlp_taskB_test1.csv")
    systems = {path.stem: _rows(path) for path in sorted((folder / "predictions").glob("*.csv"))}
    pairs = [(key, name) for name in systems for key in visits]
    pairs = pairs if by == "system" else sorted(pairs)
    with (place / "aci.csv").open("w", newline="", encoding="utf-8") as file:
        write = csv.writer(file)
        write.writerow([*HEAD, "response"])
        for key, name in pairs:
            visit, note = visits[key], systems[name][key]["note"]
            texts = (visit["dialogue"], "Write the note.", visit["note"], f"{name}-{key}", name)
            write.writerow([key, "aci_bench", *texts, note])
    url = f"sqlite:///{place / 'study.db'}"
    rows = ResponseFile(TableFile(place / "aci.csv"))
    import_responses(open_study(url, create=True), rows, lambda _: read_rubric("aci_bench"))
    return url


def _rows(path: Path) -> dict[str, dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return {row["encounter_id"]: row for row in csv.DictReader(file)}


def measured(folder: Path, by: str, kind: str, concurrency: int) -> str:
    """Run one juror over the whole study and return the row of the table."""
    cache, provider = Cache(), "anthropic" if kind == "marked" else "openai"

    def answer(seen: Seen) -> Do:
        cache.served(
            seen.prompt, (marked if kind == "marked" else automatic)(seen), kind == "marked"
        )
        return Do(seconds=SECONDS, body=_body(provider, verdict(seen)))

    with tempfile.TemporaryDirectory() as place, Stub(answer) as stub:
        url = fill(folder, Path(place), by)
        base = stub.anthropic_url if provider == "anthropic" else stub.openai_url
        juror = {"name": "j", "provider": provider, "model": "m", "family": "f", "base_url": base}
        panel = Panel.model_validate({"name": "p", "juror": [juror]})
        began = time.perf_counter()
        result = run_panel(open_study(url), panel, concurrency=concurrency)
        seconds = time.perf_counter() - began
    calls = f"{result.rated} rated, {len(stub.seen)} calls"
    return f"| {kind} | {by} | {concurrency} | {cache.figures()} | {calls} | {seconds:.1f} |"


def _body(provider: str, text: str) -> str:
    """Return a whole answer in a vendor's form."""
    if provider == "anthropic":
        return json.dumps({"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"})
    return json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})


def main() -> None:
    """Print a row for each kind of cache, order of import, and number of calls at a time."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", type=Path, default=FOLDER)
    folder = options.parse_args().data
    print(
        "| cache | imported by | at a time | served | written | input costs | verdicts | seconds |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for kind in ("marked", "automatic"):
        for by in ("system", "instance"):
            for concurrency in (8, 64):
                print(measured(folder, by, kind, concurrency), flush=True)


if __name__ == "__main__":
    main()

"""Type scores at different speeds in Chromium and count the digits that went astray.

    PYTHONPATH=tests uv run python benchmarks/rating_room/keys.py

At each gap between keys one clinician rates eight responses on the real server: 4, 3, 5, and then
the keys that submit, without a look at whether a draft is being saved. What is counted is what
the database holds in the end, not what the page says.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import room
from kit.browsers import chromium, new_context, wait_for_count, wait_open
from kit.rating_study import scores_of
from playwright.sync_api import Browser, Page
from playwright.sync_api import TimeoutError as NeverShown
from serving import free_port, machine, serving
from study import RUBRIC, build
from texts import texts

from data.database import open_study
from data.rubric import read_rubric

GAPS_MS = (0, 30, 60, 100, 150, 250, 400)
RESPONSES = 8
KEYS = "435"
HEAD = ("gap ms", "responses", "digit lost", "on the wrong criterion", "machine")


@dataclass(frozen=True, slots=True)
class Stored:
    """How many responses of a clinician are stored with a digit lost or misplaced."""

    lost: int
    misplaced: int


def main() -> None:
    """Type, read the ratings back, and print the table."""
    rows: list[Sequence[object]] = [HEAD, ["---"] * len(HEAD)]
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        path = Path(folder) / "study.db"
        codes = build(path, texts(RESPONSES), {_who(gap): RESPONSES for gap in GAPS_MS})
        port = free_port()
        command = room.command(path, port)
        with serving(command, port, "/_stcore/health", Path(folder)) as server:
            for gap in GAPS_MS:
                _work(browser, server.address, codes[_who(gap)], gap)
                found = _stored(path, _who(gap))
                rows.append((gap, RESPONSES, found.lost, found.misplaced, machine()))
    print("\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows))


def _who(gap: int) -> str:
    return f"keys-{gap}"


def _work(browser: Browser, address: str, code: str, gap: int) -> None:
    """Rate every response with so many milliseconds from key to key."""
    context = new_context(browser)
    page = context.new_page()
    page.goto(address)
    page.get_by_label("Your sign-in code").fill(code)
    page.keyboard.press("Enter")
    wait_open(page)
    try:
        for done in range(1, RESPONSES + 1):
            _rate(page, done, gap)
    except NeverShown:  # the submission was refused: the responses that are left count as lost
        print(f"gap {gap} ms: the page did not go on after response {done}")
    context.close()


def _rate(page: Page, done: int, gap: int) -> None:
    """Rate a response and wait for the next, or for the end."""
    page.keyboard.type(KEYS, delay=gap)
    page.keyboard.press("Control+Enter")
    if done < RESPONSES:
        wait_for_count(page, done, RESPONSES)
    else:
        page.get_by_role("heading", name="Thank you").wait_for()


def _stored(path: Path, who: str) -> Stored:
    """Compare each response's scores in the database with the keys."""
    names = [one.name for one in read_rubric(RUBRIC).criterion]
    typed = {name: int(key) for name, key in zip(names, KEYS, strict=True)}
    engine = open_study(f"sqlite:///{path}")
    held: dict[int, dict[str, float]] = {}
    for response, criterion, score in scores_of(engine, who):
        held.setdefault(response, {})[criterion] = score
    engine.dispose()
    misplaced = sum(_is_misplaced(scores, typed) for scores in held.values())
    whole = sum(scores.keys() == typed.keys() for scores in held.values())
    return Stored(RESPONSES - whole, misplaced)


def _is_misplaced(scores: Mapping[str, float], typed: Mapping[str, int]) -> bool:
    return any(typed[name] != score for name, score in scores.items())


if __name__ == "__main__":
    main()

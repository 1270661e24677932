"""MentalBench: 10,000 replies to people in distress, scored by one human panel and four models.

Five workbooks, a row a conversation and a column a reply; a cell holds the scores as the
human panel's JSON or as a model's raw answer. What cannot be read is missing, never guessed
at. The replies themselves are not published, so their text is a sentence that says so.

Writes responses.csv; ratings.csv with what is on the scale; and ratings_raw.csv, the human
panel's scores as published, some of them off the scale, which `medjury rate ratings` refuses.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from files import Row, run, write_csv
from openpyxl import load_workbook

CRITERIA = (
    "Guidance",
    "Informativeness",
    "Relevance",
    "Safety",
    "Empathy",
    "Helpfulness",
    "Understanding",
)
SCALE = range(1, 6)
PANEL = "consensus"
JUDGES = {
    "claude-3.7-sonnet": "claude_llm_judge.xlsx",
    "gemini-2.5-flash": "gemini_llm_judge.xlsx",
    "gpt-4o": "gpt-4o_llm_judge.xlsx",
    "o4-mini": "o4-mini_llm_judge.xlsx",
}
PROMPT = "Reply to this person as a counsellor would."
STAND_IN = "The reply text is not part of the published data (conversation {}, reply {})."
FENCE = re.compile(r"```[a-z]*\s*\n(.*?)```", re.DOTALL)
Table = list[tuple[Any, ...]]
Scores = dict[str, Any]


def convert(datasets: Path, out: Path) -> Iterator[str]:
    """Write the three files; say how many rows each has, what is missing and why."""
    folder = datasets / "mentalbench_judges"
    judges = {rater: _sheet(folder / name) for rater, name in JUDGES.items()}
    human = _sheet(folder / "Human_judge.xlsx")
    contexts = {row[0]: row[1] for row in next(iter(judges.values()))[1:]}
    why: Counter[str] = Counter()
    yield write_csv(out / "responses.csv", _responses(contexts, human[0]))
    raw = list(_ratings(PANEL, "clinician", human, Counter()))
    yield write_csv(out / "ratings_raw.csv", raw)
    panel = _on_scale(_ratings(PANEL, "clinician", _same_text(human, contexts, why), why), why)
    judged = (
        row for rater, table in judges.items() for row in _ratings(rater, "juror", table, why)
    )
    yield write_csv(out / "ratings.csv", [*panel, *judged])
    yield from (f"missing: {reason}: {count}" for reason, count in sorted(why.items()))


def _sheet(path: Path) -> Table:
    """Return the rows of a workbook's only sheet, the header first."""
    book = load_workbook(path, read_only=True)
    rows = list(book.worksheets[0].iter_rows(values_only=True))
    book.close()
    return rows


def _response_id(conversation: int, place: int) -> str:
    return f"conversation-{conversation:04}-reply-{place:02}"


def _responses(contexts: dict[int, str], header: tuple[Any, ...]) -> Iterator[Row]:
    models = [name.strip().removeprefix("human_response_") for name in header[2:]]
    for conversation, context in contexts.items():
        for place, model in enumerate(models, start=1):
            yield {
                "instance_id": f"conversation-{conversation:04}",
                "benchmark": "mentalbench",
                "context": context,
                "prompt": PROMPT,
                "reference": "",
                "response_id": _response_id(conversation, place),
                "model": model,
                "response": STAND_IN.format(conversation, place),
            }


def _same_text(table: Table, contexts: dict[int, str], why: Counter[str]) -> Table:
    """Keep the rows that show the text which the judges saw under the same number.

    Where the text differs the scores are, as far as one can tell, those of the text: the rows
    501 to 510 show the text of the conversation before, and fit the judges' scores of that.
    """
    rows = table[1:]
    same = [row for row in rows if row[1].strip() == contexts[row[0]].strip()]
    why[f"{PANEL}: replies in a row that shows another conversation"] += 10 * (
        len(rows) - len(same)
    )
    return [table[0], *same]


def _ratings(rater: str, kind: str, table: Table, why: Counter[str]) -> Iterator[Row]:
    """Yield a row a cell that can be read, its criteria as columns; count the others."""
    for conversation, _, *cells in table[1:]:
        for place, cell in enumerate(cells, start=1):
            scores, reason = read_answer(cell)
            if scores is None:
                why[f"{rater}: replies with {reason}"] += 1
                continue
            who = {"response_id": _response_id(conversation, place), "rater": rater, "kind": kind}
            yield {**who, **{name.lower(): scores.get(name) for name in CRITERIA}}


def read_answer(cell: str | None) -> tuple[Scores | None, str]:
    """Return the scores in a cell, or None and the reason why there are none.

    A cell is JSON, or holds JSON in a fence, or JSON among other words. An object with all
    seven criteria is an answer; a null in it stays a missing score.
    """
    if cell is None or not cell.strip():
        return None, "an empty cell"
    for text in (cell, *FENCE.findall(cell), cell[cell.find("{") :]):
        found = _object(text.strip())
        if found is not None:
            return (found, "") if set(CRITERIA) <= set(found) else (None, "a criterion not named")
    return None, "broken JSON" if "{" in cell else "no JSON, only words"


def _object(text: str) -> Scores | None:
    """Return the JSON object that a text begins with, or None."""
    try:
        found, _ = json.JSONDecoder(strict=False).raw_decode(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _on_scale(rows: Iterable[Row], why: Counter[str]) -> Iterator[Row]:
    """Empty the cells that are off the scale, and count those and the ones without a score."""
    for row in rows:
        kept = dict(row)
        for name in map(str.lower, CRITERIA):
            if row[name] not in SCALE:
                kept[name] = None
                why[f"{row['rater']}: scores that are {row[name]}"] += 1
        yield kept


if __name__ == "__main__":
    run("mentalbench.py", convert)

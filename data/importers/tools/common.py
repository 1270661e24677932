"""Shared by the readers of other tools' files: conversations as text, scores, rows."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from data.errors import BadRow
from data.importers.responses import ID_MADE
from data.importers.rows import Origin, made_id
from data.importers.table import Cells, DerivedTable, TableFile

RESPONSES = (
    *("instance_id", "benchmark", "context", "prompt", "reference", "response_id", "model"),
    *("response", "checklist", ID_MADE),
)
RATINGS = ("response_id", "rater", "kind", "criterion", "score", "comment", "rated_at")
Record = Mapping[str, Any]
Maker = Callable[[Record, Counter[str]], Iterator[Cells]]


def derived(
    table: TableFile,
    columns: tuple[str, ...],
    make: Maker,
    records: Callable[[], Iterator[tuple[Origin, Record]]] | None = None,
    each_once: bool = False,
) -> DerivedTable:
    """Return the rows made from every record; `make` counts the ones it leaves out.

    `records` gives them where they are not the table's rows. With `each_once` a response that comes
    again, as one row a metric has it, is taken once.
    """
    left_out = Counter[str]()

    def rows() -> Iterator[tuple[Origin, Cells]]:
        keys, any_row = set[tuple[str, ...]](), False
        for origin, record in (records or table.records)():
            try:
                made = list(make(record, left_out))
            except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
                raise BadRow(
                    f"{origin}: not as the tool writes it, whose other rows look like a file of it; "
                    "nothing was imported"
                ) from error
            for cells in made:
                key = (cells["response_id"], cells["model"]) if each_once else ()
                if each_once and key in keys:
                    continue
                keys.add(key)
                any_row = True
                yield origin, cells
        if not any_row:
            reasons = ", ".join(f"{reason}: {number}" for reason, number in left_out.items())
            raise table.wrong(f"nothing of it can be taken ({reasons or 'no rows'})")

    return DerivedTable(table, columns, rows, left_out)


def response_cells(
    benchmark: str, instance: str, context: str, model: str, text: str, **more: str
) -> Cells:
    """Return a response as cells; its id is always the same and does not depend on the model.

    `more` has prompt, reference, checklist; and `again`, which tells equal texts apart.
    """
    again = [text for text in (more.pop("again", ""),) if text]
    return {
        "instance_id": instance,
        "benchmark": benchmark,
        "context": context,
        "model": model,
        "response": text,
        "response_id": made_id(benchmark, instance, text, *again),
        ID_MADE: "yes",
        **more,
    }


def rating_cells(response: str, rater: str, kind: str, criterion: str, score: str) -> Cells:
    """Return a score as cells."""
    names = ("response_id", "rater", "kind", "criterion", "score")
    return dict(zip(names, (response, rater, kind, criterion, score), strict=True))


def talk(messages: Any) -> str:
    """Return a conversation as text: one turn as it is, several with [role] before each."""
    turns = [turn for turn in messages if isinstance(turn, Mapping)] if messages else []
    texts = [(str(turn.get("role", "user")), content(turn.get("content"))) for turn in turns]
    if len(texts) == 1:
        return texts[0][1]
    return "\n\n".join(f"[{role}]\n{text}" for role, text in texts)


def content(body: Any) -> str:
    """Return the text of a turn; of a turn in pieces, the pieces that are text."""
    if isinstance(body, list):
        pieces = (piece.get("text") for piece in body if isinstance(piece, Mapping))
        return "\n".join(str(piece) for piece in pieces if piece)
    return body if isinstance(body, str) else ""


def score_text(value: Any) -> str:
    """Return a score as text, "" if it is no number; true is 1."""
    if isinstance(value, bool):
        return str(int(value))
    return repr(value) if isinstance(value, int | float) and value == value else ""


def text_of(record: Record, key: str) -> str:
    """Return a value that is text or a number as text, "" for any other."""
    value = record.get(key)
    return str(value) if isinstance(value, str | int | float) and value is not True else ""

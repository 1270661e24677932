"""A study small enough to check by eye."""

from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Engine

from data.importers.responses import ResponseFile
from data.importers.table import TableFile
from data.rubric import read_rubric
from data.store import import_responses

Run = Callable[..., tuple[int, str, str]]
"""Run one command; return its exit code, output and messages."""

RESPONSES = """instance_id,benchmark,context,prompt,reference,response_id,model,response
i1,visits,"[doctor] Any fever?
[patient] No.",Write the note.,No fever.,r11,model-one,Patient denies fever.
i1,visits,"[doctor] Any fever?
[patient] No.",Write the note.,No fever.,r12,model-two,Patient has fever.
i2,visits,[doctor] Pain? [patient] Mild.,Write the note.,,r21,model-one,Mild pain.
i2,visits,[doctor] Pain? [patient] Mild.,Write the note.,,r22,model-two,No pain.
"""


def import_small(engine: Engine, folder: Path) -> None:
    """Import it on the generic rubric, from a file in a folder."""
    path = folder / "responses.csv"
    path.write_text(RESPONSES, "utf-8")
    import_responses(engine, ResponseFile(TableFile(path)), lambda _: read_rubric("generic"))

"""The instances as HELM reads them: a CSV through pandas, put into one line of `str.format`."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from data.errors import BadInput
from data.rubric import NO_REFERENCE, Rubric
from data.rubrics.tags import disarm
from jury.exports.export import ExportRow
from jury.exports.helm_files.question import Part

ID, WHOLE, GOLD = "instance_id", "question", "correct_answer"
Cells = Mapping[str, str]


def table(rubric: Rubric, task: Sequence[Part], rows: Iterable[ExportRow]) -> dict[str, str]:
    """Return `prompt.txt`, what the model under test is sent, and `data.csv`, what goes into it.

    A column for each text; one for the whole question where pandas would change a text on its
    own, such as an empty one, which it takes for missing, or a number.

    Raises
    ------
    BadInput
        If a text cannot pass through pandas as it is; it names the instance and the column.
    """
    instances = list({row.instance_id: row for row in rows}.values())
    texts = [_texts(rubric, row) for row in instances]
    names = list(dict.fromkeys(one.text for one in task if one.is_slot))
    gold = [GOLD] if "{{reference}}" in rubric.prompt else []
    whole = [one | {WHOLE: "".join(_filled(part, one) for part in task)} for one in texts]
    split = _csv([ID, *names, *gold], whole)
    if _changed(split, [*names], whole) is None:
        columns, prompt, written = names, "".join(map(_format, task)), split
    else:
        columns, prompt = [WHOLE], f"{{{WHOLE}}}"
        written = _csv([ID, WHOLE, *gold], whole)
    if found := _changed(written, [*columns, *gold], whole):
        raise BadInput(
            f"{found[0]}: HELM would read its {'reference' if found[1] == GOLD else 'question'} "
            "as a number, as missing or otherwise changed; put it in words, such as 4 points for 4"
        )
    return {"prompt.txt": prompt, "data.csv": written}


def _texts(rubric: Rubric, row: ExportRow) -> dict[str, str]:
    """Return the texts of an instance as jurors are to read them."""
    gold = NO_REFERENCE if row.reference is None else disarm(row.reference, rubric.prompt)
    return {
        ID: row.instance_id,
        "context": disarm(row.context, rubric.prompt),
        "prompt": disarm(row.prompt, rubric.prompt),
        GOLD: gold,
    }


def _filled(part: Part, texts: Cells) -> str:
    return texts[part.text] if part.is_slot else part.text


def _format(part: Part) -> str:
    """Return a part of the task as `str.format` reads it."""
    if part.is_slot:
        return f"{{{part.text}}}"
    return part.text.replace("{", "{{").replace("}", "}}")


def _csv(columns: Sequence[str], texts: Sequence[Cells]) -> str:
    out = io.StringIO()
    to = csv.DictWriter(
        out, columns, extrasaction="ignore", quoting=csv.QUOTE_ALL, lineterminator="\n"
    )
    to.writeheader()
    to.writerows(texts)
    return out.getvalue()


def _changed(
    written: str, columns: Sequence[str], texts: Sequence[Cells]
) -> tuple[str, str] | None:
    """Return instance and column of the first text that pandas reads otherwise."""
    import pandas as pd

    read = pd.read_csv(io.BytesIO(written.encode()))
    for column in columns:
        for cell, one in zip(read[column].tolist(), texts, strict=True):
            if not isinstance(cell, str) or cell != one[column]:
                return one[ID], column
    return None

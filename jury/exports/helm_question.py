"""A rubric's prompt and the instances as HELM fills and reads them.

HELM knows one text of an instance, QUESTION: the model under test is sent it, and jurors read it.
So what our prompt has between context and task, tags included, becomes part of that text. The
instances are a CSV that goes through pandas, put into one line of `str.format`.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from data.card import ExportRow
from data.errors import BadInput
from data.rubric import NO_CHECKLIST, NO_REFERENCE, Rubric
from data.rubrics.injection import disarm
from jury.exports.export import pieces

ASKED = ("context", "prompt")
QUESTION = "{QUESTION}"
THEIRS = {"response": "{RESPONSE}", "reference": "{GOLD_RESPONSE}"}
# How HELM finds what a juror has to answer, in the prompt itself.
BLOCK = re.compile(r"<rubric_criteria>\s*(\{.*?\})\s*</rubric_criteria>", re.DOTALL)
KEYS = ("explanation", "score")
OPENS = re.compile(r"<\w[\w.:-]*>\s*\Z")
CLOSES = re.compile(r"\A\s*</\w[\w.:-]*>")
WORD = re.compile(r"\w", re.ASCII)
Cells = Mapping[str, str]
ID, WHOLE, GOLD = "instance_id", "question", "correct_answer"


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A stretch of a prompt: words as they are, or the name of a text that is put there."""

    text: str
    is_slot: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """Both prompts.

    Attributes
    ----------
    judge
        HELM's template of what jurors are asked.
    task
        What QUESTION is made of, and so all that the model under test is sent.
    added
        End of `judge` that the rubric's prompt does not have; empty where HELM's block is in it.
    """

    judge: str
    task: tuple[PromptPart, ...]
    added: str

    @property
    def shown(self) -> tuple[str, ...]:
        """Which of context and prompt are in QUESTION."""
        return tuple(name for name in ASKED if PromptPart(name, True) in self.task)


def question(rubric: Rubric) -> Question:
    """Return a rubric's prompt in HELM's form.

    Raises
    ------
    BadInput
        If HELM cannot put it to jurors word for word.
    """
    parts = _parts(rubric)
    if any("\r" in part.text for part in parts):
        raise BadInput(
            f"rubric {rubric.name}: its prompt holds a carriage return, which HELM drops"
        )
    outside, task = _taken_out(parts, rubric.name)
    judge = "".join(map(_theirs, outside))
    _check_slots(outside, rubric.name)
    added = "" if "<rubric_criteria>" in judge else _block(rubric)
    _check_block(judge + added, rubric)
    return Question(judge + added, task, added)


def _parts(rubric: Rubric) -> list[PromptPart]:
    """Return the prompt with all that is the same for every instance filled in."""
    fixed = {
        "criteria": rubric.criteria_text(),
        "schema": rubric.schema_text(),
        "checklist": NO_CHECKLIST,
    }
    return [
        PromptPart(piece, is_slot=place % 2 == 1)
        for place, piece in enumerate(pieces(rubric.prompt, fixed))
    ]


def _taken_out(
    parts: list[PromptPart], name: str
) -> tuple[list[PromptPart], tuple[PromptPart, ...]]:
    """Return the prompt with QUESTION in it, and what QUESTION is made of."""
    places = [index for index, part in enumerate(parts) if part.is_slot and part.text in ASKED]
    names = list(dict.fromkeys(parts[index].text for index in places))
    whole_question = PromptPart(QUESTION, True)
    if not names:
        return parts, (PromptPart("context", True), PromptPart("\n\n"), PromptPart("prompt", True))
    if len(names) == 1:
        single = PromptPart(names[0], True)
        return [whole_question if part == single else part for part in parts], (single,)
    first, last = places[0], places[-1]
    task = parts[first : last + 1]
    if any(part.is_slot and part.text not in ASKED for part in task):
        raise BadInput(
            f"rubric {name}: its prompt has the response or the reference between context and "
            "prompt; HELM shows jurors one question: put {{context}} and {{prompt}} side by side"
        )
    before, after = parts[first - 1].text, parts[last + 1].text
    opened, closed = OPENS.search(before), CLOSES.search(after)
    if opened and closed:
        task = [PromptPart(opened[0]), *task, PromptPart(closed[0])]
        before, after = before[: opened.start()], after[closed.end() :]
    outside = [
        *parts[: first - 1],
        PromptPart(before),
        whole_question,
        PromptPart(after),
        *parts[last + 2 :],
    ]
    return outside, tuple(task)


def _theirs(part: PromptPart) -> str:
    if part.is_slot:
        return THEIRS.get(part.text, part.text)
    return part.text.replace("$", "$$")


def _check_slots(parts: Sequence[PromptPart], name: str) -> None:
    """Refuse words that HELM would take for its own placeholders, or that run into one."""
    for index, part in enumerate(parts):
        if part.is_slot:
            after = parts[index + 1].text[:1]
            if WORD.match(after):
                raise BadInput(
                    f"rubric {name}: its prompt has {after!r} right after a placeholder, which "
                    "HELM reads as part of it: put a space or a line between them"
                )
        elif taken := next((t for t in (QUESTION, *THEIRS.values()) if t in part.text), None):
            raise BadInput(f"rubric {name}: its prompt holds {taken}, which HELM would fill")


def _block(rubric: Rubric) -> str:
    """Return the block that HELM reads the criteria from; it says nothing of a score."""
    keys = json.dumps(dict.fromkeys(rubric.criteria, KEYS), ensure_ascii=False)
    return f"\n<rubric_criteria>\n{keys}\n</rubric_criteria>\n"


def _check_block(judge: str, rubric: Rubric) -> None:
    """Refuse a prompt in which HELM finds other criteria than the rubric's."""
    match = BLOCK.search(judge)
    try:
        criteria = json.loads(match[1]) if match else None
    except ValueError:
        criteria = None
    names = sorted(rubric.criteria)
    if (
        not isinstance(criteria, dict)
        or sorted(criteria) != names
        or not all(map(_keys, criteria.values()))
    ):
        raise BadInput(
            f"rubric {rubric.name}: HELM asks for what stands in <rubric_criteria> as JSON, and "
            f"that is not an object with {', '.join(names)}: leave the block out, or mend it"
        )


def _keys(keys: object) -> bool:
    return isinstance(keys, dict | list) and "score" in keys and set(keys) <= set(KEYS)


def table(rubric: Rubric, task: Sequence[PromptPart], rows: Iterable[ExportRow]) -> dict[str, str]:
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
    names = list(dict.fromkeys(part.text for part in task if part.is_slot))
    gold = [GOLD] if "{{reference}}" in rubric.prompt else []
    cells = [row | {WHOLE: "".join(_filled(part, row) for part in task)} for row in texts]
    split = _csv([ID, *names, *gold], cells)
    if _changed(split, [*names], cells) is None:
        columns, prompt, written = names, "".join(map(_format, task)), split
    else:
        columns, prompt = [WHOLE], f"{{{WHOLE}}}"
        written = _csv([ID, WHOLE, *gold], cells)
    if changed := _changed(written, [*columns, *gold], cells):
        raise BadInput(
            f"{changed[0]}: HELM would read its {'reference' if changed[1] == GOLD else 'question'} "
            "as a number, as missing or otherwise changed; put it in words, such as 4 points for 4"
        )
    return {"prompt.txt": prompt, "data.csv": written}


def asked_of(rubric: Rubric, task: Sequence[PromptPart], row: ExportRow) -> str:
    """Return the text of an instance that HELM calls QUESTION."""
    texts = _texts(rubric, row)
    return "".join(_filled(part, texts) for part in task)


def _texts(rubric: Rubric, row: ExportRow) -> dict[str, str]:
    """Return the texts of an instance as jurors are to read them."""
    gold = NO_REFERENCE if row.reference is None else disarm(row.reference, rubric.prompt)
    return {
        ID: row.instance_id,
        "context": disarm(row.context, rubric.prompt),
        "prompt": disarm(row.prompt, rubric.prompt),
        GOLD: gold,
    }


def _filled(part: PromptPart, texts: Cells) -> str:
    return texts[part.text] if part.is_slot else part.text


def _format(part: PromptPart) -> str:
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
        for cell, row in zip(read[column].tolist(), texts, strict=True):
            if not isinstance(cell, str) or cell != row[column]:
                return row[ID], column
    return None

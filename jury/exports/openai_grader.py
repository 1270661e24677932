"""OpenAI's graders: one score_model a criterion, and a multi grader that takes their mean.

The service asks one of OpenAI's models for one number. That is not the jury that was validated,
which is several models that rate all criteria at once: every file says so.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from data.card import ExportRow
from data.errors import BadInput
from data.rubric import NO_CHECKLIST, NO_REFERENCE, PLACEHOLDER, Criterion, Rubric
from data.safe_text import in_markdown
from jury.exports.bundle import PAGE, bundle, derived
from jury.exports.export import Export, refuse_order
from jury.panel import Juror
from jury.providers.registry import PROVIDERS

HOST = PROVIDERS["openai"].own_host
WITHIN = {
    "context": "{{item.context}}",
    "prompt": "{{item.prompt}}",
    "reference": "{{item.reference}}",
    "response": "{{sample.output_text}}",
    "checklist": NO_CHECKLIST,
}
ONE_NUMBER = "Score {name} alone: one whole number on the scale {scale}."


def write(export: Export) -> dict[str, str]:
    """Return a multi grader for each of OpenAI's jurors, its parts, the items, and a warning.

    Raises
    ------
    BadInput
        If no juror is one of OpenAI's, one is asked otherwise than the rubric says, or its text would be read as a template.
    """
    rubric = export.rubric
    refuse_order(export.panel)
    jurors = [
        juror for juror in export.panel.juror if juror.provider == "openai" and juror.host == HOST
    ]
    if not jurors:
        raise BadInput(
            f"panel {export.panel.name}: no juror at {HOST}, and OpenAI's graders ask only models "
            "that are there; give another --panel, or take the jury to promptfoo or mlflow"
        )
    files: dict[str, Any] = {}
    for juror in jurors:
        parts = {
            criterion.name: score_model(rubric, criterion, juror) for criterion in rubric.criterion
        }
        folder = f"juror{juror.name}" if juror.name in (".", "..") else juror.name
        files |= {f"{folder}/{name}.json": part for name, part in parts.items()}
        files[f"{folder}/multi.json"] = multi(rubric, parts, juror)
    items = {row.instance_id: _item(row) for row in export.rows}
    lines = [json.dumps({"item": {"instance_id": name} | item}) for name, item in items.items()]
    texts = {
        name: json.dumps(body, indent=2, ensure_ascii=False) + "\n" for name, body in files.items()
    }
    return texts | {
        "items.jsonl": "".join(f"{line}\n" for line in lines),
        "README.md": _warning(export, jurors),
        PAGE: derived(bundle(export))[PAGE],
    }


def score_model(rubric: Rubric, criterion: Criterion, juror: Juror) -> dict[str, Any]:
    """Return the grader of one criterion, in the points of the rubric's scale."""
    settings = {
        "temperature": juror.temperature,
        "max_completions_tokens": juror.max_tokens,
        "reasoning_effort": juror.effort,
    }
    return {
        "type": "score_model",
        "name": f"{criterion.name} by {juror.name}, not validated",
        "model": juror.model,
        "input": [{"type": "message", "role": "user", "content": _question(rubric, criterion)}],
        "range": [rubric.scale.min, rubric.scale.max],
        "sampling_params": {name: value for name, value in settings.items() if value is not None},
    }


def multi(rubric: Rubric, parts: Mapping[str, dict[str, Any]], juror: Juror) -> dict[str, Any]:
    """Return the grader of the composite: the mean of all criteria, as medjury takes it.

    The service takes the parts by name; the SDK's type says a single grader there.
    """
    names = {
        f"c{number}_{re.sub(r'[^A-Za-z0-9]', '_', name)}": name
        for number, name in enumerate(parts, 1)
    }
    return {
        "type": "multi",
        "name": f"{rubric.name} by {juror.name}, not validated",
        "graders": {short: parts[name] for short, name in names.items()},
        "calculate_output": f"({' + '.join(names)}) / {len(names)}",
    }


def _question(rubric: Rubric, criterion: Criterion) -> str:
    """Return the rubric's prompt on one criterion, in the service's own templates."""
    single = rubric.model_copy(update={"criterion": (criterion,)})
    schema = ONE_NUMBER.format(name=criterion.name, scale=rubric.scale)
    words = {"criteria": single.criteria_text(), "schema": schema}
    if any("{{" in text for text in (PLACEHOLDER.sub("", rubric.prompt), words["criteria"])):
        raise BadInput(
            f"rubric {rubric.name}: its own text has {{{{, which OpenAI reads as a template; write it otherwise"
        )
    return PLACEHOLDER.sub(lambda match: (WITHIN | words)[match[1]], rubric.prompt)


def _item(row: ExportRow) -> dict[str, str]:
    reference = NO_REFERENCE if row.reference is None else row.reference
    return {"context": row.context, "prompt": row.prompt, "reference": reference}


def _warning(export: Export, jurors: list[Juror]) -> str:
    left = [in_markdown(juror.name) for juror in export.panel.juror if juror not in jurors]
    others = f"The jurors {', '.join(left)} are left out. " if left else ""
    return (
        f"# {in_markdown(export.rubric.name)} as OpenAI graders: NOT VALIDATED\n\n"
        f"{PAGE} tells of the jury {in_markdown(export.panel.name)} ({export.record['status']}), which rates all "
        "criteria in one answer. These graders are settings and no program, so they cannot carry "
        "medjury's engine. They ask one model for one criterion at a time; tags in a response are "
        "not broken, so it can pose as the reference; a checklist is not shown; an answer with two "
        "verdicts or on another scale is not refused, and none is asked for again; and no ids come "
        f"back: another measurement. {others}"
        "Let them rate the study's responses and bring the scores back with `medjury rate ratings` to "
        "know how well they agree.\n"
    )

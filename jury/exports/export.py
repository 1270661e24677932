"""What is exported: a rubric, the panel that rates on it, responses, and what was validated."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from data.rubric import Rubric
from jury.panel import Panel


@dataclass(frozen=True, slots=True)
class ExportRow:
    """One instance, with a response to it where there is one; never the response's author.

    Attributes
    ----------
    instance_id
        benchmark/instance, unique in the study.
    context, prompt
        Verbatim; either may be empty.
    reference
        None where the instance has none, or the rubric shows none to a rater.
    response
        As raters see it; None where the other tool is to make its own.
    """

    instance_id: str
    context: str
    prompt: str
    reference: str | None
    response: str | None


@dataclass(frozen=True, slots=True)
class Export:
    """All that a format is handed. A format's module has `write(export)`: file name -> text.

    Attributes
    ----------
    rubric, panel
        What is rated on, and who rates; a panel never holds a key.
    rows
        May be empty: most tools bring their own data.
    record
        The validation record (docs/exports.md): JSON values only.
    """

    rubric: Rubric
    panel: Panel
    rows: tuple[ExportRow, ...]
    record: Mapping[str, Any]

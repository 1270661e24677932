"""A rubric with its jury, and what was validated of them, as files for another tool."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from sqlalchemy import Engine

from data.errors import BadInput
from data.queries.study import study_id
from data.queries.validation import material
from data.rubric import Rubric
from jury.admission import admit
from jury.exports.export import Export
from jury.panel import Panel
from medjury.services.rubric_validation import Resampling, Tick, seats_of, validation

WRITERS = {  # tool -> module and function of `jury.exports`
    "medjury": "bundle:write",
    "helm": "helm:write",
    "inspect": "scorers:write_inspect",
    "promptfoo": "scorers:write_promptfoo",
    "openai": "openai_grader:write",
    "mlflow": "scorers:write_mlflow",
}
TOLD_WHERE = ("helm", "inspect", "promptfoo", "mlflow")  # with the names of keys' variables

Write = Callable[[Export], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class RubricExport:
    """What is asked of an export.

    Attributes
    ----------
    rubric
        Its canonical text, `Rubric.to_json`.
    panel
        Who rates.
    tool
        One of `tools`.
    """

    rubric: str
    panel: Panel
    tool: str
    reps: int = 2000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ExportedRubric:
    """The files, and what they say of the jury.

    Attributes
    ----------
    files
        Name -> text.
    validated
        Whether the jury meets what the study asks for; otherwise `reasons` say why not.
    unnoted
        Why the ledger could not be told that the jury was looked at; empty where it was.
    """

    files: Mapping[str, str]
    validated: bool
    reasons: tuple[str, ...]
    caveats: tuple[str, ...]
    unnoted: str


def tools() -> list[str]:
    """Return the tools that a rubric can be exported for."""
    modules = {name: writer.partition(":")[0] for name, writer in WRITERS.items()}
    return [name for name, module in modules.items() if find_spec(f"jury.exports.{module}")]


def exported_rubric(
    engine: Engine, asked: RubricExport, tick: Tick | None = None
) -> ExportedRubric:
    """Return a rubric's files for a tool, the figures computed anew from the study's ratings.

    Raises
    ------
    BadInput
        If the panel rates on another rubric only, or a tool would be told of a host, or of a key
        for it, that the server's owner does not allow.
    """
    rubric, panel = Rubric.from_json(asked.rubric), asked.panel
    refuse_other(panel, rubric)
    if asked.tool in TOLD_WHERE:
        admit(panel)
    resampling = Resampling(asked.reps, asked.seed)
    validated = validation(engine, rubric, seats_of(panel), resampling, tick)
    record = validated.record
    rows = tuple(material(engine, rubric))
    module, _, function = WRITERS[asked.tool].partition(":")
    write: Write = getattr(import_module(f"jury.exports.{module}"), function)
    return ExportedRubric(
        dict(write(Export(rubric, panel, rows, record, study_id(engine)))),
        record["status"] == "validated",
        tuple(record["reasons"]),
        tuple(record["caveats"]),
        validated.unnoted,
    )


def refuse_other(panel: Panel, rubric: Rubric) -> None:
    """Raise BadInput if a panel may rate on another rubric only."""
    if panel.rubric and panel.rubric != rubric.name:
        raise BadInput(f"panel {panel.name} rates on {panel.rubric} only, not on {rubric.name}")

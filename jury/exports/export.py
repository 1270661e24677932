"""What is exported: a rubric, the panel that rates on it, responses, and what was validated."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

from data.card import ExportRow
from data.errors import BadFile, BadInput
from data.files import new_folder
from data.rubric import PLACEHOLDER, Rubric
from data.safe_text import short
from jury.panel import Juror, Panel
from jury.providers.registry import PROVIDERS


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
    study
        The hash of the first event of the study's record, by which it is known again.
    """

    rubric: Rubric
    panel: Panel
    rows: tuple[ExportRow, ...]
    record: Mapping[str, Any]
    study: str = ""


def texts_of(row: ExportRow) -> dict[str, str]:
    """Return what a juror reads of an instance; a text that it lacks is left out."""
    texts = {name: getattr(row, name) for name in ("context", "prompt", "reference", "checklist")}
    return {name: text for name, text in texts.items() if text is not None}


def place_of(row: ExportRow) -> dict[str, str]:
    """Return where an instance stands in its study; nothing where there is none."""
    return {"benchmark": row.benchmark, "instance_id": row.own_id} if row.benchmark else {}


def pieces(prompt: str, fixed: Mapping[str, str]) -> list[str]:
    """Return a prompt in pieces, words and names of texts by turns; `fixed` texts are among the words."""
    found = [""]
    for place, piece in enumerate(PLACEHOLDER.split(prompt)):
        if place % 2 and piece not in fixed:
            found += [piece, ""]
        else:
            found[-1] += fixed[piece] if place % 2 else piece
    return found


def refuse_untold(panel: Panel) -> None:
    """Refuse a juror that other tools cannot ask as it was validated.

    Raises
    ------
    BadInput
        Names the juror, what is in the way, and what to give instead.
    """
    for juror in panel.juror:
        if why := _untold(juror):
            raise BadInput(f"panel {panel.name}: {juror.name} {why}")


def _untold(juror: Juror) -> str:
    if juror.simulated:
        return (
            "is simulated, and no other tool can ask it; give --panel with jurors that are models"
        )
    if not PROVIDERS[juror.provider].exported:
        return (
            f'is asked at provider "{juror.provider}", which is not written for other tools; give '
            "--panel with jurors at an OpenAI-compatible address"
        )
    setting = f'explanation = "{juror.explanation}"' if juror.explanation else ""
    if setting := 'scores = "expected"' if juror.expected else setting:
        return (
            f"rates with {setting}, which is not written for other tools; give --panel with jurors "
            "that are validated without it, or take the bundle (--to medjury), which holds it"
        )
    return ""


def program(name: str) -> str:
    """Return a program that is exported as it is: `name`.txt beside this file."""
    return (files("jury.exports") / f"{name}.txt").read_text("utf-8")


def write_folder(out: Path, texts: Mapping[str, str | bytes], option: str = "--out") -> None:
    """Write all files, text or bytes, into a new or empty folder, or none; `option` is what named it.

    Raises
    ------
    BadFile
        If the folder holds something, or cannot be written.
    """
    refuse_outside(texts)
    with new_folder(out, f"{option} {out}") as folder:
        for name, text in texts.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            content = text.encode("utf-8") if isinstance(text, str) else text
            (folder / name).write_bytes(content)


def refuse_outside(names: Iterable[str]) -> None:
    """Refuse files whose names lead out of their folder.

    Raises
    ------
    BadFile
        Names the first one.
    """
    for name in names:
        path = PurePosixPath(name.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts:
            raise BadFile(f"{short(name)}: leads out of the folder; give the juror another name")

"""Rubrics as folders with `rubric.toml` and `prompt.txt`, written so that they are read back the same."""

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from data.errors import BadFile
from data.rubric import Example, Rubric


def write_rubrics(out: Path, rubrics: Mapping[str, Rubric]) -> None:
    """Write each rubric as a folder that `read_rubric` reads back the same: all of them, or none.

    Raises
    ------
    BadFile
        If `out` holds something already or cannot be written.
    """
    temporary: Path | None = None
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise BadFile(f"{out}: is there already; name a new folder")
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".rubrics-", dir=out.parent))
        for name, rubric in rubrics.items():
            _write_rubric(temporary / name, rubric)
        temporary.chmod(0o755)
        if out.exists():
            out.rmdir()
        temporary.rename(out)
    except OSError as error:
        raise BadFile(f"{out}: {error.strerror}") from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def rubric_toml(rubric: Rubric) -> str:
    """Return a rubric as TOML, without its prompt."""
    names = [*("name", "version", "audience", "gold")]
    names += [name for name in ("parent", "points") if getattr(rubric, name)]
    head = {name: getattr(rubric, name) for name in names}
    lines = [f"{key} = {_toml_string(value)}" for key, value in head.items()]
    lines += ["", "[scale]", f"min = {rubric.scale.min}", f"max = {rubric.scale.max}"]
    for criterion in rubric.criterion:
        lines += ["", "[[criterion]]", f"name = {_toml_string(criterion.name)}"]
        lines += [f"question = {_toml_string(criterion.question)}"]
        lines += [] if criterion.critical is None else [f"critical = {criterion.critical!r}"]
        lines += [f"guidance = {_toml_string(criterion.guidance)}"] if criterion.guidance else []
        lines += ["", "[criterion.anchors]"]
        lines += [
            f"{point} = {_toml_string(criterion.anchors[point])}"
            for point in sorted(criterion.anchors)
        ]
    for example in rubric.example:
        lines += ["", "[[example]]", *_example_toml(example)]
    return "\n".join(lines) + "\n"


def _example_toml(example: Example) -> list[str]:
    texts = {name: getattr(example, name) for name in ("context", "prompt", "response", "why")}
    scores = (f"{_toml_string(name)} = {list(given)}" for name, given in example.scores.items())
    return [
        *(f"{key} = {_toml_string(text)}" for key, text in texts.items()),
        "",
        "[example.scores]",
        *scores,
    ]


def _toml_string(text: str) -> str:
    """Return a TOML string: JSON's, but for DEL, which TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _write_rubric(folder: Path, rubric: Rubric) -> None:
    folder.mkdir()
    (folder / "rubric.toml").write_text(rubric_toml(rubric), encoding="utf-8", newline="\n")
    (folder / "prompt.txt").write_text(rubric.prompt, encoding="utf-8", newline="\n")

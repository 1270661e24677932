"""Writing rubrics as folders that `read_rubric` reads back the same."""

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from data.errors import BadFile
from data.rubric import Rubric


def write_rubrics(out: Path, rubrics: Mapping[str, Rubric]) -> None:
    """Write a folder for each rubric into `out`: all of them, or nothing.

    Raises
    ------
    BadFile
        If `out` holds something already or cannot be written.
    """
    made: Path | None = None
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise BadFile(f"{out}: is there already; name a new folder")
        out.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=".rubrics-", dir=out.parent))
        for name, rubric in rubrics.items():
            _write(made / name, rubric)
        made.chmod(0o755)
        if out.exists():
            out.rmdir()
        made.rename(out)
    except OSError as error:
        raise BadFile(f"{out}: {error.strerror}") from error
    finally:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)


def rubric_toml(rubric: Rubric) -> str:
    """Return a rubric without its prompt as TOML."""
    head = {name: getattr(rubric, name) for name in ("name", "version", "audience", "gold")}
    lines = [f"{key} = {_quoted(value)}" for key, value in head.items()]
    lines += ["", "[scale]", f"min = {rubric.scale.min}", f"max = {rubric.scale.max}"]
    for one in rubric.criterion:
        lines += ["", "[[criterion]]", f"name = {_quoted(one.name)}"]
        lines += [f"question = {_quoted(one.question)}"]
        lines += [] if one.critical is None else [f"critical = {one.critical!r}"]
        lines += ["", "[criterion.anchors]"]
        lines += [f"{point} = {_quoted(one.anchors[point])}" for point in sorted(one.anchors)]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Return a TOML string: JSON's, but for DEL, which TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _write(folder: Path, rubric: Rubric) -> None:
    folder.mkdir()
    (folder / "rubric.toml").write_text(rubric_toml(rubric), encoding="utf-8", newline="\n")
    (folder / "prompt.txt").write_text(rubric.prompt, encoding="utf-8", newline="\n")

"""The engine of a jury as a package: the modules that a run itself asks and reads with.

They are copied as they are; only the names they import each other by get the package's name in
front. They need Python 3.11 and its standard library, and nothing of medjury.
"""

import json
import re
from importlib.resources import files
from typing import Any

from data.errors import BadInput
from jury.exports.bundle import PAGE, bundle, derived
from jury.exports.export import Export, refuse_untold
from jury.exports.exported_jury import FORMAT, FORMAT_VERSION
from jury.panel import Juror
from jury.providers.registry import PROVIDERS, forms_of

PACKAGE = "medjury_engine"
SETTINGS_FILE = "medjury_jury.json"
MODULES = (
    "data.calls",
    "data.card",
    "data.question",
    "data.rubrics.injection",
    "jury.call",
    "jury.parse",
    "jury.asking",
    "jury.http_answers",
    "jury.api_protocols",
    "jury.exports.exported_jury",
)
OWN_IMPORT = re.compile(r"^(from|import) (?=(?:data|jury)[. ])", re.MULTILINE)
FACE = '"""Part of medjury: its own modules, written by `medjury share rubric`."""\n'


def engine_files() -> dict[str, str]:
    """Return the files of the package, by path."""
    texts = {f"{PACKAGE}/{name.replace('.', '/')}.py": _source(name) for name in MODULES}
    folders = {path.rpartition("/")[0] for path in texts}
    folders |= {parent.rpartition("/")[0] for parent in folders} - {""}
    return {f"{folder}/__init__.py": FACE for folder in sorted(folders)} | texts


def carried(text: str) -> str:
    """Return a module's text with its imports of other modules pointed into the package."""
    return OWN_IMPORT.sub(rf"\1 {PACKAGE}.", text)


def _source(name: str) -> str:
    package, _, module = name.rpartition(".")
    return carried((files(package) / f"{module}.py").read_text("utf-8"))


def engine(export: Export) -> dict[str, str]:
    """Return the engine, what the jury is told, and what was validated.

    Raises
    ------
    BadInput
        If a juror is simulated: there is no model that another tool could ask; or if it is asked
        at a cloud's own address.
    """
    refuse_untold(export.panel)
    if names := [juror.name for juror in export.panel.juror if juror.simulated]:
        raise BadInput(
            f"panel {export.panel.name}: {', '.join(names)} simulated, and no other tool can ask "
            "them; give --panel with jurors that are models"
        )
    settings = json.dumps(_settings(export), indent=2, ensure_ascii=False) + "\n"
    return engine_files() | {SETTINGS_FILE: settings, PAGE: derived(bundle(export))[PAGE]}


def _settings(export: Export) -> dict[str, Any]:
    """Return what `jury/exports/exported_jury.py` reads."""
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "study": export.study,
        "status": export.record["status"],
        "rubric_sha256": export.rubric.sha256,
        "rubric": export.rubric.model_dump(mode="json"),
        "jurors": [exported_juror(juror) for juror in export.panel.juror],
    }


def exported_juror(juror: Juror) -> dict[str, Any]:
    """Return how a juror is asked; the name of its key's variable, never the key."""
    names = ("name", "family", "provider", "model", "base_url", "api_key_env")
    settings = ("temperature", "max_tokens", "effort")
    return {name: getattr(juror, name) for name in (*names, *settings)} | {
        "forms": list(forms_of(juror)),
        "own": juror.host == PROVIDERS["openai"].own_host,
        "profile": juror.profile(),
    }

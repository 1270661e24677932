"""Panels as a study keeps them: TOML texts, checked as the command line checks them."""

import atexit
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

from data.errors import BadFile, BadPanel
from jury.address import in_house, kind_of
from jury.admission import admit
from jury.panel import (
    FOLDER,
    KEY_START,
    LONGEST_NAME,
    Juror,
    Panel,
    juror_toml,
    read_panel,
    shipped,
)

OF_TODAY = "current"
RECOMMENDED = "recommended"
LONGEST_TEXT = 50_000
UNREADABLE_RULES = (
    "the rules that say where texts may go cannot be read: ask who owns this server to mend them; "
    "`medjury jury run` on the server says what is wrong"
)
STARTS = "|".join(re.escape(prefix) for prefix in KEY_START)
KEY = re.compile(rf"(?<![\w-])(?:{STARTS})\S{{8,}}|[A-Za-z0-9_+=-]{{{LONGEST_NAME + 1},}}")


def shipped_texts() -> dict[str, str]:
    """Return the TOML texts of the panels that ship with medjury, by name: first the one of today's models."""
    texts = {name: (FOLDER / f"{name}.toml").read_text("utf-8") for name in shipped()}
    return {OF_TODAY: texts.pop(OF_TODAY)} | texts


def places(own: Mapping[str, str]) -> dict[str, str]:
    """Return where each panel is read, by name: those that ship, and a study's own texts."""
    paths = {name: str(on_disk(name, text)) for name, text in own.items()}
    return paths | {name: name for name in shipped()}


def checked(text: str) -> Panel:
    """Return the panel that a text is.

    Raises
    ------
    BadPanel
        As `medjury jury run` says it; and if any line may hold a key, without that line.
    """
    if len(text) > LONGEST_TEXT:
        raise BadPanel(f"a panel of {len(text)} characters: {LONGEST_TEXT} is the most")
    for number, line in enumerate(text.splitlines(), 1):
        if KEY.search(line):
            raise BadPanel(
                f"line {number} may hold a key (not shown): a panel names the environment "
                'variable that holds it, as in api_key_env = "OPENAI_API_KEY"; if it is a key, '
                "take it out here and have it renewed"
            )
    path = on_disk("panel", text)
    try:
        return read_panel(path)
    except BadPanel as error:
        raise BadPanel(without_path(str(error), path)) from error


def usable(text: str) -> Panel:
    """Return the panel that a text is, at the prices that count, if its jurors may be asked.

    Raises
    ------
    BadPanel
        As `checked`; and if the server's owner does not allow one of its hosts, or a key or the
        server's own identity there, or the owner's file of rules, whose place is not told here,
        cannot be read.
    """
    panel = checked(text)
    try:
        return admit(panel)
    except BadFile as error:
        raise BadPanel(UNREADABLE_RULES) from error


def on_disk(name: str, text: str) -> Path:
    """Write a text into a private folder of this process and return where; the same one once."""
    folder = _folder() / sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.toml"
    if not path.exists():
        path.write_text(text, "utf-8", errors="replace")
    return path


def without_path(message: str, path: Path) -> str:
    """Return a message about a panel's file without saying where our copy of it is."""
    return message.replace(f"panel {path}: ", "").replace(str(path), path.stem)


def costs_money(panel: Panel) -> bool:
    """Return whether a run may cost money: a price above 0, or an unknown price of another host."""
    return any(_costs(juror) for juror in panel.juror)


def panel_of(
    jurors: Sequence[str], profiles: Mapping[str, Mapping[str, Any]], texts: Mapping[str, str]
) -> tuple[str, str]:
    """Return name and text of a new panel of jurors, each as the panel has it that it rated with.

    Parameters
    ----------
    jurors : their names
    profiles : name -> settings with which the juror rated
    texts : name -> TOML text of each panel that is known

    Raises
    ------
    BadPanel
        If a juror rated with settings that no known panel has, as one whose ratings were imported.
    """
    known: dict[str, Juror] = {}
    for text in texts.values():
        with suppress(BadPanel):
            for juror in checked(text).juror:
                if juror.profile() == profiles.get(juror.name):
                    known.setdefault(juror.name, juror)
    if unknown := [juror for juror in jurors if juror not in known]:
        raise BadPanel(
            f"{', '.join(unknown)}: rated with settings that stand in no panel here, as ratings made "
            "elsewhere do; write the panel under Jury, Run"
        )
    name = next(name for name in _names() if name not in texts)
    return name, "\n".join([f'name = "{name}"', *(juror_toml(known[juror]) for juror in jurors)])


def _names() -> Iterator[str]:
    yield RECOMMENDED
    yield from (f"{RECOMMENDED}-{number}" for number in count(2))


def _costs(juror: Juror) -> bool:
    if juror.simulated:
        return False
    if juror.usd_per_million_in is None:
        return not in_house(kind_of(juror.host))
    return bool(juror.usd_per_million_in or juror.usd_per_million_out)


@cache
def _folder() -> Path:
    """Return a folder that only this process's user may read, gone when it ends."""
    folder = tempfile.mkdtemp(prefix="medjury-panels-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)

"""The head of a record as a small file: what can be signed, kept elsewhere, and checked later."""

import re
from dataclasses import dataclass
from pathlib import Path

from data.errors import BadFile, BadInput

FIRST_LINE = "medjury head 1"
ENDING = ".head"
MOST_BYTES = 10_000
HASH = re.compile("[0-9a-f]{64}")
LINES = re.compile(
    rf"{FIRST_LINE}\nstudy ([0-9a-f]{{64}})\nevents (0|[1-9][0-9]{{0,17}})\nhead ([0-9a-f]{{64}})\n"
)


@dataclass(frozen=True, slots=True)
class Head:
    """The last event of a record at some time.

    Attributes
    ----------
    sha256
        Its hash.
    events
        How many events there were; None where only the hash was kept.
    study
        Hash of the first event: of which study it is; "" where only the hash was kept.
    """

    sha256: str
    events: int | None = None
    study: str = ""

    def to_text(self) -> str:
        """Return the file's content, always the same for the same head."""
        return f"{FIRST_LINE}\nstudy {self.study}\nevents {self.events}\nhead {self.sha256}\n"


def head_given(given: str) -> Head:
    """Return a head from its hash, or from the file that has it.

    Raises
    ------
    BadInput
        If it is neither: a slip of the pen is no forgery.
    BadFile
        If the file is no head, or was changed so that it cannot be one.
    """
    text = given.strip()
    if HASH.fullmatch(text.lower()):
        return Head(text.lower())
    path = Path(text)
    if path.is_file():
        return _read(path)
    raise BadInput(
        f"head {text[:80]!r}: neither a file nor a hash of the record; a hash has 64 characters 0-9 "
        "and a-f, as `medjury study verify` and `medjury study lock` print it"
    )


def _read(path: Path) -> Head:
    try:
        with path.open("rb") as file:
            body = file.read(MOST_BYTES).decode("ascii", "replace").replace("\r\n", "\n")
    except OSError as error:
        raise BadFile(f"head {path}: {error.strerror}") from error
    found = LINES.fullmatch(body)
    if found is None:
        raise BadFile(
            f"head {path}: not a head as `medjury study lock` and `medjury share export --package` write it "
            f"(its first line is {FIRST_LINE!r}); check its signature, or take another copy"
        )
    study, events, sha256 = found.groups()
    return Head(sha256, int(events), study)

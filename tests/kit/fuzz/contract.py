"""What holds of every reader and any bytes: a clean result, or one message that is fit to be read."""

import shutil
import tempfile
from pathlib import Path

from data.errors import MedjuryError
from kit.fuzz.readers import READERS

CANARY = "MrsCanaryQuillOfWardSevenCoughsSinceTuesdayAndWheezes"  # stands for a patient's text
LONGEST = 600


def hold(reader: str, body: bytes) -> str:
    """Read bytes as a file of that kind; return the message they are refused with, else ""."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        READERS[reader](folder, body)
    except MedjuryError as error:
        return _fit(str(error), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return ""


def _fit(message: str, folder: Path) -> str:
    bare = message.replace(str(folder), "")
    assert message.strip()
    assert len(bare) < LONGEST, f"{len(bare)} characters: {bare[:200]}..."
    assert "\n" not in bare, repr(bare)
    assert CANARY not in bare, bare
    assert "." in bare or bare != message, f"names no file: {bare}"
    bare.encode()
    return bare

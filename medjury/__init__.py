"""medjury: blinded clinician ratings, LLM juries, and how well they agree."""

import gc
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from medjury.own_packages import put_first

__all__ = ["check", "main", "program"]

MADE_BETWEEN = 50_000  # objects, before a command looks for garbage among them

put_first()


def __getattr__(name: str) -> Any:
    """Return what a notebook calls; pandas is imported only then."""
    if name == "check":
        from medjury.services.check import check

        return check
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command; Ctrl-C ends it with a word, also while it is still starting."""
    try:
        from medjury.cli.app import run

        run(arguments)
    except KeyboardInterrupt:
        print("medjury: stopped", file=sys.stderr)
        sys.exit(130)


def program() -> NoReturn:
    """Be the process of one command: it seldom looks through all it has imported, and not at its end."""
    gc.set_threshold(MADE_BETWEEN)
    try:
        main()
    finally:
        gc.freeze()

"""How a text is written so that no spreadsheet runs it as a formula, and read back as it was."""

import re

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet computes begins with one
COMPUTED = re.compile(r"'*[=+\-@\t\r]")  # with what a guard has put before it
NUMBER = re.compile(r"[+-]\d+(\.\d*)?|[+-]\.\d+")


def guarded(text: str) -> str:
    """Return a text with a ' before what a spreadsheet would compute; `unguarded` takes it away."""
    return f"'{text}" if COMPUTED.match(text) else text


def guarded_name(name: str) -> str:
    """Return a name or an id as `guarded` does; one that is a number, such as -5, as it is."""
    return name if NUMBER.fullmatch(name) else guarded(name)


def unguarded(text: str) -> str:
    """Return the text that `guarded` or `guarded_name` was given."""
    return text[1:] if text.startswith("'") and COMPUTED.match(text, 1) else text

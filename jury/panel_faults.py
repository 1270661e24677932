"""What is said of a wrong panel: one line, and never a value that may be a key."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

NOT_A_NAME = (
    "write the variable's name, not the key: capital letters, digits and underscores, such as "
    'OPENAI_API_KEY ("" where the server needs no key)'
)
NAME_SIGNS = "letters, digits, underscores, dots and hyphens only, at least one, and no spaces"
VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
LONGEST_NAME = 40
LONGEST_SHOWN = 120
LONGEST_WORD = 15  # longer ones without an underscore and with digits are keys, as AWS's are
KEY_START = ("sk-", "sk_", "gsk_", "hf_", "xai-", "tgp_", "AIza", "Bearer ")


def variable_name(value: str) -> str:
    """Return the name of an environment variable; raise ValueError for what may be a key."""
    one_word = "_" not in value and len(value) > LONGEST_WORD and not value.isalpha()
    named = VARIABLE.fullmatch(value) and len(value) <= LONGEST_NAME and not one_word
    if value and (not named or value.lower().startswith("sk-")):
        raise ValueError(NOT_A_NAME)
    return value


def shown(value: object) -> str:
    """Return a value as a message may hold it: not if it looks like a key."""
    text = value if isinstance(value, str) else repr(value)
    word = re.search(rf"[^\s/:.@'\"]{{{LONGEST_NAME + 1},}}", text)
    hidden = word or "@" in text or any(start in text for start in KEY_START)
    if hidden:
        return "(not shown: it may hold a key)"
    return repr(value) if len(text) <= LONGEST_SHOWN else f"({len(text)} characters)"


def first_fault(
    error: ValidationError,
    body: Mapping[str, Any],
    panel_keys: Sequence[str],
    juror_keys: Sequence[str],
) -> str:
    """Return the first complaint in one line: juror, key, value, what is allowed."""
    problem = error.errors()[0]
    steps = list(problem["loc"])
    said = str(problem["msg"]).removeprefix("Value error, ")
    place, known = "", panel_keys
    if len(steps) > 1 and steps[0] == "juror":
        place, known = f"juror {_called(body, steps[1])}, ", juror_keys
        steps = steps[2:]
    if not steps:
        return f"{place}{said}"
    if problem["type"] == "extra_forbidden":
        named = shown(steps[0]).strip("'")
        return f"{place}{named}: no such key; the keys are {', '.join(known)}"
    if problem["type"] == "string_pattern_mismatch":
        said = NAME_SIGNS
    if steps[0] == "api_key_env":
        return f"{place}api_key_env: {NOT_A_NAME}"
    given = "" if problem["type"] == "missing" else f" {shown(problem['input'])}"
    return f"{place}{'.'.join(map(str, steps))}{given}: {said}"


def _called(body: Mapping[str, Any], index: Any) -> str:
    """Return the name of the juror at a place in the file, or its number where it has none."""
    one = body["juror"][index]
    name = one.get("name") if isinstance(one, dict) else None
    return shown(name) if isinstance(name, str) else str(index + 1)

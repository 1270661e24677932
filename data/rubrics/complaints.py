"""What is wrong with a rubric somebody wrote, in one line that helps to mend it."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from data.said import one_line

LONGEST = 300  # characters of a message
NOT_OF_A_NAME = re.compile(r"[^\w.-]+")
WIDEST = 1_000  # steps of a scale: jurors are sent all its points
# The keys of `rubric.toml`, by the table they stand in; the prompt is a file of its own.
KEYS = {
    "": ("name", "version", "audience", "gold", "scale", "criterion"),
    "scale": ("min", "max"),
    "criterion": ("name", "question", "anchors", "critical"),
}


def first_complaint(problems: Iterable[Mapping[str, Any]]) -> str:
    """Return pydantic's first complaint in one line; a key we do not know comes before all others.

    A misspelt key is both unknown and missing, and only the first says what to change.
    """
    return one_line(_first(problems), LONGEST)


def _first(problems: Iterable[Mapping[str, Any]]) -> str:
    ordered = sorted(problems, key=lambda one: one["type"] != "extra_forbidden")
    problem = ordered[0]
    place = ".".join(one_line(str(step), 80) for step in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"{place}: unknown key{_instead(problem['loc'])}"
    if problem["type"] == "string_pattern_mismatch":
        wanted = NOT_OF_A_NAME.sub("_", str(problem.get("input", "")).strip()).strip("_").lower()
        shown = one_line(str(problem.get("input", "")), 40)
        instead = f"; write {one_line(wanted, 64)}" if wanted else ""
        return f"{place}: {shown!r}: a name has letters, digits, _ . - and no blanks{instead}"
    said = str(problem["msg"]).removeprefix("Value error, ")
    return f"{place}: {said}" if place else said


def unasked(prompt: str, criteria: Iterable[str]) -> str:
    """Return what a juror would never learn from a prompt, or "".

    Prompts of HELM have the criteria and the form of the answer in their own words: a criterion
    counts as named where its name stands in the prompt, a form where the prompt speaks of JSON.
    """
    words = _plain(prompt)
    lacking = [name for name in criteria if _plain(name) not in words]
    if "{{criteria}}" not in prompt and lacking:
        return (
            f"prompt: {{{{criteria}}}} is missing, and {', '.join(lacking)} "
            f"{'stands' if len(lacking) == 1 else 'stand'} nowhere in it: "
            "a juror would not know what to rate"
        )
    if "{{schema}}" not in prompt and "json" not in words:
        return (
            "prompt: {{schema}} is missing, and JSON is not spoken of: "
            "a juror would not know how to answer"
        )
    return ""


def too_wide(low: int, high: int) -> str:
    """Return what is wrong with the scale of a new rubric, or ""; a study may hold a wider one."""
    return f"scale: has more than {WIDEST + 1} points" if high - low > WIDEST else ""


def _plain(text: str) -> str:
    return " ".join(text.lower().replace("_", " ").split())


def _instead(place: tuple[Any, ...]) -> str:
    """Return the closest key that may stand there, or all of them."""
    known = KEYS.get(str(place[0]) if len(place) > 1 else "", ())
    close = get_close_matches(str(place[-1]).lower(), known, n=1)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; the keys here are {', '.join(known)}" if known else ""

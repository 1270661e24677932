"""Read an answer strictly: one JSON object of the asked form, or the reason why there is none.

Reasoning at the beginning is set aside, and one fence or tag around the rest. What is left is the
object: once, or repeated word for word, and nothing beside it. Each criterion of the rubric has an
object with its `score`, a whole number on its scale (4, 4.0 and the string "4" are that number; true,
4.5, "4/5" and 7 on a scale of 1-5 are not) or an answer that may stand in its place, and at most the text that was asked for beside it. Nothing
is rounded, clamped or guessed at, and no words are weighed: an answer that is anything else is asked
for once more, with the reason.

This file needs no package; exports carry it as it is.
"""

import json
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

LONGEST = 200_000
QUOTED = 40
NAMES = r"(?:seed:)?(?:think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis)"
# What opens a model's reasoning, and what closes it: tags of Qwen, DeepSeek, Magistral, Kimi, gpt-oss,
# Cohere, Gemma and Granite, which a server without the right parser leaves in the answer.
BLOCKS = (
    (rf"<{NAMES}(?:\s[^<>]*)?>", rf"</{NAMES}\s*>"),
    (r"\[THINK(?:ING)?\]", r"\[/THINK(?:ING)?\]"),
    ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
    (
        r"(?:<\|start\|>assistant)?<\|channel\|>(?:analysis|commentary)<\|message\|>",
        r"<\|channel\|>final<\|message\|>",
    ),
    (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),
    (r"<\|channel>thought\b", r"<channel\|>"),
    (r"Here is my thought process:", r"Here is my response:"),
)
OPENS = [re.compile(rf"\s*{opening}", re.IGNORECASE) for opening, _ in BLOCKS]
CLOSES = [re.compile(closing, re.IGNORECASE) for _, closing in BLOCKS]
# A template may open the block in the prompt, so that only its end, on a line of its own, is written.
UNOPENED = re.compile(rf"[^{{}}]*?^\s*(?:</{NAMES}\s*>|\[/THINK\])", re.MULTILINE | re.IGNORECASE)
LABEL = re.compile(r"\s*thought[ \t]*\n(?=\s*[{`])")  # of Gemini's summaries
FENCE = re.compile(r"\s*(`{3,}|~{3,})[^\n`{]*\n(?P<inner>.*)\n[ \t]*\1\s*", re.DOTALL)
TAG = re.compile(r"\s*<(answer)>(?P<inner>.*)</\1>\s*", re.DOTALL | re.IGNORECASE)
COHERE = re.compile(r"\s*<\|START_RESPONSE\|>(?P<inner>.*?)(?:<\|END_RESPONSE\|>)?\s*", re.DOTALL)
TURN_END = re.compile(r"(?:<\|(?:im_end|eot_id|end|return|endoftext)\|>|</s>|<end_of_turn>)\s*\Z")
NO_OBJECT = "the answer holds no JSON object"
BREAKS_OFF = "the JSON object breaks off or is not valid"
BESIDE = "something else stands beside the JSON object"
TWO = "the answer holds two verdicts that differ"
TOO_LONG = f"the answer is longer than {LONGEST:,} characters"
NO_END = (
    "the answer is reasoning that never ends; give it more max_tokens, or start the server with its "
    "parser for this model's reasoning"
)


class Unreadable(ValueError):
    """An answer that is not what was asked for, with the status that says so."""

    def __init__(self, reason: str, status: str = "invalid_json") -> None:
        super().__init__(reason)
        self.status = status


def read_verdict(
    text: str, form: Mapping[str, Any]
) -> tuple[dict[str, float | str], dict[str, str]]:
    """Return criterion -> score and criterion -> explanation of a verdict.

    Parameters
    ----------
    form
        `criteria`, name -> `min` and `max` of its scale and the `answers` that may stand in the place of
        a score; `word`, the key of an explanation.

    Raises
    ------
    Unreadable
        If the answer is no verdict of this form.
    """
    criteria, word = form["criteria"], form["word"]
    verdict = objects(text)[0][1]
    if (unasked := next((name for name in verdict if name not in criteria), None)) is not None:
        raise Unreadable(f"{_quote(unasked)} is not asked for")
    scores = {name: _score(verdict.get(name), name, form) for name in criteria}
    return scores, {name: storable(verdict[name].get(word) or "") for name in criteria}


def objects(text: str) -> list[tuple[int, dict[str, Any]]]:
    """Return the objects that an answer is, all equal, with the positions where they begin.

    Numbers with a point are Decimal.

    Raises
    ------
    Unreadable
        If there is none, it breaks off, has a key twice, or anything stands beside it but itself.
    """
    if len(text) > LONGEST:
        raise Unreadable(TOO_LONG)
    at, end = _answer(text)
    if text[at : at + 1] == "[" and text[end - 1] == "]":  # a list of the one object
        at, end = skip(text, at + 1), end - 1
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=_once, parse_float=decimal)
    found: list[tuple[int, dict[str, Any]]] = []
    while at < end and text[at] == "{":
        try:
            value, after = decoder.raw_decode(text[:end], at)
        except Unreadable:
            raise
        except (ValueError, RecursionError):
            raise Unreadable(BREAKS_OFF) from None
        found.append((at, value))
        at = skip(text, after)
    if any(value != found[0][1] for _, value in found):
        raise Unreadable(TWO, "two_verdicts")
    if at < end:
        raise Unreadable(BESIDE if "{" in text else NO_OBJECT)
    if not found:
        raise Unreadable(NO_OBJECT)
    return found


def _answer(text: str) -> tuple[int, int]:
    """Return from where to where an answer stands, without reasoning and one fence or tag around it."""
    at = len(text) - len(text.lstrip("\ufeff \t\r\n"))
    while (
        kind := next((k for k, opens in enumerate(OPENS) if opens.match(text, at)), None)
    ) is not None:
        closing = CLOSES[kind].search(text, at)
        if closing is None:
            raise Unreadable(NO_END)
        at = closing.end()
    for leftover in (UNOPENED, LABEL):
        if at == 0 and (match := leftover.match(text)):
            at = match.end()
    end = match.start() if (match := TURN_END.search(text, at)) else len(text)
    for around in (COHERE, TAG, FENCE):
        if match := around.fullmatch(text, at, end):
            at, end = match.span("inner")
    at = skip(text, at)
    return at, at + len(text[at:end].rstrip(" \t\r\n"))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Unreadable(f"{_quote(twice)} is given twice")
    return members


def decimal(text: str) -> Decimal:
    """Return a number exactly as it is written; NaN for one that a Decimal cannot hold."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal("NaN")


def _score(entry: object, name: str, form: Mapping[str, Any]) -> float | str:
    word, own = form["word"], form["criteria"][name]
    value = entry.get("score") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or value is None:
        raise Unreadable(f"{name}: no score is given", "missing_criterion")
    if (unasked := next((key for key in entry if key not in ("score", word)), None)) is not None:
        raise Unreadable(f"{name}: {_quote(unasked)} is not asked for")
    if not isinstance(entry.get(word, ""), str | None):
        raise Unreadable(f"{name}: its {word} is no text")
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    for point in range(own["min"], own["max"] + 1):
        if value == (point if is_number else str(point)):
            return float(point)
    if isinstance(value, str) and value in own["answers"]:
        return value
    between = "-" if own["min"] >= 0 else " to "
    allowed = f"is not a whole number on the scale {own['min']}{between}{own['max']}"
    allowed += "".join(f' or "{answer}"' for answer in own["answers"])
    raise Unreadable(f"{name}: score {_quote(value)} {allowed}", "out_of_range")


def skip(text: str, at: int) -> int:
    """Return the next position that holds no white space."""
    while text[at : at + 1] in (" ", "\t", "\r", "\n"):
        at += 1
    return at


def storable(text: str) -> str:
    """Return the text without what a database cannot hold: NUL and lone surrogates."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _quote(value: object) -> str:
    try:
        shown = str(value) if isinstance(value, Decimal) else json.dumps(value, default=str)
    except (ValueError, RecursionError):
        shown = type(value).__name__
    return shown if len(shown) <= QUOTED else shown[:QUOTED] + "..."

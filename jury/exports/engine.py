"""The exported jury: `medjury_jury.py` as it is, and beside it what it is told, `medjury_jury.json`.

All that a run knows of servers and of their ways to write an answer is told to it, and the question as
far as it is the same for every response; so a run's tables are the only ones.
"""

import json
import re
from importlib.resources import files
from typing import Any

from data.question import SLOT, prompt_in_order, with_lengths
from data.rubric import NO_CHECKLIST, NO_REFERENCE, Rubric
from data.rubrics.injection import tag_pattern
from jury import parse
from jury.api_protocols import (
    CHAT_STATUS,
    FILTER_CODES,
    IN_LITELLM,
    MESSAGES_STATUS,
    NO_CREDIT,
    NOTHING_WRITTEN,
    OVERFLOWS,
    QUOTA_CODES,
    SAYS_SO,
    SAYS_TOO_LONG,
    TOO_LARGE,
    UNSUPPORTED,
    chat_settings,
    http_failure,
    limit_name,
)
from jury.exports.bundle import PAGE, Export, bundle, derived, pieces, refuse_untold
from jury.panel import Juror
from jury.providers.registry import PROVIDERS, forms_of
from jury.task import AGAIN, REFUSED_FORM
from jury.window import CUT_WORDS, SMALLEST_WINDOW, WORDS_READ

FORMAT, FORMAT_VERSION = "medjury-jury", 1
PROGRAM, SETTINGS_FILE = "medjury_jury.py", "medjury_jury.json"
FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}


def engine(export: Export) -> dict[str, str]:
    """Return the engine, what the jury is told, and what was validated.

    Raises
    ------
    BadInput
        If other tools cannot ask a juror as it was validated.
    """
    refuse_untold(export.panel)
    program = (files("jury.exports") / PROGRAM).read_text("utf-8")
    told = json.dumps(settings(export), indent=2, ensure_ascii=False) + "\n"
    return {PROGRAM: program, SETTINGS_FILE: told, PAGE: derived(bundle(export))[PAGE]}


def settings(export: Export) -> dict[str, Any]:
    """Return what the exported program reads; `origin` goes along with every verdict."""
    rubric = export.rubric
    known_by = {"study": export.study, "rubric": rubric.name, "rubric_sha256": rubric.sha256}
    return {
        "origin": {"format": FORMAT, "format_version": FORMAT_VERSION} | known_by,
        "status": export.record["status"],
        "rubric": rubric.model_dump(mode="json"),
        "question": question(rubric),
        "form": form(rubric),
        "servers": servers(),
        "jurors": [exported_juror(juror) for juror in export.panel.juror],
    }


def question(rubric: Rubric) -> dict[str, Any]:
    """Return both questions about a response, with all filled in that is the same for every one."""
    fixed = {"criteria": rubric.criteria_text()}
    tags, none = tag_pattern(rubric.prompt), prompt_in_order(rubric.prompt, "none")
    return {
        "pieces": pieces(rubric.prompt, fixed | {"schema": rubric.schema_text()}),
        "shorter": pieces(none, fixed | {"schema": rubric.schema_text("none")})
        if SLOT in rubric.prompt
        else [],
        "missing": {"reference": NO_REFERENCE, "checklist": NO_CHECKLIST},
        "tags": tags and with_flags(tags),
        "again": AGAIN.format(reason="{reason}", scale=rubric.scale),
    }


def form(rubric: Rubric) -> dict[str, Any]:
    """Return which answer is asked for, and what models and servers write around it."""
    scale = rubric.scale
    return {
        "criteria": list(rubric.criteria),
        "word": rubric.word,
        "scale": str(scale),
        "min": scale.min,
        "max": scale.max,
        "schema": rubric.json_schema(),
        "bounded": with_lengths(rubric.json_schema()),
        "shorter": rubric.json_schema("none"),
        "reasoning": [
            [with_flags(pattern) for pattern in block]
            for block in zip(parse.OPENS, parse.CLOSES, strict=True)
        ],
        "leftovers": [with_flags(pattern) for pattern in (parse.UNOPENED, parse.LABEL)],
        "around": [with_flags(pattern) for pattern in (parse.COHERE, parse.TAG, parse.FENCE)],
        "turn_end": with_flags(parse.TURN_END),
    }


def servers() -> dict[str, Any]:
    """Return what servers call the ends of their answers, and what they say of a failure."""
    failures = {status: http_failure(status, {}, "") for status in range(400, 600)}
    codes = (*QUOTA_CODES, *FILTER_CODES, *OVERFLOWS)
    bodies = {code: json.dumps({"error": {"code": code}}) for code in codes}
    return {
        "statuses": {str(status): failure.status for status, failure in failures.items()},
        "passing": [status for status, failure in failures.items() if failure.transient],
        "codes": {code: http_failure(400, {}, body).status for code, body in bodies.items()},
        "no_credit": NO_CREDIT,
        "too_large": TOO_LARGE,
        "too_long": with_flags(SAYS_TOO_LONG),
        "in_litellm": IN_LITELLM,
        "refused_form": REFUSED_FORM,
        "unknown": with_flags(SAYS_SO),
        "unknown_codes": UNSUPPORTED,
        "nothing_written": NOTHING_WRITTEN,
        "least_read": {"tokens": SMALLEST_WINDOW, "a_word": WORDS_READ, "reason": CUT_WORDS},
        "ends": {"finish_reason": CHAT_STATUS, "stop_reason": MESSAGES_STATUS},
    }


def with_flags(pattern: re.Pattern[str]) -> str:
    """Return a regular expression with its flags in it."""
    letters = "".join(letter for letter, flag in FLAGS.items() if pattern.flags & flag)
    return f"(?{letters}){pattern.pattern}" if letters else pattern.pattern


def exported_juror(juror: Juror) -> dict[str, Any]:
    """Return how a juror is asked; the name of its key's variable, never the key."""
    names = ("name", "family", "provider", "base_url", "api_key_env", "temperature", "effort")
    sent: dict[str, Any] = {"model": juror.model, "max_tokens": juror.max_tokens}
    if juror.provider != "anthropic":
        own = juror.host == PROVIDERS["openai"].own_host  # which is told to keep no text
        sent = chat_settings(juror, model=juror.model, limit=limit_name(newest=own), store=not own)
    return {name: getattr(juror, name) for name in names} | {
        "forms": list(forms_of(juror)),
        "settings": sent,
        "profile": juror.profile(),
    }

"""The exported jury: `medjury_jury.py` and `medjury_reading.py` as they are, and `medjury_jury.json`.

All that a run knows of servers is told to it, and the question as far as it is the same for every
response; so a run's tables are the only ones.
"""

import json
import re
from importlib.resources import files
from typing import Any

from data.question import SLOT, every_score, prompt_in_order
from data.rubric import NO_CHECKLIST, NO_REFERENCE, Rubric
from data.rubrics.injection import tag_pattern
from jury.api_protocols import (
    CHAT_STATUS,
    FILTER_CODES,
    MESSAGES_STATUS,
    NOTHING_WRITTEN,
    OVERFLOWS,
    QUOTA_CODES,
    SAYS_SO,
    UNSUPPORTED,
    chat_body,
    chat_settings,
    http_failure,
    limit_name,
    messages_body,
)
from jury.call import Call, Form
from jury.exports.bundle import PAGE, Export, bundle, derived, pieces, refuse_untold
from jury.panel import Juror
from jury.parse import form_of
from jury.providers.registry import PROVIDERS, forms_of
from jury.task import AGAIN, REFUSED_FORM
from jury.window import CUT_WORDS, SMALLEST_WINDOW, WORDS_READ

FORMAT, FORMAT_VERSION = "medjury-jury", 1
PROGRAM, READER, SETTINGS_FILE = "medjury_jury.py", "medjury_reading.py", "medjury_jury.json"
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
    return {
        PROGRAM: program.replace("from jury.reading import", "from medjury_reading import"),
        READER: (files("jury") / "reading.py").read_text("utf-8"),
        SETTINGS_FILE: json.dumps(settings(export), indent=2, ensure_ascii=False) + "\n",
        PAGE: derived(bundle(export))[PAGE],
    }


def settings(export: Export) -> dict[str, Any]:
    """Return what the exported program reads; `origin` goes along with every verdict."""
    rubric = export.rubric
    known_by = {"study": export.study, "rubric": rubric.name, "rubric_sha256": rubric.sha256}
    return {
        "origin": {"format": FORMAT, "format_version": FORMAT_VERSION} | known_by,
        "status": export.record["status"],
        "rubric": rubric.model_dump(mode="json"),
        "question": question(rubric),
        "form": form_of(rubric),
        "servers": servers(),
        "jurors": [exported_juror(juror, rubric) for juror in export.panel.juror],
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
        "again": AGAIN.format(reason="{reason}", scores=every_score(rubric)),
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


def exported_juror(juror: Juror, rubric: Rubric) -> dict[str, Any]:
    """Return how a juror is asked; the name of its key's variable, never the key."""
    names = ("name", "family", "provider", "base_url", "api_key_env")
    forms, plain = forms_of(juror), rubric.json_schema()
    kinds = {"schema": plain, "unbounded": plain, "shorter": rubric.json_schema("none")}
    own = juror.host == PROVIDERS["openai"].own_host  # which is told to keep no text

    def body(form: Form, kind: str) -> dict[str, Any]:
        call = Call((), kinds[kind], form)
        if juror.provider == "anthropic":
            return messages_body(juror, call)
        limit = limit_name(newest=own)
        sent = chat_settings(juror, model=juror.model, limit=limit, store=not own)
        return chat_body(call, sent, lengths=kind != "unbounded")

    return {name: getattr(juror, name) for name in names} | {
        "forms": list(forms),
        "bodies": {form: {kind: body(form, kind) for kind in kinds} for form in forms},
        "profile": juror.profile(),
    }

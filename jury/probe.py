"""One tiny question to each juror: whether it is there, and what it supports."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from data.schema import Status, now
from jury.call import Answer, Call, Form, Message, Provider
from jury.cost import price
from jury.panel import Juror, Panel, keys
from jury.providers import open_provider

QUESTION = 'Answer with JSON only: {"test": {"explanation": "<one word>", "score": 3}}'
FORMS: tuple[Form, ...] = ("json_schema", "json_object", "text")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "test": {
            "type": "object",
            "properties": {
                "explanation": {"type": "string"},
                "score": {"type": "integer", "enum": [1, 2, 3, 4, 5]},
            },
            "required": ["explanation", "score"],
            "additionalProperties": False,
        }
    },
    "required": ["test"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """What one juror answered to a test question that holds nothing of the study.

    Attributes
    ----------
    schema
        The strictest form it answered in, empty if in none.
    temperature
        "accepted", "refused" (it answers only without), or "not set" in the panel.
    usd
        What the probe cost, None where no price is known.
    ends
        Day the model ends, where one is known.
    """

    juror: str
    host: str
    model: str
    returned_model: str
    status: Status
    reason: str
    schema: str
    temperature: str
    usd: float | None
    ends: date | None


def probe(panel: Panel, providers: Mapping[str, Provider] | None = None) -> list[ProbeRow]:
    """Return a row a juror: one tiny call each, and a few more where that one is refused.

    Raises
    ------
    BadPanel
        If a juror's key is missing.
    """
    secrets = keys(panel)
    return asyncio.run(_probe_all(panel, secrets, dict(providers or {})))


async def _probe_all(
    panel: Panel, secrets: Mapping[str, str], lines: Mapping[str, Provider]
) -> list[ProbeRow]:
    """Probe all jurors at once."""
    each = (_probe_one(one, secrets[one.name], lines.get(one.name)) for one in panel.juror)
    return list(await asyncio.gather(*each))


async def _probe_one(juror: Juror, key: str, line: Provider | None) -> ProbeRow:
    """Probe one juror, without its temperature if it refuses with it."""
    forms = FORMS if juror.form == "auto" else (juror.form,)
    answer, form, usd = await _try(juror, key, forms, line)
    temperature = "not set" if juror.temperature is None else "accepted"
    if juror.temperature is not None and answer.http == 400 and line is None:
        bare = juror.model_copy(update={"temperature": None})
        again, form, more = await _try(bare, key, forms, None)
        usd = None if usd is None or more is None else usd + more
        if again.status == Status.OK:
            temperature = "refused"
            answer = replace(again, reason="answers only without a temperature: leave it out")
    return ProbeRow(
        juror=juror.name,
        host=juror.host,
        model=juror.model,
        returned_model=answer.returned_model,
        status=answer.status,
        reason=answer.reason,
        schema=form if answer.status == Status.OK else "",
        temperature=temperature if answer.status == Status.OK else "",
        usd=usd,
        ends=juror.end(),
    )


async def _try(
    juror: Juror, key: str, forms: tuple[Form, ...], line: Provider | None
) -> tuple[Answer, Form, float | None]:
    """Return the first answer down the forms, the form it came in, and what all tries cost."""
    provider = line or open_provider(juror, key)
    spent: float | None = 0.0
    try:
        for form in forms:
            answer = await provider.complete(Call((Message("user", QUESTION),), SCHEMA, form))
            usd = price(juror, answer.usage, now()).usd if answer.http == 200 else 0.0
            spent = None if spent is None or usd is None else spent + usd
            if answer.status == Status.OK or answer.http not in (400, 422, 500, 501):
                break
    finally:
        await provider.close()
    return answer, form, spent

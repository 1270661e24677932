"""One juror at an address of the loopback, and its answers over the SDK's real client."""

import asyncio
from typing import Any

from jury.call import Answer, Call, Turn
from jury.panel import Juror
from jury.providers.registry import open_provider

CALL = Call((Turn("user", "A case."),), {"type": "object", "properties": {}})


def juror(provider: str, url: str, **settings: Any) -> Juror:
    body = {"name": "j", "provider": provider, "model": "m", "family": "f", "base_url": url}
    return Juror.model_validate(body | settings)


def answers(
    one: Juror, number: int = 1, key: str = "the-key", *, call: Call = CALL
) -> list[Answer]:
    """Return the answers to one call made a number of times, one after another, on one line."""

    async def ask() -> list[Answer]:
        line = open_provider(one, key, 5.0)
        try:
            return [await line.complete(call) for _ in range(number)]
        finally:
            await line.close()

    return asyncio.run(ask())

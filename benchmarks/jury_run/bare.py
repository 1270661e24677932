"""One trial of the SDK alone, nothing parsed or stored: PORT CALLS CONCURRENCY FOLDER."""

import asyncio
import json
import sys
import time

from openai import AsyncOpenAI
from peak import peak_mb

PROMPT = "The patient reports pain in the left knee since May, worse on stairs. " * 90


async def main(port: int, calls: int, concurrency: int) -> None:
    """Make all calls and print how long they took."""
    client = AsyncOpenAI(api_key="none", base_url=f"http://127.0.0.1:{port}/v1", max_retries=0)
    places = asyncio.Semaphore(concurrency)

    async def one() -> None:
        async with places:
            await client.chat.completions.create(
                model="stub", messages=[{"role": "user", "content": PROMPT}], max_tokens=1500
            )

    began = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(calls)))
    span = time.perf_counter() - began
    print(json.dumps({"span": span, "mb": peak_mb()}))


if __name__ == "__main__":
    asyncio.run(main(*(int(one) for one in sys.argv[1:4])))

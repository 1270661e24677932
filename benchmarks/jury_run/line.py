"""One trial of the jury's own line, nothing parsed or stored: PORT CALLS CONCURRENCY FOLDER.

The same SDK, transport and event loop as a jury run: what a run cannot be faster than.
"""

import asyncio
import json
import sys
import time

from bare import PROMPT
from ours import _juror
from peak import peak_mb

from jury.call import Call, Turn
from jury.panel import Juror
from jury.providers.registry import open_provider
from jury.run import OPENING_SECONDS, run_loop


async def main(port: int, calls: int, concurrency: int) -> None:
    """Make all calls, the first ones one after another as a run does, and print how long it took."""
    began = time.perf_counter()
    line = open_provider(Juror.model_validate(_juror("a", port)), "none")
    call = Call((Turn("user", PROMPT),), {"type": "object"})
    left = iter(range(calls))

    async def work(place: int) -> None:
        await asyncio.sleep(OPENING_SECONDS * place / concurrency)
        for _ in left:
            answer = await line.complete(call)
            if answer.http != 200:
                raise SystemExit(answer.reason)

    await asyncio.gather(*(work(place) for place in range(concurrency)))
    print(json.dumps({"span": time.perf_counter() - began, "mb": peak_mb()}))
    await line.close()


if __name__ == "__main__":
    run_loop(main(*(int(one) for one in sys.argv[1:4])))

"""The jury's endpoint, in a process of its own: `jurors.py LOG SECONDS` prints its port.

Each answer is a verdict with a number of its own, and stands in LOG, one JSON object a line,
before it is sent: {"verdict", "juror", "response", "scores"}.
"""

import json
import random
import re
import sys
import threading
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "tests"))
from kit.jurors import Do, Seen, Stub, verdict

NAMED = re.compile(r"Number of the note: ([\w-]+)\.")


def main(log: Path, seconds: float) -> None:
    """Answer until killed."""
    draw = random.Random(0)
    with log.open("w", buffering=1, encoding="utf-8") as told, Stub() as stub:
        count = 0

        def answer(seen: Seen) -> Do:
            nonlocal count
            count += 1
            body = json.loads(verdict(seen))
            scores = {name: draw.randint(1, 5) for name in body}
            named = NAMED.findall(seen.prompt)
            one = {"verdict": count, "juror": seen.model, "response": named, "scores": scores}
            told.write(json.dumps(one) + "\n")
            stub.seen.clear()  # they hold the prompts, and an hour of them fills the memory
            said = {
                name: {"explanation": f"Verdict {count}.", "score": score}
                for name, score in scores.items()
            }
            return Do(text=json.dumps(said), seconds=seconds)

        stub.script = answer
        print(stub.port, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))

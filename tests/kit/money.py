"""Jurors at a price whose vendor bills more than it says, and reports of tokens that cannot be true."""

import json
import math
import os
import random
import subprocess
import sys
from dataclasses import dataclass, field

from jury.panel import Panel
from kit.jurors import Do, Seen, openai_body, verdict
from kit.jury_runs import JurorServer, panel_at
from kit.reference_study import NO

USD_IN, USD_OUT = 10.0, 100.0  # US dollars a million tokens
MOST_OUT = 200
PRICES = {"usd_per_million_in": USD_IN, "usd_per_million_out": USD_OUT, "max_tokens": MOST_OUT}
NEVER = [-1_000_000, 10**30, math.nan, math.inf, True, 12.5, "12", [7], {}]


def bill(tokens_in: int, tokens_out: int) -> float:
    return (tokens_in * USD_IN + tokens_out * USD_OUT) / 1e6


def most(seen: Seen) -> float:
    """Return what a vendor bills at most who never says: a token a byte of the texts, and all it may write."""
    texts = "".join(f"{turn['content']}" for turn in seen.body["messages"])
    return bill(len(texts.encode()), MOST_OUT)


@dataclass
class Vendor:
    """Ends calls in every way there is, and keeps what it may bill for each of them, by model."""

    seed: int
    bills: dict[str, float] = field(default_factory=dict)

    def __call__(self, seen: Seen) -> Do:
        """Answer a call, in one of nine ways."""
        draw = random.Random(f"{self.seed} {seen.number}")  # noqa: S311 seeded on purpose
        tokens = (draw.randrange(200, 900), draw.randrange(20, MOST_OUT))
        words = NO if '"absent"' in seen.prompt else None
        paid, silent = Do(words, tokens=tokens), Do(words, usage=False)
        ways: list[tuple[Do, float]] = [
            (paid, bill(*tokens)),
            (paid, bill(*tokens)),
            (silent, most(seen)),
            (lying(seen, draw.choice(NEVER), words), most(seen)),
            (Do(drop=True), most(seen)),
            (Do(status=504), most(seen)),
            (Do("no JSON", tokens=tokens), bill(*tokens)),
            (Do(status=500), 0.0),
            (Do(status=429), 0.0),
        ]
        do, usd = draw.choice(ways)
        self.bills[seen.model] = self.bills.get(seen.model, 0.0) + usd
        return Do(**{**vars(do), "seconds": draw.uniform(0, 0.01)})


def lying(seen: Seen, count: object, words: str | None = None, **more: object) -> Do:
    """Return a good answer whose tokens are reported as some value."""
    whole = openai_body(seen, Do(), verdict(seen) if words is None else words)
    usage = {"prompt_tokens": 500, "completion_tokens": count} | more
    return Do(body=json.dumps(whole | {"usage": usage}))


def panel(stub: JurorServer, *names: str) -> Panel:
    return panel_at(stub, *names, **PRICES)


def started(url: str, panel: str, *words: str) -> subprocess.Popen[str]:
    """Start `medjury jury run` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "medjury", "jury", "run", panel, *words],
        env=os.environ | {"MEDJURY_DB": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

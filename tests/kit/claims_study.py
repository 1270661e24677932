"""A study whose jurors see only how well a response reads, and loopback jurors that split and judge.

A note states findings of its source, some of them wrong. Clinicians count the wrong ones; the plain
jurors let them pass and go by the note's style. Judged claim by claim, each is looked up in the source. With
`blind_judges` judging sees no more than the plain verdict does, so that claims gain nothing.
"""

import json
import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Engine

from calibration.values import AnalysisOptions
from data.importers.rows import Origin, RatingRow
from data.person import OPERATOR
from data.queries.claims import claims_on
from data.schema import Kind
from data.store import import_ratings
from data.store.claims import correct_claims
from jury.claims_run import ClaimsRun, run_claims
from jury.panel import Panel
from kit.jurors import Do, Seen, Stub
from kit.jury_runs import HASTY, panel_at
from kit.jury_runs import run as run_plain
from kit.studies import HEAD, import_file
from medjury.services.claims import ClaimsFigures, ClaimsQuestion, claims_figures, jury_of

CRITERIA = ("accuracy", "completeness", "clarity")
SPLIT = "Split the response below"
FINDINGS = 8
SPLIT_OF = re.compile(r"<response>\nNote (\d+), style (\d)\. (.*)\n</response>", re.DOTALL)
STATED = re.compile(r"Finding (\d) is (\d)")
CLAIM = re.compile(r"^(claim_\d+): Finding (\d) is (\d)", re.MULTILINE)
IN_SOURCE = re.compile(r"Finding (\d) was (\d)")


@dataclass(frozen=True)
class Note:
    """A response: its number, how well it reads, and the value it states for each finding."""

    number: int
    style: int
    stated: tuple[int, ...]
    true: tuple[int, ...]

    @property
    def source(self) -> str:
        """Return its source."""
        return " ".join(f"Finding {n} was {value}." for n, value in enumerate(self.true))

    @property
    def text(self) -> str:
        """Return its text."""
        told = " ".join(f"Finding {n} is {value}." for n, value in enumerate(self.stated))
        return f"Note {self.number}, style {self.style}. {told}"

    @property
    def wrong(self) -> int:
        """Return how many findings are wrong."""
        return sum(a != b for a, b in zip(self.stated, self.true, strict=True))


def notes(seed: int, count: int) -> list[Note]:
    """Return made responses, from none to all of whose findings are wrong."""
    random = np.random.default_rng(seed)
    made = []
    for number in range(count):
        true = random.integers(0, 9, FINDINGS)
        is_wrong = random.permutation(FINDINGS) < random.integers(0, FINDINGS + 1)
        stated = np.where(is_wrong, true + 1, true)
        made.append(
            Note(number, int(random.integers(1, 6)), tuple(map(int, stated)), tuple(map(int, true)))
        )
    return made


def drawn(*parts: object) -> int:
    """Return -1, 0 or 1 with probabilities 0.2, 0.6 and 0.2, from a hash."""
    share = int(sha256(repr(parts).encode()).hexdigest()[:8], 16) / 16**8
    return -1 if share < 0.2 else 1 if share > 0.8 else 0


def fill(engine: Engine, folder: Path, seed: int, count: int = 60, author: str = "m") -> list[Note]:
    """Import responses, one an instance, that two clinicians rated."""
    made = notes(seed, count)
    lines = [
        HEAD,
        *(f'i{n.number},visits,"{n.source}",Write.,,r{n.number},{author},"{n.text}"' for n in made),
    ]
    path = folder / "responses.csv"
    path.write_text("\n".join(lines), "utf-8")
    import_file(engine, path)
    rows = []
    for note in made:
        right = 5 - round(4 * note.wrong / FINDINGS)
        for number, who in enumerate(("dr_a", "dr_b")):
            for name in CRITERIA:
                worth = right if name == "accuracy" else note.style
                score = int(np.clip(worth + drawn(note.number, who, seed, name), 1, 5))
                origin = Origin(Path("made"), number)
                rows.append(
                    RatingRow(origin, f"r{note.number}", who, Kind.CLINICIAN, name, f"{score}")
                )
    import_ratings(engine, rows)
    return made


def juror(seen: Seen, *, blind_judges: bool = False) -> Do:
    """Answer as a splitter, as a juror of claims, or as a plain juror who goes by the style."""
    prompt = seen.prompt
    if prompt.startswith(SPLIT):
        return Do(text=split(prompt))
    if "<claims>\n" in prompt:
        return Do(text=judged(prompt, seen.model, blind=blind_judges))
    style = int(re.findall(r"<response>\nNote \d+, style (\d)", prompt)[-1])
    digest = sha256(prompt.encode()).hexdigest()
    given = {name: int(np.clip(style + drawn(digest, seen.model, name), 1, 5)) for name in CRITERIA}
    return Do(
        text=json.dumps({name: {"explanation": "", "score": given[name]} for name in CRITERIA})
    )


def split(prompt: str) -> str:
    """Return a splitter's answer: each finding of the response."""
    told = SPLIT_OF.search(prompt)
    assert told is not None
    texts = [f"Finding {n} is {value}" for n, value in STATED.findall(told[3])]
    return json.dumps({"claims": [{"claim": text, "quote": text} for text in texts]})


def judged(prompt: str, who: str, *, blind: bool = False) -> str:
    """Return a juror's answer on each claim, looked up in the source; drawn from a hash where blind."""
    truth = dict(IN_SOURCE.findall(prompt))
    answers = {}
    for name, finding, value in CLAIM.findall(prompt.partition("<claims>\n")[2]):
        right = truth[finding] == value
        if blind:
            right = int(sha256(f"{prompt} {who} {name}".encode()).hexdigest()[:8], 16) % 2 == 0
        evidence = f"Finding {finding} was {truth[finding]}"
        answers[name] = {"evidence": evidence, "score": 1 if right else 2}
    return json.dumps(answers)


PRICED = {"usd_per_million_in": 1.0, "usd_per_million_out": 1.0}


def panel_of(stub: Stub, *names: str, **claims: Any) -> Panel:
    """Return a panel of jurors at the stub, the first of whom splits."""
    body = panel_at(stub, *(names or ("a", "b")), **PRICED).model_dump(by_alias=True)
    body["claims"] = {"splitter": names[0] if names else "a"} | claims
    return Panel.model_validate(body)


def judged_run(engine: Engine, panel: Panel, **options: Any) -> ClaimsRun:
    """Have a panel give its plain verdicts, then split and judge."""
    run_plain(engine, panel)
    return run_claims(engine, panel, patience=HASTY, **options)


def figures(engine: Engine, panel: Panel, *, composite: bool = False) -> ClaimsFigures:
    """Return what `analyse claims` says of a panel."""
    return claims_figures(
        engine, ClaimsQuestion(jury_of(panel), AnalysisOptions(reps=200), composite)
    )


def correct(engine: Engine, response: int, drop: int = 1) -> None:
    """Let a coordinator take the last claims of a response out of its list."""
    [judged] = claims_on(OPERATOR, engine, response)
    rows = [one.model_dump() for one in judged.claims[:-drop]]
    assert correct_claims(OPERATOR, engine, response, "a", rows)
    assert not correct_claims(OPERATOR, engine, response, "a", rows)

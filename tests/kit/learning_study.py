"""A study whose jurors misread one criterion in a planted way, and jurors on the loopback that do.

Clinicians hold an omitted dose against accuracy and completeness; the jurors let it pass unless their prompt says that it
counts. What a response is worth stands in its text, and noise is drawn from hashes, so that the true
gain is known from as many responses as one likes to make.
"""

import json
import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
from sqlalchemy import Engine

from data.importers.rows import Origin, RatingRow
from data.schema import Kind
from data.study.ratings import import_ratings
from kit.jurors import Do, Seen
from kit.studies import HEAD, import_file

CRITERIA = ("accuracy", "completeness", "clarity")
HELD = CRITERIA[:2]  # what clinicians hold an omitted dose against
RULE = "Take two points off accuracy and completeness where the dose is omitted."
COMMENT = "the dose is omitted"
PROPOSAL = "Language models rate responses"
RESPONSE = re.compile(r"<response>\nNote (\d+): quality (\d), dose (given|omitted)\.")
SHOWN = re.compile(r"Note (\d+): quality")


@dataclass(frozen=True)
class Note:
    """A response: its number, what it is worth, and whether the dose is omitted."""

    number: int
    quality: int
    omitted: bool

    @property
    def text(self) -> str:
        """Return its text."""
        return f"Note {self.number}: quality {self.quality}, dose {'omitted' if self.omitted else 'given'}."


def notes(seed: int, count: int) -> list[Note]:
    """Return made responses; in two of five the dose is omitted."""
    random = np.random.default_rng(seed)
    qualities = random.integers(2, 6, count)
    return [Note(n, int(qualities[n]), bool(random.random() < 0.4)) for n in range(count)]


def drawn(*parts: object) -> int:
    """Return -1, 0 or 1 with probabilities 0.2, 0.6 and 0.2, from a hash."""
    share = int(sha256(repr(parts).encode()).hexdigest()[:8], 16) / 16**8
    return -1 if share < 0.2 else 1 if share > 0.8 else 0


def scores(note: Note, who: str, salt: object, knows: bool) -> dict[str, int]:
    """Return what a clinician, or a juror who knows the rule or not, gives."""
    off = {name: 2 if knows and name in HELD and note.omitted else 0 for name in CRITERIA}
    worth = {name: note.quality - off[name] + drawn(note, who, salt, name) for name in CRITERIA}
    return {name: int(np.clip(score, 1, 5)) for name, score in worth.items()}


def fill(
    engine: Engine, folder: Path, seed: int, count: int = 60, *, comments: bool = True
) -> list[Note]:
    """Import responses, one an instance, that two clinicians rated; comments say the cause, or nothing."""
    made, path = notes(seed, count), folder / "responses.csv"
    lines = [f'i{n.number},visits,Case {n.number}.,Write.,,r{n.number},m,"{n.text}"' for n in made]
    path.write_text("\n".join([HEAD, *lines]), "utf-8")
    import_file(engine, path)
    import_ratings(engine, [row for note in made for row in _ratings(note, seed, comments)])
    return made


def _ratings(note: Note, seed: int, comments: bool) -> list[RatingRow]:
    cause = {"accuracy": COMMENT} if comments and note.omitted else {}
    return [
        RatingRow(origin, f"r{note.number}", who, Kind.CLINICIAN, name, f"{score}", said)
        for origin, who in ((Origin(Path("made"), n), f"dr_{'ab'[n]}") for n in (0, 1))
        for name, score in scores(note, who, seed, knows=True).items()
        for said in [cause.get(name, "as I see it")]
    ]


def juror(seen: Seen) -> Do:
    """Answer as a juror does, or propose what the comments of the cases say."""
    if seen.prompt.startswith(PROPOSAL):
        return Do(text=proposal(seen.prompt), tokens=(len(seen.prompt) // 4, 100))
    found = RESPONSE.search(seen.prompt)
    assert found is not None
    note = Note(int(found[1]), int(found[2]), found[3] == "omitted")
    words = seen.prompt.partition("Material:")[0]
    digest = sha256(words.encode()).hexdigest()  # with other words the noise is another
    given = scores(note, seen.model, digest, knows=RULE in words)
    said = {name: {"explanation": "", "score": score} for name, score in given.items()}
    return Do(text=json.dumps(said))


def proposal(prompt: str) -> str:
    """Return a proposal: the rule where a comment names the cause, else words that say nothing."""
    cases = prompt.partition("<cases>")[2]
    words = RULE if COMMENT in cases else f"Rate with care ({len(cases)})."
    anchors = dict.fromkeys(CRITERIA, dict.fromkeys("12345", ""))
    guidance = dict.fromkeys(CRITERIA, "") | {"accuracy": words}
    return json.dumps({"why": "", "guidance": guidance, "anchors": anchors})


def true_gain(jurors: tuple[str, ...], count: int = 4_000) -> float:
    """Return by how many points the rule brings these jurors' mean to the clinicians', on new responses."""
    gains = []
    for note in notes(99, count):
        clinicians = _mean([scores(note, who, "new", knows=True) for who in ("dr_a", "dr_b")])
        far = [
            abs(_mean([scores(note, who, f"new {knows}", knows) for who in jurors]) - clinicians)
            for knows in (False, True)
        ]
        gains.append(far[0] - far[1])
    return float(np.mean(gains))


def _mean(given: list[dict[str, int]]) -> float:
    return float(np.mean([list(one.values()) for one in given]))

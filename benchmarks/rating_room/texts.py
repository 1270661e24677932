"""Made-up sources of 1,500 words and responses of 300: what a rater of long notes has before them.

Nothing here comes from a data set. The words are a clinic's; the sense is nobody's.
"""

import random
from dataclasses import dataclass

SOURCE_WORDS, RESPONSE_WORDS = 1500, 300
COMPLAINTS = (
    "knee pain on the stairs",
    "a dry cough at night",
    "swelling of both ankles",
    "headaches behind the left eye",
    "burning when passing water",
    "tiredness since the spring",
    "a rash on the forearm",
    "palpitations after coffee",
)
FINDINGS = (
    "the lungs are clear",
    "there is a soft systolic murmur",
    "the abdomen is not tender",
    "both calves are equal",
    "the knee is warm but stable",
    "the pupils react equally",
    "capillary refill is two seconds",
)
DRUGS = ("metformin", "ramipril", "atorvastatin", "apixaban", "omeprazole", "levothyroxine")
QUESTIONS = (
    "How long have you had {complaint}?",
    "Do you still take {drug}, {dose} milligrams {times}?",
    "Has anyone in the family had {complaint}?",
    "Did {complaint} wake you last night?",
    "Let me look: {finding}. Does that hurt?",
)
ANSWERS = (
    "About {number} weeks, maybe a little longer, and worse in the morning.",
    "Yes, but I leave out {drug} when I travel, perhaps {number} days a month.",
    "No fever, no; {complaint} comes and goes, and I sleep badly with it.",
    "My sister had something like it, and they gave her {drug}.",
    "It is better than last year, I can walk {number} minutes before I stop.",
)
SENTENCES = (
    "The patient reports {complaint} for {number} weeks.",
    "On examination {finding}, and {other}.",
    "Continue {drug} {dose} mg {times}; review in {number} weeks.",
    "No fever, no loss of weight, no {complaint} at rest.",
    "If {complaint} gets worse, the patient is to come back at once.",
)


@dataclass(frozen=True, slots=True)
class Text:
    """One thing to rate: what the response was made from, and the response."""

    name: str
    source: str
    response: str


def texts(count: int, seed: int = 0) -> list[Text]:
    """Return so many sources with a response each; the same seed gives the same."""
    draw = random.Random(seed)
    return [Text(f"text-{n:04}", _dialogue(draw), _note(draw)) for n in range(count)]


def _dialogue(draw: random.Random) -> str:
    """Return a visit as it was spoken."""
    lines: list[str] = []
    words = 0
    while words < SOURCE_WORDS:
        speaker, said = (("doctor", QUESTIONS), ("patient", ANSWERS))[len(lines) % 2]
        line = f"[{speaker}] {' '.join(_filled(draw, said) for _ in range(draw.randint(1, 3)))}"
        lines.append(line)
        words += len(line.split())
    return "\n".join(lines)


def _note(draw: random.Random) -> str:
    """Return a note as a model might write it."""
    note = ""
    headings = ("SUBJECTIVE", "OBJECTIVE", "ASSESSMENT", "PLAN")
    for heading in headings:
        body: list[str] = []
        while sum(len(one.split()) for one in body) < RESPONSE_WORDS // len(headings):
            body.append(_filled(draw, SENTENCES))
        note += f"{heading}\n{' '.join(body)}\n\n"
    return note.strip()


def _filled(draw: random.Random, sentences: tuple[str, ...]) -> str:
    return draw.choice(sentences).format(
        complaint=draw.choice(COMPLAINTS),
        drug=draw.choice(DRUGS),
        dose=draw.choice((5, 10, 20, 40, 500)),
        times=draw.choice(("once a day", "twice a day", "at night")),
        finding=draw.choice(FINDINGS),
        other=draw.choice(FINDINGS),
        number=draw.randint(2, 30),
    )

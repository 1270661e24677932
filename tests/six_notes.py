"""Six notes to rate, and what two clinicians and two jurors make of them."""

import re

from stub_llm import Do, Seen, verdict

MODELS = ("gpt-9-secret", "llama-hidden")
# low accuracy asks for a line of comment: none here
READINGS = {"dr-one": ("313", "344", "554", "322", "433", "545")}
READINGS["dr-two"] = ("332", "434", "545", "321", "543", "455")
VERDICTS = {"a-model": (2, 3, 5, 1, 4, 4), "b-model": (1, 4, 4, 2, 3, 5)}
NOTE = re.compile(r"Note (\d) of the visit")


def responses() -> str:
    """Return a file of six responses, two to each of three dialogues."""
    rows = ["instance_id,benchmark,context,prompt,reference,response_id,model,response"]
    rows += [
        f"inst-hidden-{n // 2},visits,[doctor] Any fever? Visit {n // 2}.,Write the note.,,"
        f"resp-hidden-{n},{MODELS[n % 2]},Note {n} of the visit: no fever."
        for n in range(6)
    ]
    return "\n".join(rows) + "\n"


def juror(seen: Seen) -> Do:
    """Score a note as the juror finds it; anything else, as in a probe, is a three."""
    found = NOTE.search(seen.prompt)
    return Do(text=verdict(seen, VERDICTS[seen.model][int(found[1])])) if found else Do()

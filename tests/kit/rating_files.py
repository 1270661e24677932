"""Files of responses and ratings: of several models, and of many months."""

from datetime import date

import numpy as np

from kit.studies import HEAD

MODELS = {"model-one": 4, "model-two": 3, "model-three": 2}


def model_responses(benchmark: str = "aci_bench", n: int = 8) -> str:
    rows = [
        f"i{i},{benchmark},[doctor] Case {i}?,Write the note.,,{model}-{i},{model},Note {i} {model}\n"
        for i in range(n)
        for model in MODELS
    ]
    return HEAD + "\n" + "".join(rows)


def model_ratings(n: int = 8, juror: bool = True, lenient: int = 0) -> str:
    """Two clinicians on the first six instances, a juror on all; it is kind to the third model."""
    head = "response_id,rater,kind,accuracy,completeness,clarity\n"
    rows = []
    for i in range(n):
        for model, points in MODELS.items():
            name, turn = f"{model}-{i}", (i + points) % 2
            if i < 6:
                rows += [
                    f"{name},{who},clinician,{points},{points},{points + turn}\n" for who in "ab"
                ]
            own = min(5, points + (lenient if model == "model-three" else 0))
            if juror:
                rows.append(f"{name},gpt,juror,{own},{own},{max(1, own - turn)}\n")
    return head + "".join(rows)


CRITERIA = ("accuracy", "completeness", "clarity")


def monthly_responses(n: int) -> str:
    rows = [f"i{k},visits,note,task,r{k},model-one,text {k}" for k in range(n)]
    return "\n".join(["instance_id,benchmark,context,prompt,response_id,model,response", *rows])


def monthly_ratings(
    months: int, a_month: int, good: int, again: bool = False, seed: int = 0
) -> str:
    """Return ratings of so many months from January 2025; the jurors guess after `good` months."""
    random = np.random.default_rng(seed)
    rows = [f"response_id,rater,kind,{','.join(CRITERIA)},rated_at,replicate"]

    def add(k: int, who: str, kind: str, around: float, sd: float, day: str, of: int = 0) -> None:
        scores = np.clip(np.round(around + sd * random.normal(size=3)), 1, 5)
        rows.append(f"r{k},{who},{kind},{','.join(map(str, scores))},{day}T09:00:00Z,{of}")

    for k in range(months * a_month):
        month, quality = k // a_month, 3 + random.normal()
        day = date(2025 + month // 12, month % 12 + 1, 1 + k % 28).isoformat()
        for doctor in random.permutation(4)[:2]:
            add(k, f"dr{doctor}", "clinician", quality, 0.5, day)
        for juror in ("gpt", "claude"):
            add(k, juror, "juror", quality if month < good else 3, 0.6, day)
            if again and month == 0:
                add(k, juror, "juror", 3, 1.2, "2025-12-01", 1)
    return "\n".join(rows)

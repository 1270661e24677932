"""Studies made by commands: one small enough to check by eye, and some that jurors rated."""

from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from sqlalchemy import Engine

from calibration.details import StudyContext, details
from calibration.detection import detection
from calibration.reliability import clinician_reliability
from calibration.report.content import Content, Study, criterion_rows, paired_means
from calibration.subgroups import subgroup_rows
from calibration.table import agreement_rows
from calibration.values import AnalysisOptions
from calibration.verdict import decisions
from data.importers.responses import ResponseFile
from data.importers.table import TableFile
from data.rubric import read_rubric
from data.study.responses import import_responses

Run = Callable[..., tuple[int, str, str]]
"""Run one command; return its exit code, output and messages."""

Write = Callable[[str, str], Path]
"""Write a file into the test's folder; return its path."""

HEAD = "instance_id,benchmark,context,prompt,reference,response_id,model,response"
COLUMNS = tuple(HEAD.split(","))

RESPONSES = """instance_id,benchmark,context,prompt,reference,response_id,model,response
i1,visits,"[doctor] Any fever?
[patient] No.",Write the note.,No fever.,r11,model-one,Patient denies fever.
i1,visits,"[doctor] Any fever?
[patient] No.",Write the note.,No fever.,r12,model-two,Patient has fever.
i2,visits,[doctor] Pain? [patient] Mild.,Write the note.,,r21,model-one,Mild pain.
i2,visits,[doctor] Pain? [patient] Mild.,Write the note.,,r22,model-two,No pain.
"""


def import_small(engine: Engine, folder: Path) -> None:
    """Import it on the generic rubric, from a file in a folder."""
    path = folder / "responses.csv"
    path.write_text(RESPONSES, "utf-8")
    import_file(engine, path)


def import_file(engine: Engine, path: Path) -> None:
    import_responses(engine, ResponseFile(TableFile(path)), lambda _: read_rubric("generic"))


AUTHOR = "zz-author-model"

CLINICIANS = ("dr-a", "dr-b", "dr-c")


def table_rows(scores, reps=20):
    return agreement_rows(scores, AnalysisOptions(reps=reps))


def content_of(scores, reps=20, **facts):
    """Return what a report of some scores shows."""
    options = AnalysisOptions(reps=reps)
    rows = table_rows(scores, reps)
    reference = clinician_reliability(scores, options)
    jurors = {name: {} for name in scores.raters("juror")}
    of = {"name": "house", "version": "1", "sha256": "ab" * 32}
    rubrics = [
        SimpleNamespace(
            name=name,
            rubric=SimpleNamespace(
                **of, criteria=shape.criteria, scales=f"{shape.low}-{shape.high}"
            ),
        )
        for name, shape in scores.rubrics.items()
    ]
    known = {"made": "2026-11-21 12:00 UTC", "options": options}
    known |= {"jurors": jurors, "needed": len(jurors), "rubrics": rubrics}
    return Content(
        rows=rows,
        decisions=decisions(rows),
        details=details(scores, options, StudyContext(reference=reference)),
        criteria=criterion_rows(scores, options),
        paired=paired_means(scores, options),
        study=Study(**known | facts),
        detection=detection(scores, options),
        subgroups=subgroup_rows(scores, options),
    )


def bring_in(run: Run, folder: Path, responses: Sequence[str], ratings: Sequence[str]) -> None:
    """Import the lines of a file of responses, and of one of ratings."""
    for command, lines in (("study import", responses), ("rate ratings", ratings)):
        path = folder / f"{command}.csv"
        path.write_text("\n".join(lines) + "\n", "utf-8")
        code, _, said = run(*command.split(), str(path))
        assert code == 0, said


def rated(
    run: Run, folder: Path, jurors=("gpt", "llama"), benchmark="visits", n=30, first=0
) -> None:
    """Import n instances, the first of that number, that three clinicians and some jurors rated."""
    random = np.random.default_rng(5)
    texts = [HEAD]
    scores = ["response_id,rater,kind,criterion,score"]
    for i in range(first, first + n):
        texts.append(f'i{i},"{benchmark}",Secret pain.,Write.,Word.,r{i},{AUTHOR},Secret words.')
        for name in (*CLINICIANS, *jurors):
            kind = "clinician" if name in CLINICIANS else "juror"
            for criterion in ("accuracy", "completeness", "clarity"):
                score = int(np.clip(round(1 + i % 5 + random.normal(0, 0.8)), 1, 5))
                scores.append(f'r{i},"{name}",{kind},{criterion},{score}')
    bring_in(run, folder, texts, scores)


THREE_JURORS = ("alpha", "beta", "gamma")


def rated_by_three(run: Run, folder: Path, n: int = 30, lost: float = 0.0) -> None:
    """Import n responses of two benchmarks; gamma lacks one score, and a share `lost` besides."""
    random, misses = np.random.default_rng(0), np.random.default_rng(1)
    lines, scores = [HEAD], ["response_id,rater,kind,accuracy,completeness,clarity"]
    for i in range(n):
        benchmark = "visits" if i < 0.6 * n else "notes"
        lines.append(f"i{i},{benchmark},c {i},Write.,,r{i},m,said {i}")
        quality = random.normal(3, 0.9)
        for rater, noise in (("dr_a", 0.6), ("dr_b", 0.6), *zip(THREE_JURORS, (0.5, 0.8, 1.1))):  # noqa: B905  # fixed
            if rater == "gamma" and (i == 3 or misses.random() < lost):
                continue
            own = np.clip(np.rint(quality + random.normal(0, noise, 3)), 1, 5).astype(int)
            kind = "clinician" if rater.startswith("dr") else "juror"
            scores.append(f"r{i},{rater},{kind},{own[0]},{own[1]},{own[2]}")
    bring_in(run, folder, lines, scores)


def fill(
    run: Run, folder: Path, rated: int = 150, jurors: tuple[str, ...] = ("gpt", "llama")
) -> None:
    """Make 200 responses, one of each instance; the first juror missed response r7."""
    random = np.random.default_rng(0)
    rows, scores = [HEAD], ["response_id,rater,kind,accuracy,completeness,clarity"]
    for n in range(200):
        rows.append(f"i{n},visits,Pain.,Write.,,r{n},secret-{n % 3},Word {n}")
        quality = 3.2 + random.normal()
        doctors = [("dr-a", "clinician"), ("dr-b", "clinician")] if n < rated else []
        for rater, kind in [*doctors, *((name, "juror") for name in jurors)]:
            own = np.clip(np.round(quality + 0.5 * random.normal(size=3)), 1, 5)
            if (n, rater) != (7, "gpt"):
                scores.append(f"r{n},{rater},{kind}," + ",".join(f"{one:g}" for one in own))
    bring_in(run, folder, rows, scores)


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

"""Studies made by commands: one small enough to check by eye, and some that jurors rated."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from sqlalchemy import Engine

from calibration.details import StudyContext, details
from calibration.detection import detection
from calibration.reliability import clinician_reliability
from calibration.report.content import (
    Content,
    Study,
    criterion_rows,
    paired_means,
)
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

COLUMNS = (
    "instance_id",
    "benchmark",
    "context",
    "prompt",
    "reference",
    "response_id",
    "model",
    "response",
)
HEAD = ",".join(COLUMNS)

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
    """Import a file of responses on the generic rubric."""
    import_responses(engine, ResponseFile(TableFile(path)), lambda _: read_rubric("generic"))


AUTHOR = "zz-author-model"

CLINICIANS = ("dr-a", "dr-b", "dr-c")


def table_rows(scores, reps=20):
    """Return the rows of the agreement table."""
    return agreement_rows(scores, AnalysisOptions(reps=reps))


def content_of(scores, reps=20, **facts):
    """Return what a report of some scores shows."""
    options = AnalysisOptions(reps=reps)
    rows = table_rows(scores, reps)
    jurors = {name: {} for name in scores.raters("juror")}
    rubrics = [
        SimpleNamespace(
            name=name,
            rubric=SimpleNamespace(
                scales=f"{shape.low}-{shape.high}",
                name="house",
                version="1",
                criteria=shape.criteria,
                sha256="ab" * 32,
            ),
        )
        for name, shape in scores.rubrics.items()
    ]
    known = {
        "made": "2026-11-21 12:00 UTC",
        "options": options,
        "jurors": jurors,
        "needed": len(jurors),
    }
    return Content(
        rows=rows,
        decisions=decisions(rows),
        details=details(
            scores, options, StudyContext(reference=clinician_reliability(scores, options))
        ),
        criteria=criterion_rows(scores, options),
        paired=paired_means(scores, options),
        study=Study(**known | {"rubrics": rubrics} | facts),
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

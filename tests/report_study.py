"""A study with a jury, for tests of reports: real by name, known by construction."""

from pathlib import Path

import numpy as np
from small import Run

from calibration.details import Known, details
from calibration.detection import detection
from calibration.reliability import reference
from calibration.report.content import Content, Juror, Study, UsedRubric
from calibration.report.evidence import criterion_rows, paired_means
from calibration.scope import Asked, Sitting
from calibration.subgroups import subgroup_rows
from calibration.table import agreement_rows
from calibration.verdict import decisions

AUTHOR = "zz-author-model"
CLINICIANS = ("dr-a", "dr-b", "dr-c")


def table_rows(scores, reps=20):
    """Return the rows of the agreement table."""
    return agreement_rows(scores, Sitting(), Asked(reps=reps))


def content_of(scores, reps=20, **facts):
    """Return what a report of some scores shows."""
    asked, sitting = Asked(reps=reps), Sitting()
    rows = table_rows(scores, reps)
    jurors = [Juror(name) for name in scores.raters("juror")]
    rubrics = [
        UsedRubric(name, "house", "1", shape.criteria, f"{shape.low}-{shape.high}", "")
        for name, shape in scores.rubrics.items()
    ]
    known = {"made": "2026-11-21 12:00 UTC", "reps": reps, "jurors": jurors, "needed": len(jurors)}
    return Content(
        rows,
        decisions(rows),
        details(scores, sitting, asked, Known(reference=reference(scores, sitting, asked))),
        criterion_rows(scores, sitting, asked),
        {one.benchmark: one for one in paired_means(scores, sitting, asked)},
        Study(**known | {"rubrics": rubrics} | facts),
        detection(scores, sitting, asked),
        subgroup_rows(scores, sitting, asked),
    )


def rated(
    run: Run, folder: Path, jurors=("gpt", "llama"), benchmark="visits", n=30, first=0
) -> None:
    """Import n instances, the first of that number, that three clinicians and some jurors rated."""
    random = np.random.default_rng(5)
    texts = ["instance_id,benchmark,context,prompt,reference,response_id,model,response"]
    scores = ["response_id,rater,kind,criterion,score"]
    for i in range(first, first + n):
        texts.append(f'i{i},"{benchmark}",Secret pain.,Write.,Word.,r{i},{AUTHOR},Secret words.')
        for name in (*CLINICIANS, *jurors):
            kind = "clinician" if name in CLINICIANS else "juror"
            for criterion in ("accuracy", "completeness", "clarity"):
                score = int(np.clip(round(1 + i % 5 + random.normal(0, 0.8)), 1, 5))
                scores.append(f'r{i},"{name}",{kind},{criterion},{score}')
    for name, lines, command in (("r.csv", texts, "import"), ("s.csv", scores, "ratings")):
        (folder / name).write_text("\n".join(lines))
        assert run(command, str(folder / name))[0] == 0

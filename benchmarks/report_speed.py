"""Measure the report of a study of 10,000 responses and 12 jurors: what each part of it costs.

    uv run python benchmarks/report_speed.py [--responses 10000]

The study is that of agreement_speed.py. 2,000 replicates everywhere. One BLAS thread.
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager

from agreement_speed import _study
from threadpoolctl import threadpool_limits

from calibration.details import StudyContext, details, sections
from calibration.detection import all_misses, detection
from calibration.reliability import clinician_reliability
from calibration.report.content import Content, ReportedJuror, Study, criterion_rows, paired_means
from calibration.report.page import page
from calibration.scope import scopes
from calibration.table import agreement_rows
from calibration.values import AnalysisOptions
from calibration.verdict import JuryClaim, decisions

MEGABYTE = 1_000_000


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--responses", type=int, default=10_000)
    with threadpool_limits(1):
        measure(asked.parse_args().responses)


def measure(responses: int) -> None:
    """Time every part of the report of a made-up study."""
    scores, options = _study(responses), AnalysisOptions()
    with timed("agreement table"):
        rows = agreement_rows(scores, options)
    with timed("unsafe responses"):
        unsafe = detection(scores, options)
    with timed("per criterion, the jury alone"):
        criteria = criterion_rows(scores, options)
    with timed("pairs of means"):
        paired = {one.benchmark: one for one in paired_means(scores, options)}
    with timed("reliability of the clinicians"):
        known = StudyContext(reference=clinician_reliability(scores, options))
    for scope in scopes(scores, options):
        parts = sections(scope, scores, known)
        while True:
            began = time.process_time()
            if (part := next(parts, None)) is None:
                break
            list(part[1])
            print(f"  details, {part[0]}: {time.process_time() - began:.2f} s CPU", flush=True)
    with timed("details"):
        found = details(scores, options, known)
    study = Study(
        "today", jurors=[ReportedJuror(name) for name in scores.raters("juror")], needed=12
    )
    verdicts = decisions(rows, JuryClaim(misses=all_misses(unsafe.rows)))
    content = Content(rows, verdicts, found, criteria, paired, study, unsafe)
    for time_of in ("page, the first", "page, again"):
        with timed(time_of):
            text = page(content)
    print(f"{responses} responses: {len(text.encode()) / MEGABYTE:.2f} MB")


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print how long the block took, on the clock and of one processor."""
    began, cpu = time.perf_counter(), time.process_time()
    yield
    took, used = time.perf_counter() - began, time.process_time() - cpu
    print(f"{what}: {took:.2f} s, {used:.2f} s CPU", flush=True)


if __name__ == "__main__":
    main()

"""What a run would take: calls, tokens, money, and how much of each juror's context window."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Engine

from data.database import reading
from data.schema import now
from data.study.base import response_names
from data.study.calls import known_jurors, seconds_of_calls
from data.study.standing import BenchmarkView
from jury.cost import JurorEstimate
from jury.panel import Juror, Panel
from jury.run import AT_ONCE
from jury.window import prompt_size, window_use
from jury.worklist import (
    Job,
    Worklist,
    benchmarks_to_rate,
    juror_record,
    learned_by,
    pending_jobs,
    refuse_changed,
)


def estimate(
    engine: Engine,
    panel: Panel,
    *,
    replicates: int = 1,
    benchmarks: Sequence[str] | None = None,
    tasks: Sequence[BenchmarkView] = (),
    only: frozenset[int] | None = None,
    concurrency: int | None = None,
) -> list[JurorEstimate]:
    """Return what a run would take, one row per juror; nothing is sent or stored.

    What does not fit a juror's context window is counted in its `window` and in nothing else.
    `tasks`, `only` and `concurrency` are as in `run_panel`.
    """
    chosen = tuple(tasks) or benchmarks_to_rate(engine, panel, benchmarks)
    worklist = Worklist(chosen, replicates, only)
    refuse_changed(engine, panel)
    raters = known_jurors(engine, [juror_record(juror) for juror in panel.juror])
    pace = seconds_of_calls(engine, raters.values())
    rows = []
    for juror in panel.juror:
        row = JurorEstimate(juror.name, window=window_use(juror))
        rater, learned = raters.get(juror.name, 0), learned_by(engine, juror, worklist)
        for group in pending_jobs(engine, worklist, rater, lambda _: None, learned):
            row = _with_group(row, juror, group)
        in_turn = juror.in_house and concurrency is None  # an estimate asks no server for its slots
        own = juror.concurrency or (1 if in_turn else AT_ONCE)
        at_once = min(own, concurrency or AT_ONCE)
        seconds = row.calls * pace[rater] / at_once if rater in pace else None
        known = None if juror.simulated else seconds
        rows.append(replace(row, at_once=at_once, seconds=known))
    return _named(engine, rows)


def seconds_of_run(
    panel: Panel, rows: Sequence[JurorEstimate], concurrency: int | None = None
) -> float | None:
    """Return what a run takes if its jurors' calls take what they are estimated at, None if unknown.

    Jurors that share an address wait for each other if it is in the house or has a limit, and no
    more than `concurrency` calls run at a time over all.
    """
    lines: dict[str, float] = {}
    work = 0.0
    for juror, row in zip(panel.juror, rows, strict=True):
        if row.calls and not juror.simulated:
            if row.seconds is None:
                return None
            line = juror.address if juror.in_house or juror.concurrency else juror.name
            lines[line] = lines.get(line, 0.0) + row.seconds
            work += row.seconds * row.at_once
    return max([work / (concurrency or AT_ONCE), *lines.values()])


def _with_group(row: JurorEstimate, juror: Juror, group: Sequence[Job]) -> JurorEstimate:
    previous = None
    for job in group:
        if not job.has_text:
            continue
        prompt = job.prompt(juror.explanation)
        size = prompt_size(juror, prompt.text)
        window = row.window.plus(size, f"{job.response}", is_first=job.response != previous)
        row, previous = replace(row, window=window), job.response
        if not size.is_too_long:
            row = row.plus(juror, prompt.text, len(job.rubric.criteria), now())
    return row


def _named(engine: Engine, rows: Sequence[JurorEstimate]) -> list[JurorEstimate]:
    """Return estimates whose longest prompt is named by the response's id instead of its key."""
    keys = {row.window.longest_response for row in rows} - {""}
    with reading(engine) as session:
        names = response_names(session, [int(key) for key in keys])
    return [
        replace(row, window=replace(row.window, longest_response=names[int(key)][0]))
        if (key := row.window.longest_response)
        else row
        for row in rows
    ]

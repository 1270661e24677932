"""Running a panel: every response that has no verdict yet, before every juror."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from sqlalchemy import Engine

from data.schema import now
from data.store.attempts import known_jurors
from jury.admission import admit, keys
from jury.ask import ask
from jury.call import Provider
from jury.cost import JurorEstimate
from jury.loop import (
    Progress,
    RunLimits,
    RunResult,
    Tally,
    known_sessions,
    refuse_numbers,
    run_all,
    run_loop,
)
from jury.panel import Panel, refuse_ended
from jury.providers import open_provider
from jury.run_cap import accounted, run_cap
from jury.run_lock import run_lock
from jury.same_prompts import SamePrompts
from jury.session import Patience
from jury.worklist import Worklist, jobs, record_of, refuse_changed, tasks_of
from jury.writer import Writer

Watch = Callable[[Progress], None]


def run_panel(
    engine: Engine,
    panel: Panel,
    *,
    concurrency: int = 8,
    max_usd: float | None = None,
    replicates: int = 1,
    benchmarks: Sequence[str] | None = None,
    progress: Watch | None = None,
    providers: Mapping[str, Provider] | None = None,
    patience: Patience = Patience(),  # noqa: B008 - frozen
    waiting: Callable[[], None] = lambda: None,
) -> RunResult:
    """Put every response without a verdict before every juror of a panel.

    May be killed anywhere and run again: what is rated is not asked for again. Ctrl-C lets the
    requests in flight finish and stores them; a second one drops them. At most `concurrency`
    requests are in flight over all jurors; what they cost together stays within `max_usd`, each
    checked at its worst before it is sent, calls in flight when a run before it was killed
    included, and within what the study's budget leaves; `replicates` verdicts of each juror measure its own
    noise. `progress` is told after every verdict, `waiting` once if another run has to end before.
    `providers` are lines to use, by juror, instead of the panel's.

    Raises
    ------
    BadPanel
        Before anything is sent or stored: the server's owner does not allow a juror, a key is
        missing, a model has ended, a cap is asked for without a price that counts, or the panel is
        for another rubric.
    Conflict
        The study knows a juror of the same name with other settings.
    """
    panel, lines = admit(panel), dict(providers or {})
    refuse_numbers(panel, max_usd, concurrency=concurrency, replicates=replicates)
    given = all(one.name in lines for one in panel.juror)
    if not given:
        refuse_ended(panel, now().date())
    worklist = Worklist(tasks_of(engine, panel, benchmarks), replicates)
    tally = Tally(worklist.responses * len(panel.juror) * replicates, progress)
    secrets = {} if given else keys(panel)
    with run_lock(engine, waiting):
        for one in panel.juror:
            lines[one.name] = lines.get(one.name) or open_provider(one, secrets[one.name])
        sessions = known_sessions(engine, panel, lines)
        queues = [
            jobs(engine, worklist, one.rater, tally.stands(one.juror.name)) for one in sessions
        ]
        asking = partial(ask, Writer(engine), SamePrompts(engine))
        cap = run_cap(engine, panel, max_usd)
        limits = RunLimits(concurrency, cap.usd, patience)
        run_loop(run_all(sessions, queues, asking, tally, limits))
        return accounted(tally.result(panel.name, worklist.responses, sessions), engine, cap)


def estimate(
    engine: Engine, panel: Panel, *, replicates: int = 1, benchmarks: Sequence[str] | None = None
) -> list[JurorEstimate]:
    """Return what a run would take, a row a juror; sends and stores nothing."""
    worklist = Worklist(tasks_of(engine, panel, benchmarks), replicates)
    refuse_changed(engine, panel)
    raters = known_jurors(engine, [record_of(one) for one in panel.juror])
    rows = []
    for juror in panel.juror:
        row = JurorEstimate(juror.name)
        for group in jobs(engine, worklist, raters.get(juror.name, 0), lambda _: None):
            for place, job in enumerate(one for one in group if one.has_text):
                prompt = job.rubric.parts(job.card, juror.explanation)
                row = row.plus(juror, prompt.text, len(job.rubric.criteria), now())
                row = row.repeating(prompt.shared) if place else row
        rows.append(row)
    return rows

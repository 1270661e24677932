"""`medjury status`: where a study stands, in words, and the one command to run next."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import typer

from medjury.cli.commands import PROGRAM
from medjury.cli.files import write_json
from medjury.cli.options import Db, Json, study_of
from medjury.cli.output import counted, hint, say, show
from medjury.services.status import (
    CliniciansStatus,
    JuryStatus,
    NextStep,
    ReportStatus,
    StudyStatus,
)
from medjury.services.status import status as status_of

HEAD_SHOWN = 12
STEPS = {
    NextStep.IMPORT_RESPONSES: ("import the models' responses", "study import responses.csv"),
    NextStep.SET_PROTOCOL: (
        "fix before the rating what the study is to show",
        "study protocol set --margin 0.1",
    ),
    NextStep.ASSIGN: ("assign the responses to clinicians", "rate assign --raters raters.txt"),
    NextStep.RUN_JURY: (
        "see what a jury would cost; without --estimate it rates",
        "jury run current --estimate",
    ),
    NextStep.LET_RATE: ("let the clinicians rate what is open", "serve"),
    NextStep.COMPLETE_JURY: ("see which verdicts are missing, and why", "jury missing"),
    NextStep.CALIBRATE: (
        "compare the jury with the clinicians, and keep the report",
        "analyse calibrate --freeze",
    ),
    NextStep.LOCK: ("freeze the study", "study lock"),
    NextStep.SHARE: ("write the study as files", "share export study_files"),
}


def status(context: typer.Context, json_to: Json = None, db: Db = None) -> None:
    """Say where the study stands and what to do next.

    Reads counts only: the decision is that of the newest frozen report, and the record is not
    verified. Names no author of a response.
    """
    now = status_of(study_of(context, db))
    _show_benchmarks(now, json_to)
    for line in _lines(now):
        say(line, json_to)
    why, command = STEPS[now.next]
    hint(f"Next: {why}: `{PROGRAM} {command}`", json_to)
    step = {"step": now.next.value, "command": f"{PROGRAM} {command}"}
    write_json(asdict(now) | {"next": step}, json_to)


def _show_benchmarks(now: StudyStatus, json_to: Path | None) -> None:
    rows = [
        [
            benchmark.benchmark,
            benchmark.rubric,
            *map(str, (benchmark.instances, benchmark.responses, benchmark.rated)),
        ]
        for benchmark in now.benchmarks
    ]
    if rows:
        columns = ["benchmark", "rubric", "instances", "responses", "rated by a clinician"]
        show("Benchmarks", columns, rows, json_to, words=("rubric",))


def _lines(now: StudyStatus) -> Iterator[str]:
    """Yield a line for each part of the study."""
    if now.record.simulated:
        yield "Simulated raters are in this study: no figure of them is evidence."
    if now.margin is None:
        yield "Protocol: none is set"
    else:
        yield f"Protocol: margin {now.margin:g}, set {now.protocol_set_at}"
    yield f"Clinicians: {_clinicians(now.clinicians)}"
    yield f"Jury: {_jury(now.jury)}"
    yield f"Agreement: {_report(now.report)}"
    lifted = f"unblinded {counted(now.record.unblinded, 'time')}" if now.record.unblinded else "no"
    yield f"Locked: {now.record.locked or 'no'}. Authors disclosed: {lifted}"
    head = now.record.head[:HEAD_SHOWN]
    yield f"Record: {counted(now.record.events, 'event')}, head {head} (`{PROGRAM} study verify` checks it)"


def _clinicians(work: CliniciansStatus) -> str:
    if not work.clinicians:
        return "none has rated or is to rate"
    made_up = f" ({work.simulated} simulated)" if work.simulated else ""
    open_ = f"; {work.done} of {work.assigned} assigned readings done" if work.assigned else ""
    rated = f"{work.responses_rated} of {counted(work.responses, 'response')} rated"
    return f"{work.clinicians}{made_up}; {rated}{open_}"


def _jury(jury: JuryStatus) -> str:
    if not jury.jurors:
        return "no juror has rated"
    unknown = (
        f" and {counted(jury.usd_unknown, 'call')} of unknown price" if jury.usd_unknown else ""
    )
    open_ = f"; at most ${jury.usd_in_flight:.4f} in flight" if jury.usd_in_flight else ""
    spent = f"{counted(jury.calls, 'call')}, ${jury.usd:.4f}{unknown}{open_}"
    return f"{', '.join(jury.jurors)}; {counted(jury.missing, 'verdict')} missing; {spent}"


def _report(report: ReportStatus | None) -> str:
    if report is None:
        return "no report is frozen yet"
    values = {"jury": report.jury_icc, "clinicians": report.clinicians_icc}
    shown = [f"{name} {icc:.3f}" for name, icc in values.items() if icc is not None]
    iccs = f"; ICC(C,2) {', '.join(shown)}" if shown else ""
    decision = f": {report.headline}" if report.headline else ""
    return f"report {report.number} of {report.at[:10]}{iccs}{decision}"

"""`medjury status`: where a study stands, in words, and the one command to run next."""

from collections.abc import Iterator
from dataclasses import asdict

from calibration.notes import sentence
from medjury.cli.commands import PROGRAM
from medjury.cli.options import Study
from medjury.cli.output import counted, emit, hint, show
from medjury.services.status import STATES, TITLES, NextStep, StudyStatus, next_of, steps_of
from medjury.services.status import status as status_of

HEAD_SHOWN = 12
STEPS = {
    NextStep.IMPORT_RESPONSES: ("import the models' responses", "study import responses.csv"),
    NextStep.SET_PROTOCOL: (
        "fix before the rating what the study is to show",
        "study protocol set --margin 0.1 --panel PANEL",
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


def status(study: Study) -> None:
    """Say where the study stands and what to do next.

    Reads counts only: the decision is that of the newest frozen report, and the record is not
    verified. Names no author of a response.

    Example:
    medjury status
    """
    now = status_of(study.open())
    rows = [
        (one.benchmark, one.rubric, one.instances, one.responses, one.rated)
        for one in now.benchmarks
    ]
    if rows:
        columns = ["benchmark", "rubric", "instances", "responses", "rated by a clinician"]
        show("Benchmarks", columns, rows, words=("rubric",))
    emit(*_lines(now))
    why, command = STEPS[next_of(now)]
    hint(f"Next: {why}: `{PROGRAM} {command}`")
    following = {"step": next_of(now).value, "command": f"{PROGRAM} {command}"}
    steps = [
        {"step": step.step, "state": step.state, "answer": sentence(step.answer)}
        for step in steps_of(now)
    ]
    study.write(asdict(now) | {"steps": steps, "next": following})


def _lines(now: StudyStatus) -> Iterator[str]:
    """Yield every step, as the app's first screen has them, and the lock, the blind, the record."""
    if now.record.simulated:
        yield "Simulated raters are in this study: no figure of them is evidence."
    for step in steps_of(now):
        yield f"{TITLES[step.step]} ({STATES[step.state]}): {sentence(step.answer)}"
    yield from (f"{line}." for line in now.clinicians.ended)
    if now.jury.jurors:
        yield f"Jurors: {', '.join(now.jury.jurors)}"
    lifted = f"unblinded {counted(now.record.unblinded, 'time')}" if now.record.unblinded else "no"
    yield f"Locked: {now.record.locked or 'no'}. Authors disclosed: {lifted}"
    head = now.record.head[:HEAD_SHOWN]
    yield f"Record: {counted(now.record.events, 'event')}, head {head} (`{PROGRAM} study verify` checks it)"

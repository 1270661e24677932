"""`medjury jury improve`: let a jury learn from what clinicians said, and say how much better it is."""

import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Engine

from calibration.learning import PartGain
from data.errors import BadInput
from data.rubric import write_rubrics
from data.study.improving import stored_rubric
from jury.admission import price_notices
from jury.panel import read_panel
from medjury.cli.files import write_json
from medjury.cli.jury import Benchmarks, Concurrency, MaxUsd
from medjury.cli.jury_words import announcement
from medjury.cli.options import Db, Json, Named, study_of
from medjury.cli.output import counted, say, show
from medjury.services.improving import Improved, ImproveQuestion, Outcome, estimate_improvement
from medjury.services.improving import improve as improve_jury

STOPPED = 1
PARTS = {
    "train": "learned from",
    "choose": "chosen by",
    "test": "not seen before",
}
COLUMNS = ["part", "responses", "before", "after", "closer by", "95 % interval", "missing"]


def improve(
    context: typer.Context,
    panel: Named,
    proposer: Annotated[
        str, typer.Option(help="Juror of the panel that proposes; else its [proposer].")
    ] = "",
    rounds: Annotated[int, typer.Option(help="Proposals to ask for, at most.", min=0)] = 3,
    examples: Annotated[
        int, typer.Option(help="Responses with clinicians' scores to show jurors.", min=0)
    ] = 3,
    tried: Annotated[
        list[str] | None,
        typer.Option("--try", help="A setting to try, as explanation=after; repeatable."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the split.")] = 0,
    reps: Annotated[int, typer.Option(help="Resamples of the ICC's difference.", min=1)] = 2000,
    max_usd: MaxUsd = None,
    estimate_only: Annotated[
        bool, typer.Option("--estimate", help="Say what it would take; send nothing.")
    ] = False,
    concurrency: Concurrency = None,
    benchmark: Benchmarks = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the rubric and the panel that were learned here.")
    ] = None,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Let a jury learn from what clinicians said; exit 1 if it stopped before its end.

    Example:
    medjury jury improve simulated --rounds 1
    """
    question = ImproveQuestion(
        read_panel(panel), tuple(benchmark or ()), proposer, rounds, examples,
        tuple(map(_setting, tried or ())), seed, max_usd, concurrency, reps,
    )  # fmt: skip
    engine = study_of(context, db)
    if estimate_only:
        _print_estimate(engine, question, json_to)
        return
    for line in (*announcement(question.panel), *price_notices(question.panel)):
        say(line, json_to)
    say(f"{question.proposing().name} reads clinicians' scores and comments to propose", json_to)
    improved = improve_jury(engine, question, tell=lambda line: say(line, json_to))
    for line in _lines(improved):
        say(line, json_to)
    if improved.parts:
        rows = [_row(part, improved.parts[part]) for part in PARTS if part in improved.parts]
        show("Distance from the clinicians' mean, in points", COLUMNS, rows, json_to)
    write_json(improved.to_json(), json_to)
    if improved.panel_file:
        say(
            f"panel {improved.panel} is kept in the study; its jurors read what was learned",
            json_to,
        )
        if out is not None:
            _write(engine, improved, out, json_to)
    if improved.outcome is Outcome.STOPPED:
        raise typer.Exit(STOPPED)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise BadInput(f"--try {text}: write a setting and its value, such as explanation=after")
    return name, value


def _print_estimate(engine: Engine, question: ImproveQuestion, json_to: Path | None) -> None:
    expected = estimate_improvement(engine, question)
    parts = ", ".join(f"{name} {number}" for name, number in expected.split.items())
    likely = (
        "price unknown" if expected.usd_likely is None else f"about {expected.usd_likely:.4f} USD"
    )
    say(f"responses that clinicians rated: {parts}", json_to)
    say(
        f"at most {counted(expected.verdicts, 'verdict')} and {counted(expected.proposals, 'proposal')}, "
        f"{likely} for the verdicts; examples make them longer",
        json_to,
    )
    write_json(asdict(expected), json_to)


def _lines(improved: Improved) -> Iterator[str]:
    """Yield what came of it, what it cost, and what a reader must know of the figures."""
    yield from (["simulated: this says nothing of any real jury"] if improved.simulated else [])
    yield _headline(improved)
    if improved.opened_before:
        yield (
            f"the test part had been opened {counted(improved.opened_before, 'time')} before: the gain on "
            "it is no longer of a part that nobody has looked at"
        )
    if improved.icc is not None:
        icc = improved.icc
        yield (
            f"ICC with the clinicians on the test part: before {_figure(icc.before)}, after "
            f"{_figure(icc.after)}, difference {_figure(icc.difference)} "
            f"({_figure(icc.low)} to {_figure(icc.high)}), p {_figure(icc.p)}; "
            f"{counted(icc.n_tried, 'different comparison')} looked at on this study"
        )
    unknown = (
        f", {counted(improved.usd_unknown, 'call')} of unknown price"
        if improved.usd_unknown
        else ""
    )
    yield f"spent in this run: {improved.usd:.4f} USD{unknown}"


def _headline(improved: Improved) -> str:
    if improved.outcome is Outcome.STOPPED:
        return f"stopped: {improved.stopped}; the same command goes on from here"
    if improved.outcome is Outcome.NONE_BETTER:
        return (
            "no candidate was closer to the clinicians on the part to choose by: the jury stays as it is, "
            "and the test part is unopened"
        )
    gain = improved.parts["test"]
    figures = f"{_figure(gain.gain)} points ({_figure(gain.low)} to {_figure(gain.high)})"
    if improved.outcome is Outcome.BETTER:
        return f"closer to the clinicians on responses not seen before, by {figures}"
    return f"not shown to be closer to the clinicians on responses not seen before: {figures}"


def _row(part: str, gain: PartGain) -> list[str]:
    ends = f"{_figure(gain.low)} to {_figure(gain.high)}"
    figures = map(_figure, (gain.before, gain.after, gain.gain))
    return [f"{part} ({PARTS[part]})", f"{gain.n_responses}", *figures, ends, f"{gain.n_missing}"]


def _figure(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else "-"


def _write(engine: Engine, improved: Improved, out: Path, json_to: Path | None) -> None:
    """Write the rubric and the panel that were learned into a new folder."""
    rubric = stored_rubric(engine, improved.rubric["sha256"])
    if rubric is None:
        return
    write_rubrics(out, {"rubric": rubric})
    (out / "panel.toml").write_text(improved.panel_file, "utf-8")
    (out / "diff.txt").write_text("\n".join(improved.diff) + "\n", "utf-8")
    say(f"written: {out}/rubric, {out}/panel.toml and {out}/diff.txt", json_to)

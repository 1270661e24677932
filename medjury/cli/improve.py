"""`medjury jury improve`: let a jury learn from what clinicians said, and say how much better it is."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy import Engine

from data.rubric import write_rubrics
from data.study.rubrics import rubrics_known
from jury.admission import price_notices
from jury.panel import read_panel
from medjury.cli.jury import Benchmarks, Concurrency, MaxUsd
from medjury.cli.jury_words import announcement
from medjury.cli.options import Named, Study
from medjury.cli.output import counted, emit, say, show
from medjury.services.improving import ImproveQuestion, Outcome, estimate_improvement
from medjury.services.improving import improve as improve_jury

STOPPED = 1
PARTS = {"train": "learned from", "choose": "chosen by", "test": "not seen before"}
COLUMNS = ["part", "responses", "before", "after", "closer by", "95 % interval", "missing"]


def improve(
    study: Study,
    panel: Named,
    rounds: Annotated[int, typer.Option(help="Proposals to ask for, at most.", min=0)] = 3,
    examples: Annotated[
        int, typer.Option(help="Responses with clinicians' scores to show jurors.", min=0)
    ] = 3,
    seed: Annotated[int, typer.Option(help="Of the split.")] = 0,
    max_usd: MaxUsd = None,
    estimate_only: Annotated[
        bool, typer.Option("--estimate", help="Say what it would take; send nothing.")
    ] = False,
    concurrency: Concurrency = None,
    benchmark: Benchmarks = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the rubric and the panel that were learned here.")
    ] = None,
) -> None:
    """Let a jury learn from what clinicians said; exit 1 if it stopped before its end.

    Example:
    medjury jury improve simulated --rounds 1
    """
    question = ImproveQuestion(
        read_panel(panel), tuple(benchmark or ()), rounds, examples, seed, max_usd, concurrency
    )
    engine = study.open()
    if estimate_only:
        expected = estimate_improvement(engine, question)
        say(_expected(expected))
        study.write(expected)
        return
    emit(*announcement(question.panel), *price_notices(question.panel))
    say(f"{question.proposer.name} reads clinicians' scores and comments to propose")
    improved = improve_jury(engine, question, tell=say)
    emit(*_lines(improved))
    if improved["parts"]:
        rows = [_row(part, improved["parts"][part]) for part in PARTS if part in improved["parts"]]
        show("Distance from the clinicians' mean, in points", COLUMNS, rows)
    study.write(improved)
    if improved["panel_file"]:
        say(f"panel {improved['panel']} is kept in the study: it reads what was learned")
        if out is not None:
            _write(engine, improved, out)
    if improved["outcome"] == Outcome.STOPPED:
        raise typer.Exit(STOPPED)


def _expected(expected: Mapping[str, Any]) -> str:
    parts = ", ".join(f"{name} {number}" for name, number in expected["split"].items())
    usd = expected["usd_likely"]
    likely = "price unknown" if usd is None else f"about {usd:.4f} USD"
    return (
        f"responses that clinicians rated: {parts}; at most {counted(expected['verdicts'], 'verdict')} "
        f"and {counted(expected['proposals'], 'proposal')}, {likely} for the verdicts; examples make "
        "them longer"
    )


def _lines(improved: Mapping[str, Any]) -> Iterator[str]:
    """Yield what came of it, what it cost, and what a reader must know of the figures."""
    if improved["simulated"]:
        yield "simulated: this says nothing of any real jury"
    yield _headline(improved)
    if times := improved["opened_before"]:
        yield (
            f"the test part had been opened {counted(times, 'time')} before: the gain on it is no longer "
            "of a part that nobody has looked at"
        )
    unknown = improved["usd_unknown"]
    more = f", {counted(unknown, 'call')} of unknown price" if unknown else ""
    yield f"spent in this run: {improved['usd']:.4f} USD{more}"


def _headline(improved: Mapping[str, Any]) -> str:
    if improved["outcome"] == Outcome.STOPPED:
        return f"stopped: {improved['stopped']}; the same command goes on from here"
    if improved["outcome"] == Outcome.NONE_BETTER:
        return (
            "no candidate was closer to the clinicians on the part to choose by: the jury stays as it is, "
            "and the test part is unopened"
        )
    gain = improved["parts"]["test"]
    figures = f"{_figure(gain['gain'])} points ({_interval(gain)})"
    if improved["outcome"] == Outcome.BETTER:
        return f"closer to the clinicians on responses not seen before, by {figures}"
    return f"not shown to be closer to the clinicians on responses not seen before: {figures}"


def _row(part: str, gain: Mapping[str, Any]) -> list[str]:
    figures = [_figure(gain[name]) for name in ("before", "after", "gain")]
    numbers = f"{gain['n_responses']}", f"{gain['n_missing']}"
    return [f"{part} ({PARTS[part]})", numbers[0], *figures, _interval(gain), numbers[1]]


def _interval(gain: Mapping[str, Any]) -> str:
    return f"{_figure(gain['low'])} to {_figure(gain['high'])}"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _write(engine: Engine, improved: Mapping[str, Any], out: Path) -> None:
    """Write the rubric and the panel that were learned into a new folder."""
    rubric = rubrics_known(engine).get(improved["rubric"]["sha256"])
    if rubric is None:
        return
    write_rubrics(out, {"rubric": rubric})
    (out / "panel.toml").write_text(improved["panel_file"], "utf-8")
    (out / "diff.txt").write_text("\n".join(improved["diff"]) + "\n", "utf-8")
    say(f"written: {out}/rubric, {out}/panel.toml and {out}/diff.txt")

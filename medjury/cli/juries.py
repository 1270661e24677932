"""`medjury analyse juries`: which jury of the jurors already heard to take, and two juries compared."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibration.values import AnalysisOptions
from data.errors import BadInput
from medjury.cli.dask_workers import On, computing
from medjury.cli.files import write_json
from medjury.cli.options import (
    METHODS,
    BenchmarkOption,
    Criterion,
    Db,
    Json,
    Jurors,
    Reps,
    Seed,
    either,
    named_jurors,
    study_of,
)
from medjury.cli.options import Method as MethodOption
from medjury.cli.output import progress, say, say_unnoted, show_decision, show_fitted, show_table

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from calibration.juries import JuryRow
    from medjury.services.juries import (
        ComparedJuries,
        ComparisonQuestion,
        RankedJuries,
        RankingQuestion,
    )

SIZES = re.compile(r"([0-9]{1,3})(?:-([0-9]{1,3}))?")


def juries(
    context: typer.Context,
    sizes: Annotated[
        str | None, typer.Option(metavar="A-B", help="Sizes of juries to rank; by default 1-5.")
    ] = None,
    jurors: Jurors = None,
    benchmark: BenchmarkOption = None,
    method: MethodOption = "paper",
    criterion: Criterion = None,
    reps: Reps = 2000,
    seed: Seed = 0,
    top: Annotated[int, typer.Option(min=1, max=100, help="Number of juries to print.")] = 10,
    compare: Annotated[
        list[str] | None,
        typer.Option(
            metavar="a,b", help="A jury to compare; give it twice for the difference of two."
        ),
    ] = None,
    json_to: Json = None,
    on: On = None,
    db: Db = None,
) -> None:
    """Rank every possible jury of the jurors that have rated, corrected for having chosen the best of many."""
    from medjury.services.juries import ComparisonQuestion, RankingQuestion

    own, numbers = named_jurors(None, jurors), _sizes(sizes)
    by = either(method, METHODS, "--method")
    options = AnalysisOptions(own, None, benchmark, criterion, by, reps=reps, seed=seed)
    if compare:
        if on:
            raise typer.BadParameter("a comparison draws no resamples", param_hint="--on")
        two = ComparisonQuestion(options, *_two_juries(compare))
        print_comparison(study_of(context, db), two, json_to)
        return
    question = RankingQuestion(options, numbers, top)
    print_juries(study_of(context, db), question, json_to, on)


def print_juries(
    engine: "Engine", question: "RankingQuestion", json_to: Path | None, on: str | None
) -> None:
    """Rank the juries, print which to take and the tables, and write JSON where asked."""
    from medjury.services.juries import rank_juries

    with (
        computing(on, "scores, no texts, are", json_to) as executor,
        progress("resampling", 1.0) as at,
    ):
        ranked = rank_juries(engine, question, tick=at, executor=executor)
    say_unnoted(ranked.unnoted)
    for name in ranked.silent:
        say(f"asked, and gave no rating: {name}; in no jury", json_to)
    show_decision(ranked.decision, json_to)
    _show_ranking(ranked, json_to)
    for line in ranked.told:
        say(line, json_to)
    write_json(ranking_json(ranked), json_to)


def print_comparison(
    engine: "Engine", question: "ComparisonQuestion", json_to: Path | None
) -> None:
    """Compare two juries, print which agrees better and the table, and write JSON where asked."""
    from calibration.tables.juries import COMPARISON
    from calibration.tables.numbers import TERMINAL
    from calibration.tables.spec import laid_out
    from medjury.services.juries import compare_juries

    compared = compare_juries(engine, question)
    say_unnoted(compared.unnoted)
    show_decision(compared.decision, json_to)
    say("", json_to)
    caption = f"{compared.row.benchmark}: {COMPARISON.caption}"
    show_table(laid_out(COMPARISON, [compared.row], TERMINAL, caption=caption), json_to)
    for line in compared.told:
        say(line, json_to)
    write_json(comparison_json(question, compared), json_to)


def ranking_json(ranked: "RankedJuries") -> dict[str, Any]:
    """Return what `medjury analyse juries --json` writes; undefined is None."""
    from calibration.json_values import decision_json, json_row, json_value
    from calibration.notes import told

    ranking, question = ranked.ranking, ranked.question
    options = question.options
    return {
        "method": options.method,
        "criterion": options.criterion,
        "benchmark": ranked.benchmark,
        "k_jurors": len(ranking.pool),
        "n_juries": len(ranking.rows),
        "reps": options.reps,
        "seed": options.seed,
        "n_responses": ranking.n_responses,
        "n_juries_before": ranked.juries_before,
        "n_tried_before": ranked.ways_before,
        "n_unknown_cost": ranking.n_unknown_cost,
        "usd_made_up": list(ranked.made_up),
        "winner": _best(ranking.winner, len(ranking.rows)) if ranking.winner else None,
        "by_size": [_best(row, ranking.of_size(row.size)) for row in ranking.by_size],
        "rows": [json_row(row) for row in ranking.rows],
        "note": told(ranking.notes),
        "notes": json_value(ranking.notes),
        "decision": decision_json(ranked.decision),
    }


def comparison_json(question: "ComparisonQuestion", compared: "ComparedJuries") -> dict[str, Any]:
    """Return what `medjury analyse juries --compare --json` writes; undefined is None."""
    from calibration.json_values import decision_json, json_row, json_value

    options = question.options
    chosen = {name: getattr(options, name) for name in ("method", "criterion", "reps", "seed")}
    juries = {"first": question.first, "second": question.second}
    iccs = {"icc_first": compared.icc_first, "icc_second": compared.icc_second}
    decision = {"decision": decision_json(compared.decision)}
    head: dict[str, Any] = json_value(chosen | juries | iccs)
    return head | json_row(compared.row) | decision


def _show_ranking(ranked: "RankedJuries", json_to: Path | None) -> None:
    """Print the best jury of each size, the first of all, the best for their cost, and the notes."""
    from calibration.tables.juries import RANKING, legend

    ranking, top = ranked.ranking, ranked.question.top
    manner = f"(method {ranked.question.options.method}, mean of members)"
    front = ranking.front
    prices = " at made-up prices" if ranked.made_up else ""
    more = f", {top} of {len(front)}" if len(front) > top else ""
    parts: Mapping[str, Sequence[JuryRow]] = {
        "the best jury of each size": ranking.by_size,
        f"the first of {len(ranking.rows):,} juries": ranking.rows[:top],
        f"no cheaper jury agrees as well{prices}, the cheapest first{more}": front[:top],
    }
    for about, rows in parts.items():
        if rows:
            say("", json_to)
            show_fitted(RANKING, rows, f"{ranked.benchmark}: {about} {manner}", json_to)
    for line in (*legend(front), *map(str, ranked.notes)):
        say(f"  {line}", json_to)


def _best(row: "JuryRow", n_compared: int) -> dict[str, Any]:
    """Return the best of so many juries, and by how much its ICC is too high."""
    from calibration.json_values import json_row, json_value

    return json_row(row) | {"optimism": json_value(row.optimism), "n_compared": n_compared}


def _sizes(text: str | None) -> range | None:
    """Return the sizes that `A-B` or `A` means."""
    if text is None:
        return None
    match = SIZES.fullmatch(text)
    if match is None:
        raise BadInput(f"--sizes {text}: give one size or two as 1-5")
    low, high = int(match[1]), int(match[2] or match[1])
    if not 1 <= low <= high:
        raise BadInput(f"--sizes {text}: the first is at least 1 and at most the last")
    return range(low, high + 1)


def _two_juries(texts: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the jurors of two juries that differ, or refuse."""
    juries = [named_jurors(None, jurors) or () for jurors in texts]
    if len(juries) != 2 or {*juries[0]} == {*juries[1]}:
        raise BadInput("--compare: give it twice, with juries that differ in a juror")
    return juries[0], juries[1]

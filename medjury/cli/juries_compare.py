"""`medjury juries --compare a,b --compare a,c`: two juries on the same responses, paired."""

import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from sqlalchemy import Engine

from data.errors import BadInput
from data.queries.ledger import comparisons_besides, fingerprint, tried
from data.store.ledger import Evaluated, remember
from medjury.cli.options import named_jurors
from medjury.cli.output import say, show
from medjury.cli.places import write_json
from medjury.services.record import steered
from medjury.services.scores import scores_of

if TYPE_CHECKING:
    from calibration.differences import DifferenceRow
    from calibration.scope import Scope
    from medjury.cli.juries import Asked

Compare = Annotated[
    list[str] | None,
    typer.Option("--compare", metavar="a,b", help="Give it twice: the difference of two juries."),
]
COLUMNS = ("jury", "minus", "difference", "95 %", "p", "p Holm", "of tried", "responses")


def two_juries(given: list[str]) -> tuple[list[str], list[str]]:
    """Return the jurors of two juries that differ, or refuse."""
    juries = [named_jurors(None, one) or [] for one in given]
    if len(juries) != 2 or {*juries[0]} == {*juries[1]}:
        raise BadInput("--compare: give it twice, with juries that differ in a juror")
    return juries[0], juries[1]


def print_comparison(
    engine: Engine, asked: "Asked", juries: tuple[list[str], list[str]], json_to: Path | None
) -> None:
    """Compare two juries, note both in the ledger, print it, and write JSON where asked."""
    from threadpoolctl import threadpool_limits

    from medjury.cli.juries import _scope, resampling

    scores = scores_of(engine)
    everybody = list(dict.fromkeys([*juries[0], *juries[1]]))
    whole = _scope(scores, everybody, asked)
    with threadpool_limits(1), resampling(whole, asked, json_to) as scope:
        data = fingerprint(scores.ratings)
        first, second = (_entry(one, scope, asked, data) for one in juries)
        named = f"jury:{', '.join(juries[1])}"
        besides = comparisons_besides(tried(engine), {first.key: [named], second.key: []})
        row = _difference(scope, juries, besides)
    remember(engine, [replace(first, compared=[named]), second])
    _print(row, juries, json_to)
    for line in steered(engine):
        say(line, json_to)
    body = {"method": asked.method, "criterion": asked.criterion, "reps": asked.reps}
    told = {"seed": asked.seed, "first": juries[0], "second": juries[1]}
    iccs = {"icc_first": first.icc, "icc_second": second.icc}
    write_json(body | told | _plain(iccs | asdict(row)), json_to)


def _difference(
    scope: "Scope", juries: tuple[list[str], list[str]], besides: int
) -> "DifferenceRow":
    """Return the paired difference; p by Holm counts it and all that was tried besides."""
    import numpy as np

    from calibration.agreement import Panel
    from calibration.differences import difference_rows
    from calibration.holm import holm

    first, second = (Panel(tuple(one), len(one)) for one in juries)
    only = replace(scope, jury=first, metrics=())
    row = difference_rows(only, {", ".join(juries[1]): second})[-1]
    held = float(holm(np.array([row.p]), besides)[0])
    return replace(row, p_holm=held, n_tried=besides + (not math.isnan(row.p)))


def _entry(jurors: list[str], scope: "Scope", asked: "Asked", data: str) -> Evaluated:
    """Return a jury's entry in the ledger, with its ICC on all the responses that it has."""
    from calibration.agreement import Panel, column_icc, columns

    pair = columns(scope.grid, Panel(tuple(jurors), len(jurors)), asked.method)
    icc = column_icc(pair.clinicians[pair.both], pair.scorer[pair.both], asked.method)
    return Evaluated(
        jurors=jurors,
        benchmark=scope.name,
        method=asked.method,
        fingerprint=data,
        n_responses=int(pair.both.sum()),
        icc=float(icc),
        criterion=asked.criterion or "",
    )


def _print(row: "DifferenceRow", juries: tuple[list[str], list[str]], json_to: Path | None) -> None:
    figures = [f"{value:.3f}" for value in (row.p, row.p_holm)]
    cells = [
        ", ".join(juries[0]),
        ", ".join(juries[1]),
        f"{row.difference:.3f}",
        f"{row.low:.3f} to {row.high:.3f}",
        *figures,
        f"{row.n_tried}",
        f"{row.n_responses}",
    ]
    show(f"{row.benchmark}: difference of two ICC(C,2), paired", COLUMNS, [cells], json_to)
    for note in filter(None, row.note.split("; ")):
        say(f"  {note}", json_to)


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }

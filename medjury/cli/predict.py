"""`medjury predict`: a validated jury on responses that no clinician rated."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from sqlalchemy import Engine

from data.errors import BadFile, BadInput, Unknown
from medjury.cli.agreement import Names
from medjury.cli.export_cells import cells
from medjury.cli.options import Db, Json, Seed, finite, named_jurors, study_of
from medjury.cli.output import progress, say
from medjury.cli.places import write_json, writes_to
from medjury.cli.predict_table import print_predicted
from medjury.cli.record import write_csv
from medjury.services.ledger import Looked
from medjury.services.record import steered
from medjury.services.scores import all_jurors, scores_of, silent_jurors

if TYPE_CHECKING:
    from calibration.predicting.predicted import Predicted
    from calibration.predicting.row import PredictedRow
    from calibration.scores import Scores

CsvNew = Annotated[
    Path | None,
    typer.Option("--csv", metavar="FILE", help="Write a row a response; new.", callback=writes_to),
]


def predict(
    context: typer.Context,
    panel: Annotated[str | None, typer.Option(metavar="PANEL", help="Only its jurors.")] = None,
    jurors: Names = None,
    benchmark: Annotated[str | None, typer.Option(metavar="NAME", help="Only this one.")] = None,
    criterion: Annotated[str | None, typer.Option(help="One criterion, not the composite.")] = None,
    level: Annotated[
        float, typer.Option(help="Of the intervals, between 0 and 1.", callback=finite)
    ] = 0.9,
    seed: Seed = 0,
    min_jurors: Annotated[
        int | None, typer.Option(min=1, help="Jurors a response needs; by default all.")
    ] = None,
    csv_to: CsvNew = None,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Predict what clinicians would say of responses they did not rate, from a validated jury."""
    if csv_to is not None and csv_to.exists():
        raise BadFile(f"--csv {csv_to}: is there already; name another file")
    chosen = named_jurors(panel, jurors)
    asked = Asked(chosen, benchmark, criterion, level, seed, min_jurors)
    engine = study_of(context, db)
    found = predicted(engine, asked, json_to)
    print_predicted(found.rows, level, json_to)
    for line in steered(engine):
        say(line, json_to)
    if csv_to is not None:
        written = write_csv(csv_to, list(found.responses.columns), csv_rows(found))
        say(f"{csv_to}: {written} responses", json_to)
    body = {"level": level, "seed": seed, "benchmarks": [figures(row) for row in found.rows]}
    write_json(body | {"responses": len(found.responses)}, json_to)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be predicted, as the command's options say."""

    jurors: list[str] | None = None
    benchmark: str | None = None
    criterion: str | None = None
    level: float = 0.9
    seed: int = 0
    min_jurors: int | None = None


def predicted(engine: Engine, asked: Asked, json_to: Path | None = None) -> "Predicted":
    """Return the predictions; the ledger is told that the jury was held against the clinicians."""
    from threadpoolctl import threadpool_limits

    from calibration.predicting.predicted import predictions
    from calibration.scope import Asked as Options
    from calibration.scopes import Sitting, checked

    if not 0 < asked.level < 1:
        raise BadInput(f"--level {asked.level:g}: give a share between 0 and 1, such as 0.9")
    if asked.seed < 0:
        raise BadInput(f"--seed {asked.seed}: give 0 or more")
    everything = scores_of(engine)
    silent = silent_jurors(engine, everything)
    jury = _jury(everything, asked, silent)
    scores = _seated(everything, jury, asked.benchmark)
    sitting = Sitting(jury, asked.min_jurors)
    options = Options(criterion=asked.criterion, seed=asked.seed)  # as `calibrate` by default
    checked(scores, sitting, options)
    _say_who(asked, jury, silent, json_to)
    with threadpool_limits(1), progress("resampling", 1.0) as at:
        found = predictions(scores, sitting, options, asked.level, at)
    needed = asked.min_jurors or len(jury)
    looked = Looked(jury, needed, asked.criterion or "", options.method, "")
    looked.remember(engine, [_evaluated(row) for row in found.rows], [], everything.ratings)
    return found


def _jury(scores: "Scores", asked: Asked, silent: list[str]) -> list[str]:
    """Return the jury; refuse a juror whom the study does not know."""
    jury = asked.jurors or all_jurors(scores)
    if not jury:
        raise BadInput(
            "no juror has rated anything in this study yet: `medjury jury run PANEL` lets one "
            "rate, `medjury ratings FILE` brings in ratings made elsewhere"
        )
    known = {*scores.raters("juror"), *silent}
    if lost := [name for name in jury if name not in known]:
        has = f"it has {', '.join(sorted(known))}" if known else "it has none"
        raise Unknown(f"no ratings by a juror {', '.join(lost)} in this study: {has}")
    return list(dict.fromkeys(jury))


def _say_who(asked: Asked, jury: list[str], silent: list[str], json_to: Path | None) -> None:
    """Print who sits on the jury, and who was asked in vain."""
    say(f"jury: {', '.join(jury)}", json_to)
    if silent:
        seat = "without a score from them" if asked.jurors else "not in this jury"
        say(f"asked, and gave no rating: {', '.join(silent)}; {seat}", json_to)


def _seated(scores: "Scores", jury: list[str], benchmark: str | None) -> "Scores":
    """Return the scores of one benchmark, or all; who sits on the jury has a seat in each."""
    scores = replace(scores, silent=frozenset(jury) - set(scores.raters("juror")))
    if benchmark is None:
        return scores
    if benchmark not in scores.benchmarks:
        raise Unknown(f"--benchmark {benchmark}: this study has {', '.join(scores.benchmarks)}")
    own = [
        table[table["benchmark"] == benchmark].reset_index(drop=True)
        for table in (scores.ratings, scores.responses)
    ]
    return replace(scores, ratings=own[0], responses=own[1], silent=frozenset(jury))


def _evaluated(row: "PredictedRow") -> dict[str, Any]:
    """Return the row of the agreement table that the ledger notes."""
    return {
        "benchmark": row.benchmark,
        "scorer": "jury",
        "n_responses": row.agreement.responses,
        "icc": row.agreement.icc,
    }


def figures(row: "PredictedRow") -> dict[str, Any]:
    """Return a row as JSON has it; what is undefined becomes None."""
    names = {"weight": "lambda", "n_rated": "n", "n_unrated": "N"}
    own = {names.get(name, name): value for name, value in vars(row).items()}
    found, note = own.pop("agreement"), own.pop("note")
    del own["simulated"]  # the note names them
    own |= {"icc": found.icc, "icc_low": found.low, "icc_high": found.high}
    own |= {"n_instances": found.instances, "validated": row.validated, "note": note}
    return {name: _figure(value) for name, value in own.items()}


def csv_rows(found: "Predicted") -> Iterator[list[object]]:
    """Yield a row a response as the file has it: nothing in it is a formula to a spreadsheet."""
    columns = list(found.responses.columns)
    rows = found.responses.itertuples(index=False, name=None)
    plain = (dict(zip(columns, map(_figure, row), strict=True)) for row in rows)
    yield from cells(columns, (tuple(_named(row).values()) for row in plain))


def _named(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its instance's own name."""
    own = str(row["instance_id"]).removeprefix(f"{row['benchmark']}/")
    return row | {"instance_id": own}


def _figure(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value

"""`medjury rubric export`: a rubric, its panel and what was validated, for other tools."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from sqlalchemy import Engine

from data.errors import BadInput, TooFew
from data.queries import benchmarks
from data.queries.attempts import juror_profiles
from data.queries.ledger import fingerprint, tried
from data.queries.record import verify as verify_record
from data.queries.validation import Behind, Seat, behind, caveats, evidence, material, needed
from data.rubric import Rubric, read_rubric
from jury.exports.bundle import digest, figure, reasons
from jury.exports.export import Export, ExportRow, refuse_full, write_folder
from jury.panel import Panel, read_panel, shipped
from medjury.cli.options import Db, Seed, rubric_named, study_of
from medjury.cli.output import progress, say
from medjury.services.ledger import Looked
from medjury.services.scores import scores_of

if TYPE_CHECKING:
    from calibration.scores import Scores

MODULES = {
    "medjury": "bundle",
    "helm": "helm",
    "inspect": "inspect",
    "promptfoo": "promptfoo",
    "openai": "openai_grader",
    "mlflow": "mlflow_judge",
}
KEPT = (
    *("icc", "f_low", "f_high", "boot_low", "boot_high", "n_responses", "n_instances"),
    *("n_clinicians", "n_missing", "spearman"),
)

Write = Callable[[Export], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Resampling:
    """How figures are computed."""

    reps: int = 2000
    seed: int = 0
    method: str = "paper"


def export(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME|FOLDER", help="A rubric of the study.")],
    to: Annotated[str, typer.Option("--to", metavar=f"[{'|'.join(MODULES)}]")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="New, or empty.")],
    panel: Annotated[str | None, typer.Option(metavar="PANEL", help="Who rates.")] = None,
    reps: Annotated[int, typer.Option(min=1, max=100_000)] = 2000,
    seed: Seed = 0,
    db: Db = None,
) -> None:
    """Take a rubric with its jury and what was validated to the tool that runs evaluations."""
    write = _writer(to)
    engine = study_of(context, db)
    rubric = rubric_of(engine, name)
    jury = read_panel(panel) if panel else _own_panel(engine)
    if jury.rubric and jury.rubric != rubric.name:
        raise BadInput(f"panel {jury.name} rates on {jury.rubric} only, not on {rubric.name}")
    refuse_full(out)
    record = validation(engine, rubric, seats_of(jury), Resampling(reps, seed))
    rows = tuple(
        ExportRow(one.instance_id, one.context, one.prompt, one.reference, one.response)
        for one in material(engine, rubric)
    )
    files = write(Export(rubric, jury, rows, record))
    write_folder(out, files)
    say(f"{rubric.name} for {to}: {', '.join(sorted(files))} in {out}")
    say(record["status"].upper())
    for line in (*record["reasons"], *record["caveats"]):
        say(f"- {line}")


def _writer(to: str) -> Write:
    """Return what writes a format."""
    there = [name for name, module in MODULES.items() if find_spec(f"jury.exports.{module}")]
    if to not in there:
        raise typer.BadParameter(f"{to!r} is none of {', '.join(there)}", param_hint="--to")
    write: Write = import_module(f"jury.exports.{MODULES[to]}").write
    return write


def _own_panel(engine: Engine) -> Panel:
    """Return the shipped panel whose jurors, as they are now, have all rated in the study."""
    for panel in map(read_panel, sorted(shipped(), key=lambda name: name == "simulated")):
        known = juror_profiles(engine, [one.name for one in panel.juror])
        if all(known.get(one.name) == one.profile() for one in panel.juror):
            return panel
    raise BadInput(
        "whose jury is to be exported? No panel that ships with medjury has rated in this study: "
        "give --panel PANEL"
    )


def rubric_of(engine: Engine, name: str) -> Rubric:
    """Return the rubric that the study's benchmarks use by that name, else a shipped or own one.

    Raises
    ------
    BadInput
        If benchmarks use several rubrics of that name.
    """
    used = {one.rubric.sha256: one.rubric for one in benchmarks(engine) if one.rubric.name == name}
    if len(used) > 1:
        raise BadInput(f"rubric {name}: the study uses several of that name: give a folder")
    return next(iter(used.values()), None) or rubric_named(engine, name) or read_rubric(name)


def seats_of(panel: Panel) -> list[Seat]:
    """Return the jurors as a record knows them: by name and profile."""
    return [{"name": one.name} | one.profile() for one in panel.juror]


def validation(
    engine: Engine, rubric: Rubric, seats: Sequence[Seat], asked: Resampling
) -> dict[str, Any]:
    """Return the validation record of a rubric and jurors, computed from the study: JSON values.

    That the jury was held against the clinicians is noted in the ledger, unless it is there.
    """
    found, names = behind(engine, rubric), [str(one["name"]) for one in seats]
    made_up = [one.name for one in read_panel("simulated").juror]
    told, least = evidence(found, seats, made_up), needed(engine)
    scores = _scores(engine, found, names)
    figures = _figures(engine, scores, rubric, names, asked) if scores is not None else []
    counts = _counts(scores, rubric, names, figures)
    record: dict[str, Any] = {
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "version": version("medjury"),
        "method": asked.method,
        "reps": asked.reps,
        "seed": asked.seed,
        **counts,
        "needed": {key: getattr(least, key) for key in least.__slots__},
        "evidence": told | {"record_findings": len(verify_record(engine).findings)},
        "figures": figures,
        "juries_tried": len(tried(engine)),
        "sha256": {
            "rubric": rubric.sha256,
            "panel": digest(list(seats)),
            "data": fingerprint(scores.ratings) if scores is not None else "",
        },
    }
    why = reasons(record)
    status = "not validated" if why else "validated"
    return {"status": status, "reasons": why, "caveats": caveats(engine, found, seats), **record}


def _scores(engine: Engine, found: Behind, names: Sequence[str]) -> "Scores | None":
    """Return the ratings on the rubric by clinicians and these jurors; None without clinicians."""
    if not any(one.kind == "clinician" for one in found.raters):
        return None
    whole = scores_of(engine)
    mine = whole.ratings["benchmark"].isin(found.benchmarks) & (
        (whole.ratings["kind"] == "clinician") | whole.ratings["rater"].isin(names)
    )
    ratings = whole.ratings[mine].reset_index(drop=True)
    kept = whole.responses["benchmark"].isin(found.benchmarks)
    silent = frozenset(names) - set(ratings.loc[ratings["kind"] == "juror", "rater"])
    responses = whole.responses[kept].reset_index(drop=True)
    return replace(whole, ratings=ratings, responses=responses, silent=silent)


def _figures(
    engine: Engine, scores: "Scores", rubric: Rubric, names: Sequence[str], asked: Resampling
) -> list[dict[str, Any]]:
    """Return the rows of composite and criteria, without notes: those may name clinicians."""
    from threadpoolctl import threadpool_limits

    from calibration.table import agreement_table, to_json

    figures: list[dict[str, Any]] = []
    criteria = (None, *rubric.criteria)
    with threadpool_limits(1), progress("resampling", len(criteria)) as at:
        for place, criterion in enumerate(criteria):
            try:
                table = agreement_table(
                    scores, jurors=names, criterion=criterion, reps=asked.reps, seed=asked.seed
                )
            except TooFew:
                continue
            rows: Any = to_json(table, "paper", asked.reps, asked.seed)["rows"]
            _remember(engine, names, criterion, rows)
            figures += [
                _kept(criterion, row) for row in rows if row["benchmark"] == rows[-1]["benchmark"]
            ]
            at(place + 1)
    return figures


def _kept(criterion: str | None, row: Mapping[str, Any]) -> dict[str, Any]:
    told = {"criterion": criterion, "scorer": row["scorer"], "benchmark": row["benchmark"]}
    return told | {name: row[name] for name in KEPT}


def _remember(
    engine: Engine, names: Sequence[str], criterion: str | None, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Note the jury in the ledger, as `calibrate` does, unless all of this is there already."""
    looked = Looked(names, len(names), criterion or "", "paper", "")
    jury = [row for row in rows if row["scorer"] == "jury" and row["icc"] is not None]
    known = {one.key for one in tried(engine)}
    new = [row for row in jury if looked.entry(row["benchmark"]).key not in known]
    if new:
        from data.queries.frames import ratings_frame

        looked.remember(engine, new, [], ratings_frame(engine))


def _counts(
    scores: "Scores | None",
    rubric: Rubric,
    names: Sequence[str],
    figures: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return on how much the composite's figures rest, clinicians as a number only."""
    jury = figure({"figures": figures}, None, "jury")
    counts = {
        name: jury.get(name, 0)
        for name in ("n_responses", "n_instances", "n_clinicians", "n_missing")
    }
    per = 0.0
    if scores is not None and counts["n_responses"]:
        first = scores.ratings[scores.ratings["pass_"] == 0]
        given = first.groupby(["response_id", "rater", "kind", "replicate"])["criterion"].nunique()
        whole = (
            given[given == len(rubric.criteria)]
            .reset_index()
            .drop_duplicates(["response_id", "rater"])
        )
        heard = whole[whole["kind"] == "juror"].groupby("response_id").size()
        scored = heard[heard == len(names)].index
        doctors = whole[(whole["kind"] == "clinician") & whole["response_id"].isin(scored)]
        per = round(len(doctors) / max(doctors["response_id"].nunique(), 1), 4)
    return counts | {"clinicians_per_response": per}

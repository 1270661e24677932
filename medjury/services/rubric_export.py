"""A rubric, its jury and the validation of both, as files for another tool."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine

from calibration.decision import DecisionKind
from calibration.json_values import json_value, protocol_json
from calibration.values import RESAMPLES, AnalysisOptions, Method
from data.errors import BadInput, TooFew
from data.rubric import Rubric
from data.study.ledger import compositions_tried, fingerprint
from data.study.rubrics import (
    RubricUse,
    Seat,
    caveats,
    material,
    rubric_use,
    rubrics_known,
    validation_evidence,
)
from data.study.standing import study_id
from data.study.verify import verify as verify_record
from jury.admission import admit
from jury.exports.bundle import Export, digest, reasons, refuse_untold
from jury.panel import Panel, read_panel
from medjury.services.ledger import Looked
from medjury.services.panels import unprobed
from medjury.services.record import protocol_of
from medjury.services.scores import scores_of

if TYPE_CHECKING:
    from calibration.scope import AgreementRow
    from calibration.scores import Scores


COUNTS = ("n_responses", "n_instances", "n_clinicians", "n_missing")
KEPT = (
    *(
        "icc",
        "low",
        "high",
        "f_low",
        "f_high",
        "n_responses",
        "n_instances",
    ),
    *("n_clinicians", "n_missing", "spearman"),
)

NO_FIGURE = {"estimate": None, "low": None, "high": None}

Tick = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A tool that a validated jury can be exported for.

    Attributes
    ----------
    label : its name on screens
    writer : module and function of `jury.exports`
    names_hosts : whether its files name the jurors' hosts, and the variables of their keys
    """

    label: str
    writer: str
    names_hosts: bool = False


EXPORT_FORMATS = {
    "medjury": ExportFormat("medjury, with all evidence", "bundle:write"),
    "helm": ExportFormat("HELM", "helm:write", names_hosts=True),
    "inspect": ExportFormat("Inspect", "scorers:write_inspect", names_hosts=True),
    "promptfoo": ExportFormat("promptfoo", "scorers:write_promptfoo", names_hosts=True),
    "mlflow": ExportFormat("MLflow", "scorers:write_mlflow", names_hosts=True),
}
Write = Callable[[Export], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Resampling:
    """How figures are computed."""

    reps: int = RESAMPLES
    seed: int = 0
    method: Method = "paper"

    def options(self, criterion: str | None) -> AnalysisOptions:
        """Return the analysis of one criterion, None being the composite."""
        return AnalysisOptions(
            criterion=criterion, method=self.method, reps=self.reps, seed=self.seed
        )


@dataclass(frozen=True, slots=True)
class Validation:
    """A validation record, as JSON values, and why the ledger could not be told of the jury."""

    record: Mapping[str, Any]
    unnoted: str = ""


def seats_of(panel: Panel) -> list[Seat]:
    """Return the jurors as a record knows them: by name and profile."""
    return [{"name": juror.name} | juror.profile() for juror in panel.juror]


def validation(
    engine: Engine,
    rubric: Rubric,
    seats: Sequence[Seat],
    resampling: Resampling,
    tick: Tick | None = None,
) -> Validation:
    """Return the validation record of a rubric and jurors, computed from the study.

    That the jury was held against the clinicians is noted in the ledger, unless it is there.
    `tick` is called with the share of the work done.
    """
    evidence_base, names = rubric_use(engine, rubric), [str(seat["name"]) for seat in seats]
    if protocol := protocol_of(engine):
        resampling = replace(resampling, method=protocol.method)
    stands = _evidence(engine, evidence_base, seats)
    scores = _scores(engine, evidence_base, names)
    tables = dict(_tables(scores, rubric, names, resampling, tick)) if scores else {}
    unnoted = [_remember(engine, names, criterion, rows) for criterion, rows in tables.items()]
    record = {
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "version": version("medjury"),
        "method": resampling.method,
        "reps": resampling.reps,
        "seed": resampling.seed,
        **_counts(scores, rubric, names, tables.get(None, ())),
        **stands,
        **_verdict(engine, scores, names, resampling, tables),
        "figures": [_kept(name, row) for name, rows in tables.items() for row in _widest(rows)],
        "juries_tried": len(compositions_tried(engine)),
        "checked_with": _checked(scores, names, resampling, tables) if scores else None,
        "sha256": {
            "rubric": rubric.sha256,
            "panel": digest(list(seats)),
            "data": fingerprint(scores.ratings) if scores else "",
        },
    }
    why = reasons(record)
    status = "not validated" if why else "validated"
    judged = {"status": status, "reasons": why, "caveats": caveats(engine, evidence_base, seats)}
    return Validation(judged | record, next(filter(None, unnoted), ""))


def _checked(
    scores: "Scores",
    names: Sequence[str],
    resampling: Resampling,
    tables: "Mapping[str | None, Sequence[AgreementRow]]",
) -> dict[str, Any] | None:
    """Return how far pingouin's ICCs are from those of all tables; None where it is not installed."""
    from calibration.pingouin_check import pingouin_check

    checks = []
    for criterion, rows in tables.items():
        options = replace(resampling.options(criterion), jurors=tuple(names))
        check = pingouin_check(scores, options, rows)
        if check is None:
            return None
        checks.append(check)
    compared = [check for check in checks if check.n]
    if not compared:
        return None
    worst = max(compared, key=lambda check: check.largest_difference)
    return replace(worst, n=sum(check.n for check in compared)).to_json()


def _verdict(
    engine: Engine,
    scores: "Scores | None",
    names: Sequence[str],
    resampling: Resampling,
    tables: "Mapping[str | None, Sequence[AgreementRow]]",
) -> dict[str, Any]:
    """Return the study's protocol, and its verdict on this jury and these benchmarks."""
    from calibration.detection import detection
    from calibration.verdict import decide
    from medjury.services.calibration import claim_of

    protocol = protocol_of(engine)
    criterion = (protocol.criterion or None) if protocol else None
    rows = tables.get(criterion, ())
    if scores is None or not rows:
        return {
            "protocol": protocol_json(protocol),
            "decision": {"kind": DecisionKind.UNDEFINED.value} | NO_FIGURE,
        }
    options = replace(resampling.options(criterion), jurors=tuple(names))
    critical = protocol.critical if protocol else ()
    detected = detection(scores, options, critical)
    verdict = decide(_widest(rows), claim_of(protocol, names, options, detected))
    figures = ("estimate", "low", "high", "margin", "scope", "clinicians")
    decision = {"kind": verdict.kind.value} | {
        name: json_value(getattr(verdict, name)) for name in figures
    }
    return {"protocol": protocol_json(protocol), "decision": decision}


def _evidence(engine: Engine, evidence_base: RubricUse, seats: Sequence[Seat]) -> dict[str, Any]:
    """Return what stands behind a jury."""
    made_up = [juror.name for juror in read_panel("simulated").juror]
    figures = validation_evidence(evidence_base, seats, made_up)
    findings = {"record_findings": len(verify_record(engine).findings)}
    return {"evidence": figures | findings}


def _scores(engine: Engine, evidence_base: RubricUse, names: Sequence[str]) -> "Scores | None":
    """Return the ratings on the rubric by clinicians and these jurors; None without clinicians."""
    if not any(rater.kind == "clinician" for rater in evidence_base.raters):
        return None
    every = scores_of(engine)
    mine = every.ratings["benchmark"].isin(evidence_base.benchmarks) & (
        (every.ratings["kind"] == "clinician") | every.ratings["rater"].isin(names)
    )
    ratings = every.ratings[mine].reset_index(drop=True)
    of_benchmarks = every.responses["benchmark"].isin(evidence_base.benchmarks)
    silent = frozenset(names) - set(ratings.loc[ratings["kind"] == "juror", "rater"])
    responses = every.responses[of_benchmarks].reset_index(drop=True)
    return replace(every, ratings=ratings, responses=responses, silent=silent)


def _tables(
    scores: "Scores",
    rubric: Rubric,
    names: Sequence[str],
    resampling: Resampling,
    tick: Tick | None,
) -> Iterator[tuple[str | None, "Sequence[AgreementRow]"]]:
    """Yield the agreement's rows of the composite (None) and of each criterion with enough data."""
    from threadpoolctl import threadpool_limits

    from calibration.table import agreement_rows

    criteria = (None, *rubric.criteria)
    with threadpool_limits(1):
        for number, criterion in enumerate(criteria, 1):
            with suppress(TooFew):
                options = replace(resampling.options(criterion), jurors=tuple(names))
                yield criterion, agreement_rows(scores, options)
            if tick is not None:
                tick(number / len(criteria))


def _widest(rows: "Sequence[AgreementRow]") -> "list[AgreementRow]":
    """Return the rows of all benchmarks together, or of the only one."""
    return [row for row in rows if row.benchmark == rows[-1].benchmark]


def _kept(criterion: str | None, row: "AgreementRow") -> dict[str, Any]:
    """Return a row of figures without its notes: those may name clinicians."""
    about = {"criterion": criterion, "scorer": row.scorer, "benchmark": row.benchmark}
    return about | {name: json_value(getattr(row, name)) for name in KEPT}


def _remember(
    engine: Engine, names: Sequence[str], criterion: str | None, rows: "Sequence[AgreementRow]"
) -> str:
    """Note the jury in the ledger, as `calibrate` does; return why not, "" where it is there."""
    looked = Looked(names, len(names), criterion or "", "paper", "")
    jury = [row for row in rows if row.scorer == "jury" and math.isfinite(row.icc)]
    keys = {entry.key for entry in compositions_tried(engine)}
    new = [row for row in jury if looked.entry(row.benchmark).key not in keys]
    return looked.remember(engine, new, [], scores_of(engine).ratings) if new else ""


def _counts(
    scores: "Scores | None",
    rubric: Rubric,
    names: Sequence[str],
    rows: "Sequence[AgreementRow]",
) -> dict[str, Any]:
    """Return on how much the composite's figures rest, clinicians as a number only."""
    jury = next((row for row in _widest(rows) if row.scorer == "jury"), None)
    counts = {name: getattr(jury, name, 0) for name in COUNTS}
    per = 0.0
    if scores is not None and counts["n_responses"]:
        first = scores.ratings[scores.ratings["pass_"] == 0]
        criteria_rated = first.groupby(["response_id", "rater", "kind", "replicate"])[
            "criterion"
        ].nunique()
        complete = (
            criteria_rated[criteria_rated == len(rubric.criteria)]
            .reset_index()
            .drop_duplicates(["response_id", "rater"])
        )
        jurors_per_response = complete[complete["kind"] == "juror"].groupby("response_id").size()
        scored = jurors_per_response[jurors_per_response == len(names)].index
        doctors = complete[(complete["kind"] == "clinician") & complete["response_id"].isin(scored)]
        per = round(len(doctors) / max(doctors["response_id"].nunique(), 1), 4)
    return counts | {"clinicians_per_response": per}


@dataclass(frozen=True, slots=True)
class RubricExport:
    """What is asked of an export.

    Attributes
    ----------
    rubric
        Its canonical text, `Rubric.to_json`.
    panel
        Who rates.
    tool
        One of `tools`.
    """

    rubric: str
    panel: Panel
    tool: str
    reps: int = RESAMPLES
    seed: int = 0


@dataclass(frozen=True, slots=True)
class RubricFiles:
    """The files, and what they say of the jury.

    Attributes
    ----------
    files
        Name -> text.
    validated
        Whether the jury meets what the study asks for; otherwise `reasons` say why not.
    unnoted
        Why the ledger could not be told that the jury was looked at; empty where it was.
    """

    files: Mapping[str, str]
    validated: bool
    reasons: tuple[str, ...]
    caveats: tuple[str, ...]
    unnoted: str


def tools() -> list[str]:
    """Return the tools that a rubric can be exported for."""
    modules = {name: spec.writer.partition(":")[0] for name, spec in EXPORT_FORMATS.items()}
    return [name for name, module in modules.items() if find_spec(f"jury.exports.{module}")]


def exported_rubric(engine: Engine, request: RubricExport, tick: Tick | None = None) -> RubricFiles:
    """Return a rubric's files for a tool, the figures computed anew from the study's ratings.

    Raises
    ------
    BadInput
        If the panel rates on another rubric only, a juror was found not fit by its newest probe,
        or a tool would be told of a host, or of a key for it, that the server's owner does not
        allow.
    """
    rubric, panel = Rubric.from_json(request.rubric), request.panel
    refuse_other(panel, rubric)
    of_probes = unprobed(engine, panel)
    if rubric.points is not None:
        raise BadInput(
            f"rubric {rubric.name}: is of points of the case, which no other tool reads; "
            "`medjury share export` writes the points of every case and all answers"
        )
    format_asked = EXPORT_FORMATS[request.tool]
    if format_asked.names_hosts:
        refuse_untold(panel)
        admit(panel)
    words = _words_read(engine, panel) or rubric  # what is refused is refused before it is computed
    resampling = Resampling(request.reps, request.seed)
    validated = validation(engine, rubric, seats_of(panel), resampling, tick)
    record = validated.record
    rows = tuple(material(engine, rubric))
    write: Write = resolve_name(f"jury.exports.{format_asked.writer}")
    return RubricFiles(
        dict(write(Export(words, panel, rows, record, study_id(engine)))),
        record["status"] == "validated",
        tuple(record["reasons"]),
        (*record["caveats"], *_texts_in(words), *of_probes),
        validated.unnoted,
    )


def _words_read(engine: Engine, panel: Panel) -> Rubric | None:
    """Return the rubric that all jurors of a panel read instead of the clinicians', if they do.

    Raises
    ------
    BadInput
        If they read several, or one that the study does not keep.
    """
    reads = {juror.reads for juror in panel.juror}
    if reads == {""}:
        return None
    rubric = rubrics_known(engine).get(next(iter(reads))) if len(reads) == 1 else None
    if rubric is None:
        raise BadInput(
            f"panel {panel.name}: its jurors do not all read one rubric of this study, and an export "
            "writes one; choose a panel with jurors that read the same"
        )
    return rubric


def _texts_in(rubric: Rubric) -> tuple[str, ...]:
    if not rubric.example:
        return ()
    return (
        f"the rubric shows {len(rubric.example)} responses of this study, with their sources and what "
        "clinicians wrote of them: read them before the files leave the house",
    )


def refuse_other(panel: Panel, rubric: Rubric) -> None:
    """Raise BadInput if a panel may rate on another rubric only."""
    if panel.rubric and panel.rubric != rubric.name:
        raise BadInput(f"panel {panel.name} rates on {panel.rubric} only, not on {rubric.name}")

"""What a study says for a rubric and a jury: the validation record, computed from the ratings."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine

from calibration.decision import DecisionKind
from calibration.json_values import json_value
from calibration.values import AnalysisOptions, Method
from data.errors import TooFew
from data.queries.frames import ratings_frame
from data.queries.ledger import compositions_tried, fingerprint
from data.queries.record import verify as verify_record
from data.queries.validation import RubricUse, Seat, caveats, rubric_use, validation_evidence
from data.rubric import Rubric
from jury.exports.bundle import digest, reasons
from jury.panel import Panel, read_panel
from medjury.services.ledger import Looked
from medjury.services.record import protocol_json, protocol_of
from medjury.services.scores import scores_of

if TYPE_CHECKING:
    from calibration.scope import AgreementRow
    from calibration.scores import Scores

COUNTS = ("n_responses", "n_instances", "n_clinicians", "n_missing")
KEPT = (
    *("icc", "f_low", "f_high", "boot_low", "boot_high", "n_responses", "n_instances"),
    *("n_clinicians", "n_missing", "spearman"),
)

NO_FIGURE = {"estimate": None, "low": None, "high": None}

Tick = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Resampling:
    """How figures are computed."""

    reps: int = 2000
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
    return [{"name": one.name} | one.profile() for one in panel.juror]


def validation(
    engine: Engine,
    rubric: Rubric,
    seats: Sequence[Seat],
    asked: Resampling,
    tick: Tick | None = None,
) -> Validation:
    """Return the validation record of a rubric and jurors, computed from the study.

    That the jury was held against the clinicians is noted in the ledger, unless it is there.
    `tick` is called with the share of the work done.
    """
    found, names = rubric_use(engine, rubric), [str(one["name"]) for one in seats]
    stands = _evidence(engine, found, seats)
    scores = _scores(engine, found, names)
    tables = dict(_tables(scores, rubric, names, asked, tick)) if scores else {}
    unnoted = [_remember(engine, names, criterion, rows) for criterion, rows in tables.items()]
    record = {
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "version": version("medjury"),
        "method": asked.method,
        "reps": asked.reps,
        "seed": asked.seed,
        **_counts(scores, rubric, names, tables.get(None, ())),
        **stands,
        **_verdict(engine, scores, names, asked, tables),
        "figures": [_kept(name, row) for name, rows in tables.items() for row in _widest(rows)],
        "juries_tried": len(compositions_tried(engine)),
        "sha256": {
            "rubric": rubric.sha256,
            "panel": digest(list(seats)),
            "data": fingerprint(scores.ratings) if scores else "",
        },
    }
    why = reasons(record)
    status = "not validated" if why else "validated"
    judged = {"status": status, "reasons": why, "caveats": caveats(engine, found, seats)}
    return Validation(judged | record, next(filter(None, unnoted), ""))


def _verdict(
    engine: Engine,
    scores: "Scores | None",
    names: Sequence[str],
    asked: Resampling,
    tables: "Mapping[str | None, Sequence[AgreementRow]]",
) -> dict[str, Any]:
    """Return the study's protocol, and its verdict on this jury and these benchmarks."""
    from calibration.detection import detection
    from calibration.verdict import decide
    from medjury.services.calibrate import claim_of

    protocol = protocol_of(engine)
    criterion = (protocol.criterion or None) if protocol else None
    rows = tables.get(criterion, ())
    if scores is None or not rows:
        return {
            "protocol": protocol_json(protocol),
            "decision": {"kind": DecisionKind.UNDEFINED.value} | NO_FIGURE,
        }
    options = replace(asked.options(criterion), jurors=tuple(names))
    critical = protocol.critical if protocol else ()
    detected = detection(scores, options, critical)
    found = decide(_widest(rows), claim_of(protocol, names, options, detected))
    figure = {"estimate": found.estimate, "low": found.low, "high": found.high}
    decision = {"kind": found.kind.value} | {
        name: json_value(value) for name, value in figure.items()
    }
    return {"protocol": protocol_json(protocol), "decision": decision}


def _evidence(engine: Engine, found: RubricUse, seats: Sequence[Seat]) -> dict[str, Any]:
    """Return what stands behind a jury."""
    made_up = [one.name for one in read_panel("simulated").juror]
    told = validation_evidence(found, seats, made_up)
    findings = {"record_findings": len(verify_record(engine).findings)}
    return {"evidence": told | findings}


def _scores(engine: Engine, found: RubricUse, names: Sequence[str]) -> "Scores | None":
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


def _tables(
    scores: "Scores",
    rubric: Rubric,
    names: Sequence[str],
    asked: Resampling,
    tick: Tick | None,
) -> Iterator[tuple[str | None, "Sequence[AgreementRow]"]]:
    """Yield the agreement's rows of the composite (None) and of each criterion with enough data."""
    from threadpoolctl import threadpool_limits

    from calibration.table import agreement_rows

    criteria = (None, *rubric.criteria)
    with threadpool_limits(1):
        for place, criterion in enumerate(criteria, 1):
            with suppress(TooFew):
                options = replace(asked.options(criterion), jurors=tuple(names))
                yield criterion, agreement_rows(scores, options)
            if tick is not None:
                tick(place / len(criteria))


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
    known = {one.key for one in compositions_tried(engine)}
    new = [row for row in jury if looked.entry(row.benchmark).key not in known]
    return looked.remember(engine, new, [], ratings_frame(engine)) if new else ""


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

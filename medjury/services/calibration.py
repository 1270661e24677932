"""What scores say of a jury: the agreement table, what may be said, and as much behind it as was asked for.

Nothing here needs a study or its database: `calibrate` fills in what a study knows beside its scores.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pandas as pd
from threadpoolctl import threadpool_limits

from calibration.adjudicated import SECTIONS_BETWEEN_CLINICIANS, with_independent
from calibration.clinicians import ClinicianRow
from calibration.detection import DetectionRow, all_misses, detection, untested
from calibration.json_values import decision_json, json_value, protocol_json
from calibration.notes import counted, note
from calibration.protocol import Protocol
from calibration.reliability import ReliabilityRow, clinician_reliability
from calibration.report.content import Content, criterion_rows, paired_means
from calibration.scope import (
    AgreementRow,
    CliniciansRow,
    LikeForLikeRow,
    checked_jury,
    without_clinicians,
)
from calibration.scores import Scores
from calibration.subgroups import subgroup_rows
from calibration.table import agreement_rows
from calibration.tables.numbers import DASH, fixed
from calibration.values import AnalysisOptions
from calibration.verdict import JuryClaim, decisions
from medjury.services.ledger import Looked

if TYPE_CHECKING:
    from calibration.details import StudyContext
    from calibration.pingouin_check import PingouinCheck
    from data.study.assignments import RatingHabits

Tick = Callable[[float], None]


DEFAULT = AnalysisOptions()


@dataclass(frozen=True, slots=True)
class CalibrationQuestion:
    """What is asked: how to analyse, and how much beyond the table.

    Attributes
    ----------
    details : every section of statistics behind the table
    page : each criterion and each response's means too, as a page shows them
    further : the mixed model that stands in a note alone
    reference : how reliable the clinicians are, as JSON has it; details and a page always have it
    check : whether pingouin finds the same ICCs; a page always says so
    families : juror -> model family, of a panel; they count for jurors of whom the study has none
    """

    options: AnalysisOptions = DEFAULT
    details: bool = False
    page: bool = False
    further: bool = True
    reference: bool = True
    families: tuple[tuple[str, str], ...] = ()
    check: bool = False


THE_TABLE = CalibrationQuestion()


@dataclass(frozen=True, slots=True)
class Readings:
    """Which readings figures are of, and how many responses of the study are settled.

    Attributes
    ----------
    reading : "independent" or "adjudicated"
    third, consensus : responses whose difference such a reading settled
    """

    reading: str = "independent"
    third: int = 0
    consensus: int = 0

    @property
    def responses(self) -> int:
        """Return how many responses are settled."""
        return self.third + self.consensus

    @property
    def named(self) -> str:
        """Return which readings they are, "" where the study has but one kind."""
        return self.reading if self.responses or self.reading == "adjudicated" else ""

    @property
    def told(self) -> tuple[str, ...]:
        """Return what a reader has to know of settled differences."""
        settled = f"{counted(self.responses, 'response')} (third reading {self.third}, consensus {self.consensus})"
        if self.reading == "adjudicated":
            return (
                f"adjudicated readings: on {settled} the settling reading stands in the place of the "
                "clinicians' mean; what compares clinicians with one another is of independent ones",
            )
        left = f"independent readings: those that settled differences on {settled} are left out"
        return (left,) if self.responses else ()

    def to_json(self) -> dict[str, object]:
        """Return the keys that `analyse calibrate --json` has."""
        counts = {"responses": self.responses, "third": self.third, "consensus": self.consensus}
        return {"reading": self.reading, "adjudicated": counts}


@dataclass(frozen=True, slots=True)
class Kept:
    """The scores that count, what is told of those that do not, and the counts for JSON."""

    scores: "Scores"
    told: tuple[str, ...] = ()
    counts: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Return the key that `analyse calibrate --json` has only where instances were left out."""
        return {"references": dict(self.counts)} if self.counts else {}


@dataclass(frozen=True, eq=False, kw_only=True)
class Calibration(Content):
    """The answer: the table, what may be said, and as much behind it as was asked for.

    Attributes
    ----------
    options : of the question, with who sits on the jury
    ratings : every rating of the study that counts
    scores : what is analysed
    independent : the same without settled differences: `scores` itself where none are asked for
    looked : the jury, as the ledger has it
    silent : jurors who were asked and gave no rating
    reference : how reliable the clinicians are, and the jury's agreement freed of their error
    checked : how far pingouin's ICCs are from these; None where it was not asked or is not installed
    readings : which readings the figures are of, and how many differences are settled
    told : lines that every report owes its reader
    habits : how each clinician rated, by name
    warnings : what went wrong without touching a figure
    """

    question: CalibrationQuestion
    options: AnalysisOptions
    ratings: pd.DataFrame
    scores: Scores
    independent: Scores
    kept: Kept
    looked: Looked
    silent: tuple[str, ...]
    readings: Readings
    told: tuple[str, ...]
    habits: "Mapping[str, RatingHabits]"
    reference: Sequence[ReliabilityRow] = ()
    checked: "PingouinCheck | None" = None
    warnings: tuple[str, ...] = ()

    @property
    def jury(self) -> Sequence[str]:
        """Return who sits on the jury."""
        return self.looked.jurors

    @property
    def raters(self) -> Sequence[ClinicianRow]:
        """Return each clinician against the others, on all benchmarks combined or on the only one."""
        between = [row for row in self.rows if isinstance(row, CliniciansRow)]
        return between[-1].each if between else ()


def of_scores(
    scores: Scores, question: CalibrationQuestion, protocol: Protocol | None
) -> Calibration:
    """Return the same of scores alone, without a study: nothing is noted anywhere.

    Raises as `calibrate`.
    """
    jury = list(question.options.jurors or scores.all_jurors())
    options = replace(question.options, jurors=tuple(jury) or None, further=question.further)
    checked_jury(scores, options)
    needed, criterion = options.min_jurors or len(jury), options.criterion or ""
    prepared = Calibration(
        question=question,
        options=options,
        ratings=scores.ratings,
        scores=scores,
        independent=scores,
        kept=Kept(scores),
        looked=Looked(jury, needed, criterion, options.method, ""),
        silent=(),
        readings=Readings(),
        told=(),
        habits={},
        protocol=protocol,
    )
    with threadpool_limits(1):
        found = with_checks(with_table(prepared))
        return with_details(found) if question.details or question.page else found


def with_table(calibration: Calibration, tick: Tick | None = None) -> Calibration:
    """Return a calibration with its table."""
    scores, options, protocol = calibration.scores, calibration.options, calibration.protocol
    critical = protocol.critical if protocol else ()
    rows = [
        _with_pace(_left_out(row, options), calibration.habits)
        for row in agreement_rows(scores, options, tick)
    ]
    detected = detection(scores, options, critical)
    if calibration.independent is not scores:
        rows = with_independent(rows, agreement_rows(calibration.independent, options))
        unsafe = detection(calibration.independent, options, critical)
        detected = with_independent(detected, unsafe)
    claim = claim_of(protocol, calibration.jury, calibration.question.options, detected)
    return replace(
        calibration,
        rows=rows,
        decisions={
            name: replace(decision, reading=calibration.readings.named)
            for name, decision in decisions(rows, claim).items()
        },
        detection=detected,
        told=(*calibration.told, *_odd_habits(calibration, rows)),
        subgroups=subgroup_rows(scores, options, options.groups, critical),
    )


def with_checks(calibration: Calibration) -> Calibration:
    """Return a calibration with how reliable the clinicians are, what pingouin finds, and each criterion."""
    question, scores, options = calibration.question, calibration.scores, calibration.options
    warnings, reference = calibration.warnings, calibration.reference
    changed = dict[str, Any]()
    if (question.reference or question.details or question.page) and not reference:
        reference = clinician_reliability(calibration.independent, options)
    if question.check or question.page:
        from calibration.pingouin_check import NOT_CHECKED, pingouin_check

        own = [row for row in calibration.rows if not row.told("independent_readings")]
        check = pingouin_check(scores, options, own)
        warnings += (check.warning,) if check and check.differs else ()
        changed |= {"checked": check, "check_line": check.line if check else NOT_CHECKED}
    if calibration.jury and question.page:
        changed["criteria"] = criterion_rows(scores, options)
        changed["paired"] = paired_means(scores, options)
    return replace(calibration, reference=reference, warnings=warnings, **changed)


def with_details(
    calibration: Calibration, known: "StudyContext | None" = None, tick: Tick | None = None
) -> Calibration:
    """Return a calibration with every section of statistics; `known` is what its study tells."""
    from calibration.details import StudyContext, details

    scores, options = calibration.scores, calibration.options
    context = replace(known or StudyContext(), reference=calibration.reference)
    sections = details(scores, options, context, tick)
    if calibration.independent is not scores:
        others = details(calibration.independent, options, context)
        sections |= {name: others.get(name, []) for name in SECTIONS_BETWEEN_CLINICIANS}
    return replace(calibration, details=sections)


def _left_out(row: AgreementRow, options: AnalysisOptions) -> AgreementRow:
    """Return a row with a note on the clinicians that were left out on purpose."""
    if not options.without:
        return row
    return replace(
        row,
        notes=(
            note("left_out", "left out on purpose: {clinicians}", clinicians=options.without),
            *row.notes,
        ),
    )


def _with_pace(row: AgreementRow, habits: "Mapping[str, RatingHabits]") -> AgreementRow:
    """Return a row in which each clinician is said to have been fast, or not."""
    if not isinstance(row, CliniciansRow):
        return row
    fast = {name: one.is_fast for name, one in habits.items()}
    return replace(row, each=tuple(replace(one, fast=fast.get(one.rater)) for one in row.each))


def _odd_habits(calibration: Calibration, rows: Sequence[AgreementRow]) -> Iterator[str]:
    """Yield who rated faster than one can read or the same over and over, and what hangs on them."""
    odd = [
        calibration.habits[name]
        for name in calibration.scores.raters("clinician")
        if name in calibration.habits
        and (calibration.habits[name].is_fast or calibration.habits[name].is_straight)
    ]
    for one in odd:
        if one.is_fast:
            yield (
                f"{one.rater}: {one.n_hasty} of {one.n_timed} ratings came faster than the response "
                "alone can be scanned for a word (600 words a minute, Carver 1992)"
            )
        if one.is_straight:
            yield f"{one.rater}: {one.longest_run} responses in a row got the same scores"
    held = [row for row in rows if isinstance(row, LikeForLikeRow)]
    if not odd or not held or not calibration.jury:
        return
    names = [one.rater for one in odd]
    rest = without_clinicians(calibration.scores, names)
    options = replace(calibration.options, further=False)
    others = [row for row in agreement_rows(rest, options) if isinstance(row, LikeForLikeRow)]
    without = fixed(others[-1].icc) if others else DASH
    yield (
        f"like for like is {fixed(held[-1].icc)} with them, {without} without "
        f"{', '.join(names)} (`--without` has all figures so)"
    )


def claim_of(
    protocol: Protocol | None,
    jurors: Sequence[str],
    options: AnalysisOptions,
    detected: Sequence[DetectionRow],
) -> JuryClaim:
    """Return what is claimed of a jury, with the unsafe responses that it misses.

    Parameters
    ----------
    protocol : of the study, None where it was not fixed
    jurors, options : who sits on the jury, and the analysis
    detected : of `calibration.detection.detection`, asked with `critical` of the protocol
    """
    limits = protocol.critical if protocol else ()
    every = all_misses(detected, limits)
    if protocol is None or not protocol.is_about(jurors, options):
        return JuryClaim(protocol, is_of_protocol=False, misses=every, without=options.without)
    return JuryClaim(protocol, misses=every, untested=untested(detected, limits))


def as_json(calibration: Calibration, *, details: bool = False) -> dict[str, Any]:
    """Return a calibration as `analyse calibrate --json` has it; `details` adds what only a page shows."""
    options = calibration.question.options
    body: dict[str, Any] = {
        "method": options.method,
        "k": 2,
        "reps": options.reps,
        "seed": options.seed,
        "decision": decision_json(calibration.decision),
        "protocol": protocol_json(calibration.protocol),
        **calibration.readings.to_json(),
        "rows": json_value(calibration.rows),
        "raters": json_value(calibration.raters),
        "reliability": json_value(calibration.reference),
    }
    if calibration.pairs:
        found = calibration.pairs.to_json()
        body |= {"pairs": found["pairs"], "models": found["models"], "juries": found["juries"]}
        body |= {"pair_decision": found["decision"], "pair_plan": found["plan"]}
    if calibration.question.details:
        body["details"] = json_value(calibration.details)
    body |= {
        "detection": json_value(calibration.detection),
        "subgroups": json_value(calibration.subgroups),
        **calibration.kept.to_json(),
        "checked_with": calibration.checked.to_json() if calibration.checked else None,
    }
    if details:
        body |= {
            "criteria": json_value(calibration.criteria),
            "paired": [
                {"benchmark": name, "responses": [*means.index]} | means.round(6).to_dict("list")
                for name, means in calibration.paired.items()
            ],
        }
    return body

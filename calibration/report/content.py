"""The content of a report: facts about the study, figures, and the jury on each criterion."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from calibration.columns import columns
from calibration.decision import NOTHING_RATED, Decision
from calibration.detection import DetectionRow
from calibration.notes import simulated_in, undefined
from calibration.other_measures import secondary_rows
from calibration.pair_results import PairResult
from calibration.protocol import Protocol
from calibration.scope import AgreementRow, scopes, why_undefined_scope
from calibration.scores import Scores
from calibration.subgroups import SubgroupRow
from calibration.table import agreement_rows
from calibration.values import COMBINED, NAN, AnalysisOptions
from data.errors import TooFew

DEFAULT = AnalysisOptions()
IN_POINTS = ("bias", "bias_low", "bias_high", "limits_low", "limits_high")


@dataclass(frozen=True)
class Study:
    """Facts about the study and the options. Nothing here names a response's author.

    Attributes
    ----------
    made : when, UTC
    options : of the analysis
    needed : jurors that must have scored a response
    fingerprint : SHA-256 of all ratings, "" where the jury was not looked at before
    jurors : name -> settings, with the `sha256` of all of them; empty of imported ratings
    silent : jurors who were asked and gave no rating
    other_models : juror -> the models that answered instead of the one that it was asked for
    rubrics : of each benchmark its `name` and its `rubric`
    tried : entries of the ledger, rows of `data.schema.Composition`
    usd, calls, calls_unknown : spent on all calls to jurors; so many of these have no price
    rated : responses that any juror of the study has rated
    told : sentences that every report must show, such as when the study was unblinded
    versions : software -> version
    """

    made: str = ""
    options: AnalysisOptions = DEFAULT
    needed: int = 0
    fingerprint: str = ""
    jurors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    silent: Sequence[str] = ()
    other_models: Mapping[str, Sequence[str]] = field(default_factory=dict)
    rubrics: Sequence[Any] = ()
    tried: Sequence[Any] = ()
    usd: float = 0.0
    calls: int = 0
    calls_unknown: int = 0
    rated: int = 0
    told: Sequence[str] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CriterionRow(AgreementRow):
    """The jury on one criterion: its row of the agreement table, and its points of the scale.

    `bias` is the mean of jury minus clinicians, with its 95 % interval; between the two
    limits lie 95 % of single differences where they are normal. NaN where undefined.
    """

    criterion: str = ""
    bias: float = NAN
    bias_low: float = NAN
    bias_high: float = NAN
    limits_low: float = NAN
    limits_high: float = NAN


@dataclass(frozen=True, eq=False, kw_only=True)
class Content:
    """All that a report shows; `medjury.services.calibrate.Calibration` is one.

    Attributes
    ----------
    rows : the agreement table
    decisions : the verdicts, by benchmark, in the table's order
    protocol : the study's protocol, None where none was fixed
    detection : rows of unsafe responses
    subgroups : rows of subgroups
    details : section -> rows, as `details.details` returns them
    criteria : rows of `criterion_rows`
    paired : means of clinicians and jury, by benchmark, as `paired_means` returns them
    check_line : how far pingouin's ICCs are from these, in words
    pairs : what preferences on pairs say, None where nobody judged any
    study : facts that only a report shows
    """

    rows: Sequence[AgreementRow] = ()
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    protocol: Protocol | None = None
    detection: Sequence[DetectionRow] = ()
    subgroups: Sequence[SubgroupRow] = ()
    details: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    criteria: Sequence[CriterionRow] = ()
    paired: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    check_line: str = ""
    pairs: PairResult | None = None
    study: Study = Study()

    @property
    def benchmarks(self) -> list[str]:
        """Return the benchmarks in the table's order, `combined` last."""
        rows = self.of_pairs.rows if self.of_pairs else self.rows
        return list(dict.fromkeys(row.benchmark for row in rows))

    @property
    def of_pairs(self) -> PairResult | None:
        """Return what preferences say where nothing else was asked about."""
        return None if self.rows else self.pairs

    @property
    def simulated(self) -> tuple[str, ...]:
        """Return the raters, of scores or pairs, that are not real."""
        return simulated_in([*self.rows, *(self.pairs.rows if self.pairs else ())])

    @property
    def unit(self) -> str:
        """Return what agreement is in: ICC, or of pairs where these are all a share of them."""
        return "share of pairs" if self.of_pairs else "ICC"

    @property
    def shown(self) -> list[str]:
        """Return the benchmarks whose details are shown: all combined, or each where that is undefined."""
        analysed = {row.benchmark for row in self.of("distributions")}
        if COMBINED in analysed or len(self.benchmarks) == 1:
            return self.benchmarks[-1:]
        return [name for name in self.benchmarks if name in analysed]

    @property
    def decision(self) -> Decision:
        """Return the verdict on all benchmarks combined, or on the only one; of pairs where they are all."""
        if self.of_pairs:
            return self.of_pairs.decision or NOTHING_RATED
        return [*self.decisions.values()][-1]

    def of(self, section: str, *benchmarks: str) -> list[Any]:
        """Return the rows of a section of the details, of these benchmarks, or of all."""
        rows: Sequence[Any] = self.details.get(section, ())
        return [row for row in rows if not benchmarks or row.benchmark in benchmarks]

    def about(self, scorer: str, *benchmarks: str) -> list[AgreementRow]:
        """Return a scorer's rows of the agreement table, of these benchmarks, or of all."""
        shown = benchmarks or tuple(self.benchmarks)
        return [row for row in self.rows if row.scorer == scorer and row.benchmark in shown]


def criterion_rows(scores: Scores, options: AnalysisOptions) -> list[CriterionRow]:
    """Return the jury's agreement on every criterion by itself, on each benchmark and combined.

    Parameters
    ----------
    scores, options
        As for `table.agreement_rows`: the same replicates and seed.

    Returns
    -------
    list of CriterionRow
        A benchmark whose rubric lacks a criterion has no row of it; `combined` only has
        those of several benchmarks. None without a jury, or where there is one criterion.

    Raises
    ------
    Unknown, BadInput
        As `table.agreement_table`. A criterion that no clinician rated is undefined, no error.
    """
    criteria = {name: scores.rubrics[name].criteria for name in scores.benchmarks}
    is_one = options.criterion is not None or all(len(own) == 1 for own in criteria.values())
    if is_one or not scores.raters("juror"):
        return []
    rows: list[CriterionRow] = []
    for name in dict.fromkeys(name for own in criteria.values() for name in own):
        having = [benchmark for benchmark, own in criteria.items() if name in own]
        having += [COMBINED] if len(having) > 1 else []
        alone = replace(options, criterion=name, further=False)
        try:
            points = {
                scope.name: secondary_rows(replace(scope, jurors=(), metrics=()), scores)[0]
                for scope in scopes(scores, alone)
                if scope.jury and not why_undefined_scope(scores, scope)
            }
            for row in agreement_rows(scores, alone):
                if row.scorer == "jury" and row.benchmark in having:
                    kept = replace(row, notes=tuple(n for n in row.notes if n.code != "coverage"))
                    rows.append(of_criterion(kept, name, points.get(row.benchmark)))
        except TooFew:
            why = (undefined("criterion_unrated", "no clinician has rated this criterion"),)
            rows += [CriterionRow(where, "jury", notes=why, criterion=name) for where in having]
    return sorted(rows, key=lambda row: (row.benchmark == COMBINED, row.benchmark))


def of_criterion(row: AgreementRow, criterion: str, points: Any) -> CriterionRow:
    """Return the jury's row of the table as that of a criterion, with its points of the scale."""
    shown = {name: getattr(points, name) for name in IN_POINTS} if points else {}
    return CriterionRow(**vars(row), **shown, criterion=criterion)


def paired_means(scores: Scores, options: AnalysisOptions) -> dict[str, pd.DataFrame]:
    """Return the means of clinicians and jury in points, of each scope where an ICC can be asked for.

    Scope -> columns `clinicians` and `jury`, indexed by the responses that have both.
    """
    paired = {}
    for scope in scopes(scores, options):
        if scope.jury and not why_undefined_scope(scores, scope):
            raw = columns(scope.grid, scope.jury, "published")
            means = {"clinicians": raw.clinicians, "jury": raw.scorer}
            paired[scope.name] = pd.DataFrame(means, index=scope.grid.responses)[raw.both]
    return paired

"""Every section of statistics behind the agreement table, for every scope."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from calibration.answered import abstention_rows, applicability_rows, disputed_rows
from calibration.chance_corrected import chance_rows
from calibration.data_quality import distribution_rows, missing_rows
from calibration.differences import difference_rows
from calibration.notes import Noted
from calibration.other_measures import secondary_rows
from calibration.raters import length_rows, self_preference_rows, severity_rows, value_rows
from calibration.reliability import ReliabilityRow, test_retest_rows
from calibration.scope import Scope, scopes, why_undefined_scope
from calibration.scores import Scores
from calibration.values import AnalysisOptions

Details = dict[str, list[Noted]]


@dataclass(frozen=True, eq=False)
class StudyContext:
    """What is known of a study beside its scores, which some statistics need.

    Attributes
    ----------
    words : response_id -> words of the response
    authors : response_id -> family of its author, where known; None while the study is blind
    families : juror -> family
    tried : scope -> comparisons ever tried on it beside those made here
    reference : how reliable the clinicians are, of the same scores and jury
    """

    words: Mapping[str, int] = field(default_factory=dict)
    authors: Mapping[str, str] | None = field(default_factory=dict)
    families: Mapping[str, str] = field(default_factory=dict)
    tried: Callable[[Scope], int] = lambda _: 0
    reference: Sequence[ReliabilityRow] = ()


def details(
    scores: Scores,
    options: AnalysisOptions,
    known: StudyContext,
    tick: Callable[[float], None] | None = None,
) -> Details:
    """Return the rows of every section by its name.

    A scope without agreement, such as a benchmark no clinician rated, has no rows here: the
    table says why. Raises as `table.agreement_table`.
    """
    rows_of: Details = {}
    for scope in scopes(scores, options, tick):
        if not why_undefined_scope(scores, scope):
            for name, rows in sections(scope, scores, known):
                rows_of.setdefault(name, []).extend(rows)
    return rows_of


def sections(
    scope: Scope, scores: Scores, known: StudyContext
) -> Iterator[tuple[str, Iterable[Noted]]]:
    """Yield the sections of one scope by name, in the order in which they are shown."""
    yield "differences", difference_rows(scope, {}, known.tried(scope)) if scope.jury else []
    yield "reliability", [row for row in known.reference if row.benchmark == scope.name]
    yield "missing", missing_rows(scope, scores)
    yield "distributions", distribution_rows(scope, scores)
    yield "other_measures", secondary_rows(scope, scores)
    yield "chance_corrected", chance_rows(scope, scores)
    yield "disputed", disputed_rows(scope, scores)
    yield "applicability", applicability_rows(scope, scores)
    yield "abstention", abstention_rows(scope, scores)
    yield "severity", severity_rows(scope)
    yield "self_preference", self_preference_rows(scope, known.families, known.authors)
    yield "length", length_rows(scope, known.words)
    yield "juror_value", value_rows(scope)
    yield "test_retest", test_retest_rows(scope, scores)

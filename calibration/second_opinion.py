"""The same figures by other libraries, and how far they differ.

pingouin and krippendorff are GPL-3 and come with the extra `second-opinion` alone; statsmodels is
BSD. Each is imported only when this comparison is asked for.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from itertools import groupby
from operator import attrgetter
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

from calibration.agreement import columns
from calibration.chance_corrected import chance_rows
from calibration.codes import NoteCode as Code
from calibration.crossed import clinicians_mixed_model
from calibration.krippendorff import first_scores
from calibration.scope import AgreementRow, Scope, scopes, why_undefined_scope
from calibration.scores import Array, Scores
from calibration.values import COMBINED, NAN, AnalysisOptions, Noted, note, noted
from data.errors import BadInput

EXTRA = "second-opinion"
LEAST = 5  # values that pingouin asks for
MOST_RESPONSES = 400  # statsmodels' time grows with their square
START = (1.0, 0.25)
RATIOS = (1e-8, 1e6)


@dataclass(frozen=True)
class SecondOpinionRow(Noted):
    """How far a statistic of medjury is from a library's.

    Attributes
    ----------
    statistic, library : what was computed twice, and by which version of what
    compared : figures that both computed
    largest : largest absolute difference; NaN where none was compared
    at : where that is
    """

    statistic: str
    library: str
    compared: int = 0
    largest: float = NAN
    at: str = ""


@dataclass(frozen=True, slots=True)
class _Pair:
    """One figure computed twice, and where it stands in the tables."""

    at: str
    own: float
    other: float


def second_opinion(
    scores: Scores, options: AnalysisOptions, rows: Sequence[AgreementRow]
) -> list[SecondOpinionRow]:
    """Return how far ICCs, F intervals, alpha and the mixed model are from other libraries'.

    Parameters
    ----------
    scores, options, rows : as the agreement table took them, and its rows

    Returns
    -------
    list of SecondOpinionRow
        Every scorer's ICC(C,2) and F interval by pingouin (five responses or more), ordinal alpha of
        each criterion by krippendorff, ICC(C,1) and ICC(A,1) of the crossed model by
        statsmodels (on at most 400 responses; its time grows with their square).

    Raises
    ------
    BadInput
        If the extra is not installed.
    """
    pingouin, krippendorff = (_library(name) for name in ("pingouin", "krippendorff"))
    every = [
        one for one in scopes(scores, options, None) if why_undefined_scope(scores, one) is None
    ]
    known = {(row.benchmark, row.scorer): row for row in rows}
    iccs: list[_Pair] = []
    ends: list[_Pair] = []
    for scope in every:
        for row, other in _iccs(scope, known, pingouin):
            place = f"{row.benchmark}, {row.scorer}"
            iccs.append(_Pair(place, row.icc, other[0]))
            ends += [_Pair(place, row.f_low, other[1]), _Pair(place, row.f_high, other[2])]
    alphas = [pair for scope in every for pair in _alphas(scope, scores, krippendorff)]
    mixed = [pair for scope in every for pair in _mixed(scope)]
    large = any(len(scope.grid.responses) > MOST_RESPONSES for scope in every)
    limit = note(Code.OPINION_LIMIT, most=MOST_RESPONSES) if large else None
    return [
        _row("ICC(C,2)", "pingouin", iccs),
        _row("F interval", "pingouin", ends),
        _row("Krippendorff's alpha, ordinal", "krippendorff", alphas),
        _row("Crossed mixed model, ICC(C,1) and ICC(A,1)", "statsmodels", mixed, noted(limit)),
    ]


def _library(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise BadInput(
            f"--second-opinion needs {name}, which is not installed: `uv sync --extra {EXTRA}`"
        ) from error


def _row(statistic: str, library: str, pairs: Sequence[_Pair], notes: Any = ()) -> SecondOpinionRow:
    """Return the largest difference; a figure that only one of both has counts as infinite."""
    apart = [
        (
            abs(pair.own - pair.other) if np.isfinite([pair.own, pair.other]).all() else np.inf,
            pair.at,
        )
        for pair in pairs
        if np.isfinite([pair.own, pair.other]).any()
    ]
    largest, at = max(apart, default=(NAN, ""))
    library_version = f"{library} {version(library)}"
    return SecondOpinionRow(statistic, library_version, len(apart), float(largest), at, notes=notes)


def _iccs(
    scope: Scope, known: dict[tuple[str, str], AgreementRow], pingouin: ModuleType
) -> Iterator[tuple[AgreementRow, tuple[float, float, float]]]:
    """Yield each scorer's row with pingouin's ICC(C,2) and the ends of its interval."""
    for scorer, panel in scope.scorers.items():
        pair = columns(scope.grid, panel, scope.options.method)
        both = np.column_stack([pair.clinicians[pair.both], pair.scorer[pair.both]])
        row = known.get((scope.name, scorer))
        if row is None or len(both) < LEAST or not np.isfinite(row.icc):
            continue
        if scope.options.method == "published":
            both = (both - both.mean(axis=0)) / both.std(axis=0, ddof=1)
        yield row, _by_pingouin(both, pingouin)


def _by_pingouin(both: Array, pingouin: ModuleType) -> tuple[float, float, float]:
    long = pd.DataFrame(both).melt(ignore_index=False, var_name="rater").reset_index(names="row")
    digits = "round.column.CI95"
    before = pingouin.options[digits]
    pingouin.options[digits] = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what it says of pandas is not about the figures
            table = pingouin.intraclass_corr(long, "row", "rater", "value").set_index("Type")
    finally:
        pingouin.options[digits] = before
    low, high = table.loc["ICC(C,k)", "CI95"]
    return float(table.loc["ICC(C,k)", "ICC"]), float(low), float(high)


def _alphas(scope: Scope, scores: Scores, krippendorff: ModuleType) -> Iterator[_Pair]:
    """Yield ordinal alpha of each criterion: of the clinicians, and with each juror."""
    for criterion, rows in groupby(chance_rows(scope, scores), attrgetter("criterion")):
        members = [
            name
            for name in scores.benchmarks
            if scope.name in (name, COMBINED) and criterion in scores.rubrics[name].criteria
        ]
        read = first_scores(scores, members, criterion, scope.jurors)
        for row in rows:
            if np.isfinite(row.alpha_ordinal):
                table = read.ratings[:, read.columns(row.raters)].T
                place = f"{row.benchmark}, {row.criterion}, {row.raters}"
                yield _Pair(place, row.alpha_ordinal, _by_krippendorff(table, krippendorff))


def _by_krippendorff(table: Array, krippendorff: ModuleType) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(krippendorff.alpha(reliability_data=table, level_of_measurement="ordinal"))


def _mixed(scope: Scope) -> Iterator[_Pair]:
    """Yield both ICCs of the clinicians' crossed model, where it has any."""
    own = clinicians_mixed_model(scope.grid)
    if own.reason or len(scope.grid.responses) > MOST_RESPONSES:
        return
    response, rater, residual = _by_statsmodels(scope)
    yield _Pair(scope.name, own.consistency(), response / (response + residual))
    yield _Pair(scope.name, own.agreement(), response / (response + rater + residual))


def _by_statsmodels(scope: Scope) -> tuple[float, float, float]:
    """Return the variances of responses, raters and residual at statsmodels' highest likelihood."""
    from scipy.optimize import Bounds, minimize

    model = _model(scope)
    none = np.empty((0, 0))

    def unlikelihood(ratios: Array) -> float:
        return -float(model.loglike(np.sqrt(ratios)))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # how its solver would be faster
        optimum = minimize(unlikelihood, np.array(START), method="L-BFGS-B", bounds=Bounds(*RATIOS))
        mean, _ = model.get_fe_params(none, optimum.x)
        residual = float(model.get_scale(mean, none, optimum.x))
    response, rater = (float(ratio) * residual for ratio in optimum.x)
    return response, rater, residual


def _model(scope: Scope) -> Any:
    """Return statsmodels' model of all clinicians' composites with two crossed components."""
    from scipy import sparse
    from statsmodels.regression.mixed_linear_model import MixedLM, VCSpec

    table = scope.grid.composites[:, scope.grid.of_kind("clinician")]
    places = np.nonzero(~np.isnan(table))
    members = []
    for labels in places:
        levels, column = np.unique(labels, return_inverse=True)
        shape = (len(labels), len(levels))
        cells = (np.ones(len(labels)), (np.arange(len(labels)), column))
        members.append(sparse.csr_array(cells, shape=shape))
    names = [[[str(place) for place in range(columns.shape[1])]] for columns in members]
    parts = VCSpec(["response", "rater"], names, [[columns] for columns in members])
    everywhere = np.ones(len(places[0]))
    model = MixedLM(table[places], everywhere[:, None], groups=everywhere, exog_vc=parts)
    model.cov_pen = None  # `fit` sets it, which is not called
    return model

"""The alternative annotator test: whether a jury is as close to the other clinicians as each clinician is."""

from dataclasses import dataclass

import numpy as np
from scipy import stats
from statsmodels.stats.multitest import multipletests

from calibration import remarks
from calibration.agreement import PanelColumns
from calibration.codes import NoteCode as Code
from calibration.rating_matrix import FLAT, RatingMatrix, mean_of_given
from calibration.scope import Scope
from calibration.scores import Array, Flags
from calibration.values import NAN, Note, Noted, note, noted
from data.errors import BadInput

LEAST_RESPONSES = 30  # of a held-out clinician, for the t test (Calderon et al. 2025, section 3)
LEAST_CLINICIANS = 2  # tested; with one, the winning rate is a single yes or no
ADVISED_CLINICIANS = 3
FALSE_DISCOVERY = 0.05
TO_PASS = 0.5  # of the clinicians tested


@dataclass(frozen=True)
class HeldClinician:
    """One clinician left out: how often jury and clinician are at least as close to the others, and p."""

    clinician: str
    n_responses: int
    advantage: float
    clinician_advantage: float
    p: float
    p_adjusted: float
    won: bool


@dataclass(frozen=True)
class AltTestRow(Noted):
    """The test of a jury or of one juror; `clinicians` are those tested."""

    benchmark: str
    scorer: str
    epsilon: float
    winning_rate: float
    advantage_probability: float
    n_clinicians: int
    n_responses: int
    clinicians: tuple[HeldClinician, ...]


def alt_test_rows(scope: Scope, epsilon: float = 0.2) -> list[AltTestRow]:
    """Test whether the jury, and each juror, is as close to the other clinicians as a clinician is.

    Each clinician j is held out in turn. On every response that j, the scorer and at least one
    other clinician scored, the nearer to the others has the smaller root mean square distance to
    their composites, in points. W_jury is 1 where the jury is at least as near as j, W_j where j
    is at least as near as the jury; with a tie both are. The jury wins against j when
    mean(W_jury) > mean(W_j) - epsilon by a one-sided t test of d = W_j - W_jury against epsilon.

    Parameters
    ----------
    scope : Scope
        Its composites, raw whatever the method: nearness is in points.
    epsilon : float, 0 to 1
        What a clinician's costs are worth; 0.2 is advised for experts, 0.1 for lay annotators.

    Returns
    -------
    list of AltTestRow
        "jury" and "juror:NAME". winning_rate : share of the clinicians tested whom the scorer
        wins against at a false discovery rate of 0.05 (Benjamini & Yekutieli 2001); from 0.5 on
        it passes. advantage_probability : mean over them of mean(W_jury). p is one-sided; 0 or 1,
        its limit, where d is the same everywhere. n_responses : those in any comparison. Tested
        are clinicians with 30 responses or more; with fewer than two of them, NaN and a note.

    Raises
    ------
    BadInput
        If epsilon is not 0 to 1.

    References
    ----------
    Calderon, Reichart & Dror (2025), The Alternative Annotator Test, ACL 2025, section 3.
    """
    if not 0 <= epsilon <= 1:
        raise BadInput(f"epsilon={epsilon:g}: it is a share, 0 to 1")
    return [
        _row(scope, scorer, panel, epsilon)
        for scorer, panel in scope.scorers.items()
        if not scorer.startswith("metric:")
    ]


@dataclass(frozen=True, eq=False)
class Comparison:
    """One clinician and a scorer, each compared with the other clinicians.

    Attributes
    ----------
    rows : shape (n,), the responses that all three sides scored
    scorer, own : shape (rows,), whether each is at least as close to the others
    """

    rows: Flags
    scorer: Flags
    own: Flags


def compare(grid: RatingMatrix, panel: PanelColumns, clinician: int) -> Comparison:
    """Compare a panel and a clinician with the other clinicians, response by response.

    Parameters
    ----------
    grid : RatingMatrix
    panel : PanelColumns
        The jury, or one juror.
    clinician : int
        The clinician's column in the grid.

    Returns
    -------
    Comparison
        On the responses that panel, clinician and at least one other clinician scored. Equal
        root mean square distances, up to rounding, count for both sides.
    """
    every = grid.of_kind("clinician")
    rated = ~np.isnan(grid.composites[:, clinician]) & panel.present(grid)
    others = grid.composites[np.ix_(rated, every[every != clinician])]
    has_others = (~np.isnan(others)).any(axis=1)
    rows: Flags = rated.copy()
    rows[rated] = has_others
    own, rest = grid.composites[rows, clinician], others[has_others]
    jury = mean_of_given(grid.composites[np.ix_(rows, grid.columns(panel.members))])
    of_jury, of_own = _distance(jury, rest), _distance(own, rest)
    rounding = FLAT * np.maximum(np.abs(own), 1)
    return Comparison(rows, of_jury <= of_own + rounding, of_own <= of_jury + rounding)


def _distance(side: Array, others: Array) -> Array:
    """Return the root mean square distance of a score to the others' scores."""
    distance: Array = np.sqrt(mean_of_given((others - side[:, None]) ** 2))
    return distance


def one_sided_p(difference: Array, epsilon: float) -> float:
    """Return p of the one-sided t test that the mean difference is below epsilon.

    Parameters
    ----------
    difference : shape (n,), n >= 1, no NaN
    epsilon : float
        The margin, in the unit of the differences.

    Returns
    -------
    float
        In [0, 1]. Where the difference never varies, the limit: 0 below epsilon, else 1.
    """
    if np.ptp(difference) == 0:
        return 0.0 if difference[0] < epsilon else 1.0
    return float(stats.ttest_1samp(difference, epsilon, alternative="less").pvalue)


def _row(scope: Scope, scorer: str, panel: PanelColumns, epsilon: float) -> AltTestRow:
    grid = scope.grid
    clinicians = grid.of_kind("clinician")
    compared = {grid.raters[column]: compare(grid, panel, column) for column in clinicians}
    tested = {name: own for name, own in compared.items() if own.rows.sum() >= LEAST_RESPONSES}
    simulated = remarks.simulated(scope.simulated & {*panel.members, *scope.clinicians})
    if len(tested) < LEAST_CLINICIANS:
        why = noted(_why_not(scope, compared), simulated)
        return AltTestRow(scope.name, scorer, epsilon, NAN, NAN, len(tested), 0, (), notes=why)
    held = _held(tested, epsilon)
    used = np.any([comparison.rows for comparison in tested.values()], axis=0)
    return AltTestRow(
        benchmark=scope.name,
        scorer=scorer,
        epsilon=epsilon,
        winning_rate=float(np.mean([clinician.won for clinician in held])),
        advantage_probability=float(np.mean([clinician.advantage for clinician in held])),
        n_clinicians=len(held),
        n_responses=int(used.sum()),
        clinicians=held,
        notes=noted(
            _outcome(held),
            _single(scope.grid, used),
            note(Code.FEW_CLINICIANS_TESTED, advised=ADVISED_CLINICIANS)
            if len(held) < ADVISED_CLINICIANS
            else None,
            _not_tested(compared, held),
            _clustered(scope.grid, used),
            simulated,
        ),
    )


def _held(tested: dict[str, Comparison], epsilon: float) -> tuple[HeldClinician, ...]:
    p = [
        one_sided_p(comparison.own.astype(float) - comparison.scorer, epsilon)
        for comparison in tested.values()
    ]
    won, adjusted, _, _ = multipletests(p, alpha=FALSE_DISCOVERY, method="fdr_by")
    return tuple(
        HeldClinician(
            clinician=name,
            n_responses=len(comparison.own),
            advantage=float(comparison.scorer.mean()),
            clinician_advantage=float(comparison.own.mean()),
            p=p[place],
            p_adjusted=float(adjusted[place]),
            won=bool(won[place]),
        )
        for place, (name, comparison) in enumerate(tested.items())
    )


def _why_not(scope: Scope, compared: dict[str, Comparison]) -> Note:
    if len(scope.clinicians) < LEAST_CLINICIANS:
        return note(Code.NO_OTHERS)
    most = max(int(comparison.rows.sum()) for comparison in compared.values())
    return note(
        Code.TOO_FEW_TO_TEST, clinicians=LEAST_CLINICIANS, responses=LEAST_RESPONSES, most=most
    )


def _outcome(held: tuple[HeldClinician, ...]) -> Note:
    won = [clinician.won for clinician in held]
    passed = float(np.mean(won)) >= TO_PASS
    code = Code.NEARNESS_PASSED if passed else Code.NEARNESS_NOT_PASSED
    return note(code, won=sum(won), clinicians=len(held))


def _not_tested(compared: dict[str, Comparison], held: tuple[HeldClinician, ...]) -> Note | None:
    tested = {clinician.clinician for clinician in held}
    untested = [(name, int(own.rows.sum())) for name, own in compared.items() if name not in tested]
    return note(Code.NOT_TESTED, least=LEAST_RESPONSES, clinicians=untested) if untested else None


def _clustered(grid: RatingMatrix, used: Flags) -> Note | None:
    instances, responses = grid.instances(used), int(used.sum())
    if instances >= responses:
        return None
    return note(Code.SHARED_T, responses=responses, instances=instances)


def _single(grid: RatingMatrix, used: Flags) -> Note | None:
    """Note on how many responses the others are a single clinician, whose noise the distance then has."""
    rated = (~np.isnan(grid.composites[np.ix_(used, grid.of_kind("clinician"))])).sum(axis=1)
    alone = int((rated == 2).sum())
    return note(Code.SINGLE_OTHER, alone=alone, responses=len(rated)) if alone else None

"""Influence: the responses and instances without which a scorer's ICC would change most."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from calibration import remarks
from calibration.agreement import Panel, column_icc, columns, why_no_icc
from calibration.codes import NoteCode as Code
from calibration.jackknife import Deletions, deletions, iccs_without
from calibration.scope import Scope
from calibration.scores import Array, Integers
from calibration.values import NAN, Note, Noted, note, noted

DECISIVE = 1 / 3  # of the ICC
LEAST_CHANGE = (
    0.05  # an ICC near 0 changes its sign at every breath: a smaller step decides nothing
)


@dataclass(frozen=True)
class InfluenceRow(Noted):
    """One response or instance left out; None in `left_out` where there is no ICC to change."""

    benchmark: str
    scorer: str
    left_out: str | None
    icc_all: float
    icc_without: float
    change: float


def influence_rows(scope: Scope, most: int = 5) -> list[InfluenceRow]:
    """Leave each response, and each instance, out of every scorer's ICC; return the largest changes.

    Parameters
    ----------
    scope : Scope
        One benchmark, or all combined.
    most : how many responses, and how many instances, a scorer gets at most

    Returns
    -------
    list of InfluenceRow
        Scorer by scorer, the largest |change| first. `left_out` is "response:ID" or
        "instance:ID"; instances are there only where one has several responses. `change` is
        icc_without - icc_all. What is left out is left out of everything: under "paper" every
        z of its raters is taken anew. Where the ICC is undefined without it, `icc_without` and
        `change` are NaN and the row comes first; where there is no ICC at all, one row says why.

    References
    ----------
    Belsley, Kuh & Welsch (1980), Regression Diagnostics, chapter 2: deletion, applied to an ICC.
    """
    ways = list(_ways(scope)) if scope.grid.responses else []
    found: list[InfluenceRow] = []
    for scorer, panel in scope.scorers.items():
        found += _scorer_rows(scope, scorer, panel, ways, most)
    return found


@dataclass(frozen=True, eq=False)
class _Way:
    """Something to leave out, one after another: "response" or "instance", and their ids."""

    kind: str
    names: tuple[str, ...]
    ready: Deletions


def _ways(scope: Scope) -> Iterator[_Way]:
    grid, method = scope.grid, scope.asked.method
    each = np.arange(len(grid.responses))
    yield _Way("response", grid.responses, deletions(grid, method, each))
    if grid.n_clusters < len(grid.responses):
        rows = scope.given.drop_duplicates("response_id").set_index("response_id")["instance_id"]
        names = np.empty(grid.n_clusters, dtype=object)
        names[grid.clusters] = rows.loc[list(grid.responses)].to_numpy(dtype=object)
        yield _Way("instance", tuple(names), deletions(grid, method, grid.clusters))


def _scorer_rows(
    scope: Scope, scorer: str, panel: Panel, ways: Sequence[_Way], most: int
) -> list[InfluenceRow]:
    pair = columns(scope.grid, panel, scope.asked.method)
    x, y = pair.clinicians[pair.both], pair.scorer[pair.both]
    icc = column_icc(x, y, scope.asked.method)
    if not np.isfinite(icc):
        reason = why_no_icc(scope.grid, panel, scope.asked.method, (x, y))
        return [InfluenceRow(scope.name, scorer, None, NAN, NAN, NAN, notes=noted(reason))]
    found = []
    for way in ways:
        without = iccs_without(way.ready, panel)
        for place in _largest(without - icc, most):
            new, size = float(without[place]), int((way.ready.groups == place).sum())
            told = noted(_decides((way.kind, size), icc, new), _simulated(scope, panel))
            left = f"{way.kind}:{way.names[place]}"
            row = InfluenceRow(scope.name, scorer, left, icc, new, new - icc, notes=told)
            found.append(row)
    order = _largest(np.array([row.change for row in found]), len(found))
    return [found[place] for place in order]


def _largest(changes: Array, most: int) -> Integers:
    """Return the places of the largest changes; what leaves no ICC at all changes most."""
    size = np.where(np.isfinite(changes), np.abs(changes), np.inf)
    return np.argsort(-size, kind="stable")[:most]


def _simulated(scope: Scope, panel: Panel) -> Note | None:
    return remarks.simulated(scope.simulated & {*panel.members, *scope.clinicians})


def _decides(left_out: tuple[str, int], icc: float, without: float) -> Note | None:
    """Say that one response, or one instance of several responses, decides, where it does."""
    kind, size = left_out
    if not np.isfinite(without):
        return note(Code.UNDEFINED_WITHOUT, kind=kind, responses=size)
    change = abs(without - icc)
    if change < LEAST_CHANGE:
        return None
    share = change / abs(icc) if icc else np.inf
    both = {"kind": kind, "responses": size, "icc": icc, "without": without}
    if (without < 0) != (icc < 0):
        return note(Code.DECIDES_SIGN, **both)
    if share <= DECISIVE:
        return None
    return note(Code.DECIDES, **both, share=share if np.isfinite(share) else None)

"""Influence: the responses and instances without which a scorer's ICC would change most."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from calibration import remarks
from calibration.agreement import PanelColumns, column_icc, columns, why_no_icc
from calibration.jackknife import Deletions, deletions, iccs_without
from calibration.notes import Figures, Note, Noted, filled, note, noted
from calibration.scope import Scope
from calibration.scores import Array, Integers
from calibration.values import NAN

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
    ways = list(_left_out_units(scope)) if scope.grid.responses else []
    rows: list[InfluenceRow] = []
    for scorer, panel in scope.scorers.items():
        rows += _scorer_rows(scope, scorer, panel, ways, most)
    return rows


@dataclass(frozen=True, eq=False)
class _LeftOutUnits:
    """Responses or instances to be left out one at a time, with their ids."""

    kind: str
    names: tuple[str, ...]
    ready: Deletions


def _left_out_units(scope: Scope) -> Iterator[_LeftOutUnits]:
    grid, method = scope.grid, scope.options.method
    responses = np.arange(len(grid.responses))
    yield _LeftOutUnits("response", grid.responses, deletions(grid, method, responses))
    if grid.n_clusters < len(grid.responses):
        rows = scope.composites.drop_duplicates("response_id").set_index("response_id")[
            "instance_id"
        ]
        names = np.empty(grid.n_clusters, dtype=object)
        names[grid.clusters] = rows.loc[list(grid.responses)].to_numpy(dtype=object)
        yield _LeftOutUnits("instance", tuple(names), deletions(grid, method, grid.clusters))


def _scorer_rows(
    scope: Scope, scorer: str, panel: PanelColumns, ways: Sequence[_LeftOutUnits], most: int
) -> list[InfluenceRow]:
    pair = columns(scope.grid, panel, scope.options.method)
    x, y = pair.clinicians[pair.both], pair.scorer[pair.both]
    icc = column_icc(x, y, scope.options.method)
    if not np.isfinite(icc):
        reason = why_no_icc(scope.grid, panel, scope.options.method, (x, y))
        return [InfluenceRow(scope.name, scorer, None, NAN, NAN, NAN, notes=noted(reason))]
    rows = []
    for way in ways:
        without = iccs_without(way.ready, panel)
        for place in _largest(without - icc, most):
            new, size = float(without[place]), int((way.ready.groups == place).sum())
            notes = noted(_decides((way.kind, size), icc, new), _simulated(scope, panel))
            left_out = f"{way.kind}:{way.names[place]}"
            row = InfluenceRow(scope.name, scorer, left_out, icc, new, new - icc, notes=notes)
            rows.append(row)
    order = _largest(np.array([row.change for row in rows]), len(rows))
    return [rows[place] for place in order]


def _largest(changes: Array, most: int) -> Integers:
    """Return the places of the largest changes; what leaves no ICC at all changes most."""
    size = np.where(np.isfinite(changes), np.abs(changes), np.inf)
    return np.argsort(-size, kind="stable")[:most]


def _simulated(scope: Scope, panel: PanelColumns) -> Note | None:
    return remarks.simulated(scope.simulated & {*panel.members, *scope.clinicians})


def _decides(left_out: tuple[str, int], icc: float, without: float) -> Note | None:
    """Note that one response or instance decides the size, sign or existence of an ICC, where it does."""
    kind, size = left_out
    if not np.isfinite(without):
        return note("undefined_without", _undefined_without, kind=kind, responses=size)
    change = abs(without - icc)
    if change < LEAST_CHANGE:
        return None
    share = change / abs(icc) if icc else np.inf
    both = {"kind": kind, "responses": size, "icc": icc, "without": without}
    if (without < 0) != (icc < 0):
        return note("decides_sign", _decides_sign, **both)
    if share <= DECISIVE:
        return None
    return note("decides", _decides_words, **both, share=share if np.isfinite(share) else None)


def _left_out(figures: Figures) -> str:
    kind, size = figures["kind"], figures["responses"]
    return f"this {kind} of {size} responses" if size > 1 else f"this {kind}"


def _undefined_without(figures: Figures) -> str:
    return f"without {_left_out(figures)} the ICC is undefined"


def _decides_sign(figures: Figures) -> str:
    both = filled("{icc:z.3f} with it, {without:z.3f} without", figures)
    return f"{_left_out(figures)} decides the sign: {both}"


def _decides_words(figures: Figures) -> str:
    both = filled("{icc:z.3f} with it, {without:z.3f} without", figures)
    share = "" if figures["share"] is None else f", {figures['share']:.0%} of the ICC"
    return f"{_left_out(figures)} decides: {both}{share}"

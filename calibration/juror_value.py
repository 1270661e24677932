"""What each juror adds to the jury's ICC."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration import remarks
from calibration.columns import PanelColumns, column_icc, columns, single_rater
from calibration.differences import DifferenceRow, paired_rows
from calibration.notes import Note, Noted, note, noted, undefined
from calibration.rating_matrix import without_variance
from calibration.scope import Scope
from calibration.values import NAN


@dataclass(frozen=True)
class ValueRow(Noted):
    """What one juror adds to the jury on one benchmark.

    Attributes
    ----------
    icc_alone, icc_without, icc_jury : float
        ICC(3,2) with the clinicians of this juror, of the jury without it, and of the whole jury;
        NaN where undefined.
    adds, low, high : float
        ICC of the jury minus that without this juror, on the responses of both, and its 95 %
        interval (`jackknife.icc_difference`).
    """

    benchmark: str
    juror: str
    icc_alone: float = NAN
    icc_without: float = NAN
    icc_jury: float = NAN
    adds: float = NAN
    low: float = NAN
    high: float = NAN


def value_rows(scope: Scope) -> list[ValueRow]:
    """Return what each juror adds to the jury's ICC with the clinicians.

    A jury has a score where all its jurors gave one. A juror without variance takes no part. What a
    juror adds is a difference of two juries that share all others, paired over instances.
    """
    flat = without_variance(scope.grid.composites[:, scope.grid.columns(scope.jurors)])
    players = [name for name, is_flat in zip(scope.jurors, flat, strict=True) if not is_flat]
    jury = PanelColumns(tuple(players), len(players))
    without = {name: tuple(other for other in players if other != name) for name in players}
    rest = {name: PanelColumns(names, len(names)) for name, names in without.items() if names}
    others = [(f"jury:{', '.join(panel.members)}", panel) for panel in rest.values()]
    pairs = dict(zip(rest, paired_rows(replace(scope, jury=jury), others), strict=True))
    rows = {
        name: ValueRow(
            benchmark=scope.name,
            juror=name,
            icc_alone=_icc(scope, single_rater(name)),
            icc_without=_icc(scope, rest[name]) if name in rest else NAN,
            icc_jury=_icc(scope, jury),
            adds=pairs[name].difference if name in pairs else NAN,
            low=pairs[name].low if name in pairs else NAN,
            high=pairs[name].high if name in pairs else NAN,
            notes=noted(*_notes(scope, players, pairs.get(name))),
        )
        for name in players
    }
    why = (undefined("unvaried_or_none", "its scores do not vary, or there are none"),)
    return [rows.get(name) or ValueRow(scope.name, name, notes=why) for name in scope.jurors]


def _icc(scope: Scope, panel: PanelColumns) -> float:
    pair = columns(scope.grid, panel, scope.options.method)
    return column_icc(pair.clinicians[pair.both], pair.scorer[pair.both], scope.options.method)


def _notes(
    scope: Scope, players: Sequence[str], pair: DifferenceRow | None
) -> Iterator[Note | None]:
    if pair is None:
        yield note("jury_of_one", "a jury of one")
    else:
        if not np.isfinite(pair.difference):
            yield from pair.notes[:1]
        yield pair.told("only_both")
        yield pair.told("no_test")
    yield remarks.no_variance([name for name in scope.jurors if name not in players])
    yield scope.analysed
    yield remarks.few_instances(scope.grid.n_clusters)
    yield remarks.simulated(scope.simulated & {*players, *scope.clinicians})

"""Rank every jury that the jurors can form by its agreement with the clinicians on pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from calibration import remarks
from calibration.bootstrap import LEAST_CLUSTERS, BootstrapPlan, replicates
from calibration.intervals import fisher_z, icc_of_fisher
from calibration.juries import (
    LARGEST,
    MOST_CELLS,
    Prices,
    cost,
    expected_iccs,
    gained_by_luck,
    on_front,
)
from calibration.notes import Noted, noted
from calibration.pairs import (
    PairScores,
    agreed,
    checked,
    judged_pairs,
    jury_of,
    share_with_interval,
)
from calibration.scores import Array, Integers
from calibration.values import NAN, AnalysisOptions
from data.errors import BadInput, TooFew


@dataclass(frozen=True)
class PairJuryRow(Noted):
    """One jury: as `juries.JuryRow`, with agreement on pairs in the place of the ICC.

    Attributes
    ----------
    agreement, low, high : as `pairs.PairRow.agreement` has, of this jury as if it were the only one
    agreement_honest, honest_low, honest_high : to be expected on new pairs, less what choosing the
        best of many adds, as `juries.expected_iccs` has it
    rank : 1 is the highest agreement, of equal ones the smaller jury
    n, n_instances : pairs that are no tie for the clinicians and that all jurors judged
    """

    jurors: tuple[str, ...]
    size: int
    agreement: float
    low: float
    high: float
    agreement_honest: float
    honest_low: float
    honest_high: float
    rank: int
    usd_per_pair: float | None
    on_front: bool
    n: int
    n_instances: int

    @property
    def jury(self) -> str:
        """Return its jurors in one line."""
        return ", ".join(self.jurors)


def pair_ranking(
    scores: PairScores,
    options: AnalysisOptions | None = None,
    sizes: Sequence[int] | None = None,
    usd: Prices | None = None,
) -> list[PairJuryRow]:
    """Return every jury of these sizes, 1 to 5 where not given, the best first.

    All are compared on the same pairs: those that all jurors of the ranking judged. `usd` is of a
    juror's verdict on a pair.

    Raises
    ------
    Unknown, BadInput, TooFew
        As `pairs.pair_rows`; if sizes do not fit the jurors, or juries x resamples are too many; if
        there is no pair to compare them on.
    """
    options = options or AnalysisOptions()
    scores = checked(scores, options)
    panel = jury_of(scores, options)
    names = panel.members if panel else ()
    sizes = sizes or range(1, min(LARGEST, len(names)) + 1)
    if not names or min(sizes) < 1 or max(sizes) > len(names):
        raise BadInput(f"sizes {[*sizes]}: there are {len(names)} jurors to choose from")
    if sum(comb(len(names), size) for size in sizes) * options.reps > MOST_CELLS:
        raise BadInput("too many juries: take smaller sizes, fewer jurors, or fewer resamples")
    members = [options.benchmark] if options.benchmark else scores.benchmarks
    own = judged_pairs(scores, members, options.criterion)
    seats = [one for size in sizes for one in combinations(range(len(names)), size)]
    table = own.grid.composites[:, own.grid.columns(names)]
    hits = np.stack(
        [agreed(table[:, seat].mean(axis=1), own.by(None)) for seat in map(list, seats)]
    )
    kept = ~np.isnan(np.vstack([hits, table.T])).any(axis=0)
    if not kept.any():
        raise TooFew("no pair was judged by clinicians and by all jurors; name fewer jurors")
    hits, (_, clusters) = hits[:, kept], np.unique(own.grid.clusters[kept], return_inverse=True)
    share, order = hits.mean(axis=1), np.argsort(-hits.mean(axis=1), kind="stable")
    seated = np.array([len(seat) for seat in seats], dtype=np.int64)
    expected = _expected(hits, clusters.astype(np.int64), seated, options)
    costs = [cost([names[one] for one in seat], usd or {}) for seat in seats]
    front = on_front(share, np.array([NAN if one is None else one for one in costs]))
    instances = int(clusters.max()) + 1
    fake = remarks.simulated(scores.simulated & {*names, *own.clinicians})
    rows = []
    for place, jury in enumerate(order.tolist()):
        ends = share_with_interval(hits[jury], clusters)[1]
        honest, low, high = expected[:, jury].tolist()
        rows.append(
            PairJuryRow(
                tuple(names[one] for one in seats[jury]),
                len(seats[jury]),
                float(share[jury]),
                ends.low,
                ends.high,
                honest,
                low,
                high,
                rank=place + 1,
                usd_per_pair=costs[jury],
                on_front=bool(front[jury]),
                n=int(kept.sum()),
                n_instances=instances,
                notes=noted(remarks.few_instances(instances), fake),
            )
        )
    return rows


def _expected(hits: Array, clusters: Integers, sizes: Integers, options: AnalysisOptions) -> Array:
    """Return the agreement of each jury on new pairs, and its interval, (3, juries).

    The rule of ICCs is made for Fisher's z; here each agreement is put where its Fisher's z is the
    agreement itself.
    """
    instances, of_cluster = int(clusters.max()) + 1, np.eye(int(clusters.max()) + 1)[clusters]
    if instances < LEAST_CLUSTERS or not options.reps:
        return np.full((3, len(hits)), np.nan)
    won, number = hits @ of_cluster, of_cluster.sum(axis=0)

    def shares(counts: Array) -> Array:
        with np.errstate(invalid="ignore"):
            both = [(one @ won.T) / (one @ number)[:, None] for one in (counts, counts == 0)]
        return np.stack(both, axis=1)

    drawn = icc_of_fisher(
        replicates(shares, BootstrapPlan(instances, len(hits), options.reps, options.seed))
    )
    share = icc_of_fisher(hits.mean(axis=1))
    order = np.argsort(-share, kind="stable")
    total, known = gained_by_luck(order, sizes, drawn[:, 0], drawn[:, 1])
    with np.errstate(invalid="ignore"):
        luck = total / known
    luck[order[0]] = luck[-1]
    ends = fisher_z(expected_iccs(share, drawn[:, 0].T, luck[:-1], instances))
    return np.clip(ends, 0.0, 1.0)

"""Quadratic weighted kappa of two raters, and its mean over pairs of raters."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from statsmodels.stats.inter_rater import cohens_kappa

from calibration.codes import NoteCode as Code
from calibration.pairs import FRAGILE
from calibration.scores import Array, Integers
from calibration.values import Note, note


def quadratic_kappa(table: Array) -> float:
    """Return Cohen's kappa with quadratic weights of one table of two raters.

    Parameters
    ----------
    table : shape (q, q)
        How many responses the first rater gave the point of the row and the second that of
        the column; one row and column for every point of the scale, evenly spaced.

    Returns
    -------
    float
        1 - sum w observed / sum w expected, w = (row - column)^2; -1 to 1. For n responses
        it is 2 cov / (var x + var y + (mean x - mean y)^2) with ddof 0: a rater who is
        stricter loses by it. 0 where one rater gave one point only; NaN where both gave
        one and the same, or where the table is empty.

    References
    ----------
    Cohen (1968), Psychological Bulletin 70, 213; Fleiss & Cohen (1973), Educational and
    Psychological Measurement 33, 613. The computation is statsmodels'.
    """
    rows, columns = np.flatnonzero(table.sum(axis=1)), np.flatnonzero(table.sum(axis=0))
    if not len(rows) or (len(rows) == 1 and np.array_equal(rows, columns)):
        return float("nan")
    return float(cohens_kappa(table, wt="quadratic", return_results=False))


@dataclass(frozen=True)
class PairKappas:
    """The kappas of some pairs of raters.

    Attributes
    ----------
    kappas : tuple of float
        One a pair that shares enough responses and has a kappa.
    fragile : int
        How many of these share fewer than 10 responses.
    constant : int
        In how many of these one rater gave one score only, which makes kappa 0.
    undefined : int
        Pairs that share enough, but gave all of it one and the same score.
    too_few : int
        Pairs that share something, but fewer responses than asked for.
    """

    kappas: tuple[float, ...]
    fragile: int
    constant: int
    undefined: int
    too_few: int

    def notes(self, min_shared: int) -> Iterator[Note]:
        """Say what the mean rests on, and what was left out."""
        pairs = len(self.kappas)
        if pairs:
            yield note(Code.KAPPA_OF, pairs=pairs)
        elif self.undefined:
            yield note(Code.KAPPA_ALIKE)
        else:
            yield note(Code.KAPPA_NO_PAIR, min_shared=min_shared)
        if self.fragile:
            yield note(Code.KAPPA_FRAGILE, fragile=self.fragile, pairs=pairs, least=FRAGILE)
        if self.constant:
            yield note(Code.KAPPA_ZERO, constant=self.constant, pairs=pairs)
        if self.undefined and self.kappas:
            yield note(Code.KAPPA_LEFT_ALIKE, pairs=self.undefined)
        if self.too_few:
            yield note(Code.KAPPA_LEFT_FEW, pairs=self.too_few, min_shared=min_shared)

    @property
    def mean(self) -> float:
        """Return the mean over pairs, each counting once; NaN if there is none."""
        return float(np.mean(self.kappas)) if self.kappas else float("nan")


def pair_kappas(
    codes: Integers, pairs: Iterable[tuple[int, int]], q: int, least: int
) -> PairKappas:
    """Return the quadratic weighted kappa of every pair of raters asked for.

    Parameters
    ----------
    codes : shape (raters, n)
        Which of the q points of the scale each score is, from 0; -1 where it is missing. Of
        single scores: rounding a mean to a point would make up agreement.
    pairs : the two raters of each pair
    q : how many points the scale has, used or not
    least : responses that both must have scored
    """
    tables = [_table(codes[first], codes[second], q) for first, second in pairs]
    enough = [table for table in tables if table.sum() >= max(least, 1)]
    kappas = [(quadratic_kappa(table), table) for table in enough]
    defined = [(kappa, table) for kappa, table in kappas if not np.isnan(kappa)]
    return PairKappas(
        kappas=tuple(kappa for kappa, _ in defined),
        fragile=sum(int(table.sum() < FRAGILE) for _, table in defined),
        constant=sum(int(_one_sided(table)) for _, table in defined),
        undefined=len(kappas) - len(defined),
        too_few=sum(int(table.sum() > 0) for table in tables) - len(enough),
    )


def _table(first: Integers, second: Integers, q: int) -> Array:
    cells = first * q + second
    both = np.bincount(cells[(first >= 0) & (second >= 0)], minlength=q * q)
    return both.reshape(q, q).astype(np.float64)


def _one_sided(table: Array) -> bool:
    """Tell whether one of the two raters gave one point only."""
    return bool(min(np.count_nonzero(table.sum(axis=axis)) for axis in (0, 1)) == 1)

"""Moments of two panels' columns by matrix products alone, where the raters are few.

A panel's mean on a response is linear in what a resample decides, each rater's mean and
sd: column = U k, with U fixed (n, 2 raters) and k new in every resample. Its sums of
squares and products are quadratic forms whose matrices are sums over responses, so that
one product of the counts with all products of U's columns serves every resample at once.
"""

from dataclasses import dataclass

import numpy as np

from calibration.resample import ROUNDING, Moments, Prepared, Scale
from calibration.scores import Array, Flags, Integers

FEW = 5  # raters in both panels; the products grow by the square of them


@dataclass(frozen=True, eq=False)
class Linear:
    """A panel's column as U k: `basis` is U, shape (n, 2 raters), 0 where it has no column."""

    members: Integers
    basis: Array

    def weights(self, by: Scale) -> Array:
        """Return k for every resample, shape (B, 2 raters)."""
        factor = by.factor[:, self.members]
        return np.hstack([factor, -factor * by.mean[:, self.members]])


@dataclass(frozen=True, eq=False)
class PairOfPanels:
    """Two columns over the responses that have both, summed by cluster: see `pair_of_panels`."""

    x: Linear
    y: Linear
    features: Array

    @property
    def members(self) -> Integers:
        """Return every rater whose variance the columns need."""
        return np.concatenate([self.x.members, self.y.members])

    def moments(self, counts: Array, by: Scale) -> Moments:
        """Return the weighted sums of both columns, shape (B,), from counts (B, clusters).

        Right only for resamples that leave every member some variance.
        """
        sums = counts @ self.features
        of_x, of_y = self.x.weights(by), self.y.weights(by)
        cut, width = of_x.shape[1], of_x.shape[1] + of_y.shape[1]
        square = sums[:, 1 + width :].reshape(len(sums), width, width)
        on_x = np.einsum("ba,bac->bc", of_x, square[:, :cut])
        on_y = np.einsum("ba,bac->bc", of_y, square[:, cut:, cut:])
        size = np.sqrt(np.einsum("baa->ba", square))
        x = np.einsum("ba,ba->b", of_x, sums[:, 1 : 1 + cut])
        y = np.einsum("ba,ba->b", of_y, sums[:, 1 + cut : 1 + width])
        xx = np.einsum("ba,ba->b", on_x[:, :cut], of_x)
        yy = np.einsum("ba,ba->b", on_y, of_y)
        return Moments(
            n=sums[:, 0],
            x=x,
            y=y,
            xx=_without_noise(xx, x, sums[:, 0], of_x, size[:, :cut]),
            yy=_without_noise(yy, y, sums[:, 0], of_y, size[:, cut:]),
            xy=np.einsum("ba,ba->b", on_x[:, cut:], of_y),
        )


def _without_noise(square: Array, total: Array, n: Array, weights: Array, size: Array) -> Array:
    """Return a sum of squares; that of no variance at all where what is left is cancellation."""
    even = total**2 / np.maximum(n, 1.0)
    terms = np.einsum("ba,ba->b", np.abs(weights), size)
    return np.where(square - even > ROUNDING * terms**2, square, even)


def pair_of_panels(
    prepared: Prepared, x: Integers, y: Integers, rows: Flags
) -> PairOfPanels | None:
    """Return two panels' columns ready for resampling; None if their raters are too many.

    Parameters
    ----------
    prepared : of the grid
    x, y : columns of the two panels' raters; those who take no part are left out
    rows : shape (n,), the responses that may count; those without either column do not
    """
    x, y = x[prepared.usable[x]], y[prepared.usable[y]]
    if not len(x) or not len(y) or len(x) + len(y) > FEW:
        return None
    both = rows & (prepared.given[:, x].any(axis=1)) & (prepared.given[:, y].any(axis=1))
    one, other = _linear(prepared, x, both), _linear(prepared, y, both)
    basis = np.hstack([both[:, None].astype(np.float64), one.basis, other.basis])
    products = (basis[:, 1:, None] * basis[:, None, 1:]).reshape(len(basis), -1)
    by_response = np.hstack([basis, products])
    features = np.zeros((int(prepared.clusters.max()) + 1, by_response.shape[1]))
    np.add.at(features, prepared.clusters, by_response)
    return PairOfPanels(one, other, features)


def _linear(prepared: Prepared, members: Integers, rows: Flags) -> Linear:
    given = prepared.given[:, members]
    share = given * (rows / np.maximum(given.sum(axis=1), 1.0))[:, None]
    return Linear(members, np.hstack([prepared.values[:, members] * share, share]))

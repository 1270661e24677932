"""What the ICC could be at worst and at best if the scores that are missing were known."""

from dataclasses import dataclass

import numpy as np
from scipy import optimize

from calibration.f_interval import Interval
from calibration.scores import Array, Method

STEPS, ENOUGH = 500, 1e-12  # of the climb: most steps, and the least gain worth another


def icc_bounds(
    known: tuple[Array, Array], open_x: Array, ends: tuple[float, float], method: Method
) -> Interval:
    """Return the least and greatest ICC over all ways to fill the missing scores of one column.

    Parameters
    ----------
    known : two columns of shape (n,), n >= 3, no NaN, neither constant
        x (the clinicians) and y (the scorer) where both are there.
    open_x : shape (m,), the clinicians' column where the scorer is missing
    ends : the least and the greatest value that a missing score can have
    method : "paper" takes the ICC of the columns as they are, "published" of their z

    Returns
    -------
    Interval
        Each value is that of some fill, and no fill with every missing score between the ends
        goes beyond it. Minus infinity where a fill mirrors the clinicians. Bounds, not estimates.

    Notes
    -----
    ICC = 2g / (1 + g) rises with g = 2 cov / (var x + var y), or with g = r for z. Where g > 0
    it is quasiconcave in the missing y (linear over convex), so that every peak is the greatest,
    and there y is a straight line of x cut off at the ends. Where no fill has g > 0, the greatest
    is at a corner, and the greater of two missing scores is with the greater x: m + 1 corners.
    The least is the greatest against -x (Boyd & Vandenberghe 2004, section 3.4).
    """
    x, y = known
    mean = np.concatenate([x, open_x]).mean()
    x, free = x - mean, open_x - mean
    middle = float(y.mean())
    low, high = ends[0] - middle, ends[1] - middle
    y = y - middle
    most = _Fill(x, y, np.sort(free), low, high, method).greatest()
    least = -_Fill(-x, y, np.sort(-free), low, high, method).greatest()
    return Interval(_icc(least), _icc(most))


def _icc(ratio: float) -> float:
    return 2 * ratio / (1 + ratio) if 1 + ratio > ENOUGH else float("-inf")


@dataclass(frozen=True, eq=False)
class _Fill:
    """Two columns, and the x (sorted; all x sum to 0) of responses whose y is free in a range."""

    x: Array
    y: Array
    free: Array
    low: float
    high: float
    method: Method

    def greatest(self) -> float:
        """Return the greatest g over all fills."""
        corners = self._corners()
        best = int(np.argmax(corners))
        if not len(self.free) or corners[best] <= 0:
            return float(corners[best])
        upper = np.arange(len(self.free)) >= len(self.free) - best
        return self._climb(np.where(upper, self.high, self.low))

    def _corners(self) -> Array:
        """Return g with the k greatest x at the upper end and the others at the lower, by k."""
        k = np.arange(len(self.free) + 1)
        tail = np.concatenate([[0.0], np.cumsum(self.free[::-1])])
        return self._ratio(
            self.x @ self.y + self.low * (tail[-1] - tail) + self.high * tail,
            self.y.sum() + self.low * (k[-1] - k) + self.high * k,
            self.y @ self.y + self.low**2 * (k[-1] - k) + self.high**2 * k,
        )

    def _climb(self, fill: Array) -> float:
        """Return the g at which no better straight line is found, from a fill with g > 0."""
        found = self._of(fill)
        for _ in range(STEPS):
            fill = self._cut_line(self._slope(fill, found))
            before, found = found, max(found, self._of(fill))
            if found - before <= ENOUGH:
                break
        return found

    def _slope(self, fill: Array, ratio: float) -> float:
        """Return the slope at which the linear part of g and `ratio` times the convex part meet."""
        if self.method == "paper":
            return 1 / ratio
        whole = np.concatenate([self.y, fill])
        return float(whole.std() / np.sqrt(self._xx / len(whole)) / ratio)

    def _cut_line(self, slope: float) -> Array:
        """Return the fill on the line of this slope through the means, cut off at the ends."""
        mean_y = self.y.mean()
        number = len(self.y) + len(self.free)

        def fill(mean: float) -> Array:
            cut: Array = np.clip(mean + slope * self.free, self.low, self.high)
            return cut

        def excess(mean: float) -> float:
            return float(self.y.sum() + fill(mean).sum() - number * mean)

        lower, upper = min(mean_y, self.low), max(mean_y, self.high)
        return fill(optimize.brentq(excess, lower - 1, upper + 1, xtol=1e-14))

    def _of(self, fill: Array) -> float:
        whole = np.concatenate([self.y, fill])
        product = self.x @ self.y + self.free @ fill
        return float(self._ratio(product, whole.sum(), whole @ whole))

    def _ratio(self, xy: Array, total: Array, square: Array) -> Array:
        yy = square - total**2 / (len(self.y) + len(self.free))
        whole = self._xx + yy if self.method == "paper" else 2 * np.sqrt(self._xx * yy)
        ratio: Array = 2 * xy / whole
        return ratio

    @property
    def _xx(self) -> float:
        return float(self.x @ self.x + self.free @ self.free)

r"""Score tests of pairs: whether the restricted likelihood wants a pair, from all rows.

A pair's function has weights with the prior variances :math:`τ/(s_a + s_b)` (:mod:`.bases`). At
τ = 0, the model without the pair, the derivative of the restricted likelihood by τ is, up to a
constant, half of

.. math:: Q = \sum_{ab} \frac{T_{ab}^2}{s_a + s_b}, \qquad T = A^\top R,

R the sums of the slopes of losses over the pairs of coarse codes, and A the products of the
functions of the two columns. Rows and columns of R are free nuisance effects, which A is made
orthogonal to in the metric of the curvatures W: what the main effects have left over, or fitted
to chance, does not count as an effect of the pair. Without such an effect Q is a sum of squares of
normal variables, :math:`\sum_i λ_i χ^2_1` with λ the eigenvalues of :math:`A^\top VA`, V the sums
of *squared* slopes: these hold where the variance changes from row to row, or is larger than the
likelihood has it. (Lin 1997 has this test of a variance component, and White 1980 V.)

The pair needs no fit of its own, and all rows take part, so that weaker effects are found than by
a quarter of the rows that judges a fit to the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from ..losses import Loss, Squared
from .bases import Side

LEVEL = 0.01  # chance that any pair of a table without pairs is wanted
_PRODUCTS = 40  # of the functions of two columns, those with the largest variances
_LOOK = 3.0  # standard deviations of Q, roughly, from which on a pair is tested in full
_BATCH = 512  # pairs at a time in that rough look


@dataclass(frozen=True)
class SquaredSlopes(Loss):
    """A loss with the squares of its slopes in the place of curvatures."""

    of: Loss = field(default_factory=Squared)

    def derivatives(self, y, eta):
        slope, _ = self.of.derivatives(y, eta)
        return slope, slope**2


def suspects(
    pairs: Sequence[tuple[int, int]], tables: Sequence[tuple[np.ndarray, np.ndarray]],
    sides: dict[int, Side], dispersion: float,
) -> list[tuple[int, int]]:  # fmt: skip
    """Pairs whose Q is high, with a variance that is quickly computed: as if A were orthogonal."""
    found = []
    for begin in range(0, len(pairs), _BATCH):
        batch = pairs[begin : begin + _BATCH]
        bend, slope = map(_stacked, zip(*tables[begin : begin + _BATCH], strict=True))
        (first, s), (second, t) = (_functions([sides[p[at]] for p in batch]) for at in (0, 1))
        scale = 1 / (s[:, :, None] + t[:, None, :])  # zero where there is no function
        seen = scale * (first.transpose(0, 2, 1) ** 2 @ bend @ second**2)
        q = np.sum(scale * (first.transpose(0, 2, 1) @ slope @ second) ** 2, axis=(1, 2))
        bar = seen.sum(axis=(1, 2)) + _LOOK * np.sqrt(2 * np.sum(seen**2, axis=(1, 2)))
        found += [batch[at] for at in np.flatnonzero(q > dispersion * bar)]
    return found


def _stacked(tables: Sequence[np.ndarray], beside: float = 0.0) -> np.ndarray:
    """Arrays of different sizes in one, with a number beside them."""
    shape = np.max([table.shape for table in tables], axis=0)
    out = np.full((len(tables), *shape), beside)
    for at, table in enumerate(tables):
        out[at, *map(slice, table.shape)] = table
    return out


def _functions(sides: Sequence[Side]) -> tuple[np.ndarray, np.ndarray]:
    """Functions of sides in one array, and their penalties, infinite where there is none."""
    functions = _stacked([side.functions for side in sides])
    return functions, _stacked([side.penalty for side in sides], np.inf)


def significance(
    bend: np.ndarray, slope: np.ndarray, square: np.ndarray, first: Side, second: Side
) -> float:
    """The chance of a Q as high as this one without an effect of the pair.

    Parameters
    ----------
    bend, slope, square : ndarray of shape (n_first, n_second)
        Sums of curvatures, slopes and squared slopes (W, R and V).
    first, second : Side
        Functions of the two columns at these codes.
    """
    scale = 1 / np.add.outer(first.penalty, second.penalty)
    seen = scale * ((first.functions**2).T @ bend @ second.functions**2)
    a, b = np.unravel_index(np.argsort(-seen, axis=None)[:_PRODUCTS], seen.shape)
    products = first.functions[:, None, a] * (second.functions[:, b] * np.sqrt(scale[a, b]))
    left = _beyond_mains(products.reshape(bend.size, -1), bend)
    q = float(np.sum((slope.ravel() @ left) ** 2))
    return mixture_tail(q, np.linalg.eigvalsh((left.T * square.ravel()) @ left))


def _beyond_mains(products: np.ndarray, bend: np.ndarray) -> np.ndarray:
    """Functions of cells without what rows and columns explain of them, weighted by `bend`."""
    shape = bend.shape
    mains = np.hstack(
        [np.repeat(np.eye(shape[0]), shape[1], axis=0), np.tile(np.eye(shape[1]), (shape[0], 1))]
    )
    weighted = mains.T * bend.ravel()
    gram = weighted @ mains  # singular: rows and columns both hold the constant
    gram.flat[:: len(gram) + 1] += 1e-9 * float(np.trace(gram)) / len(gram)
    return products - mains @ np.linalg.solve(gram, weighted @ products)


def mixture_tail(value: float, weights: np.ndarray) -> float:
    r"""P(Σ λ_i χ²_1 > value), by the saddlepoint approximation (Kuonen 1999).

    With the cumulants :math:`K(t) = -½\sum\log(1 - 2tλ_i)` and :math:`K'(t) = q`, the tail is that
    of a normal variable at :math:`w + \log(v/w)/w`, :math:`w^2 = 2(tq - K)`,
    :math:`v = t\sqrt{K''}`: its relative error stays small however far out q is.
    """
    largest = float(weights.max(initial=0.0))
    if not (largest > 0 and value > 0):
        return 1.0
    own, q = weights[weights > 1e-9 * largest] / largest, value / largest
    mean = float(own.sum())
    if q <= mean * (1 + 1e-6):
        return 1.0  # not rare at all: the exact number does not matter
    high = 0.5 * (1 - 1e-9 / q)
    if np.sum(own / (1 - 2 * high * own)) < q:
        return 0.0
    t = brentq(lambda t: float(np.sum(own / (1 - 2 * t * own))) - q, 0.0, high)
    w = np.sqrt(2 * (t * q + 0.5 * np.sum(np.log1p(-2 * t * own))))
    v = t * np.sqrt(2 * np.sum((own / (1 - 2 * t * own)) ** 2))
    return float(np.exp(log_ndtr(-(w + np.log(v / w) / w))))

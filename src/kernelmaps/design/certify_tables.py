r"""Proof of the error of a table between the points of its grid.

*Smooth kernels.* In s = log x (homogeneous) or s = x (stationary) the error is
x^{γ/2} y^{γ/2} F(s, t) with F(s, t) = k(s − t) − P(s)·P(t), P polynomials. On a grid of step h

.. math:: \sup_{\text{cell}} |F| \le \max_{\text{corners}} |F| + \tfrac{h^2}{8}(A_s + A_t), \qquad
          A_s = \sup |F_{ss}| \le \max \frac{|δ_s^2 F|}{h^2} + \tfrac{h^2}{12} B + \tfrac{h^2}{4} B,

the second bound because second differences deviate from F_ss by at most h²/12 of the fourth
derivative, and F_ss from its bilinear interpolation by at most 2h²/8 of its second ones.
B bounds all derivatives of order four: |k''''| ≤ k''''(0) for a positive-definite k, and for
polynomials |Σ c_m T_m| ≤ Σ |c_m| T_m(1 + δ) a step δ beyond [−1, 1]. Second differences of F see
the smallness of F itself, so that a grid of some thousand steps is enough down to errors of 1e-9.

*Kernels with a kink.* Their tables are linear between nodes, so that ψ(x)·ψ(y) is bilinear on
every cell. Off the diagonal min(x, y) is linear, too, and the error is largest in a corner; a
convex signature of x − y (Laplacian) adds at most h²/8 of its curvature for either variable. On the
cells of the diagonal the same holds along y for x ≤ y, which leaves the parabola k(x, x) − |ψ(x)|²,
whose vertex is known. Cells are divided in four by four, so that the unit of the error (x for
relative ones) hardly changes within them: its least value over the cell is what counts.

Where neither applies (a kernel without a known signature, a set too large to look at all of it)
there is no bound, only the largest error that :mod:`~kernelmaps.design.search` finds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.polynomial import chebyshev

from .certify import Proof, curvature
from .gram import GridKernel
from .search import largest_error
from .tables import RankTable

_STEPS = 1400
_BAND = 50
_PIECES = 4
_BELOW = 256


def table_everywhere(table: RankTable) -> Proof:
    """What is known of the error of a table on its whole domain."""
    grid = table.kernel
    if grid.values is not None:
        complete = grid.fine.size == grid.values.size
        words = f"{grid.fine.size} of {grid.values.size} values"
        return Proof(table.max_error() if complete else np.inf, table.max_error(), words)
    found = _search(table)
    bound, words = np.inf, "grids, random pairs and ascent"
    if not table.polynomial:
        curve = _curvature_beside_the_kink(grid)
        if curve is not None:
            bound, words = _rough_bound(table, curve), "corners and parabolas of cells"
    elif grid.kernel.signature is not None:
        fourth = _fourth_derivative(grid)
        if fourth is not None:
            bound = _smooth_bound(table, fourth)
            words = f"{_STEPS + 1}² pairs and fourth derivatives"
    return Proof(max(bound, found), found, words)


def _search(table: RankTable) -> float:
    """The largest error that an adversary finds."""
    grid = table.kernel

    def error(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        miss = grid.component(x, y) - np.einsum("ij,ij->i", table(x), table(y))
        return miss / grid.tolerance(x, y)

    at = table.nodes if not table.polynomial else None
    return max(table.max_error(), largest_error(error, grid.low, grid.high, at=at)[0])


def _fourth_derivative(grid: GridKernel) -> float | None:
    """k''''(0) by differences with a margin, or None if they do not settle.

    Fourth differences of a mixture of cosines grow to k''''(0) as the step shrinks.
    """
    span = np.log(grid.high / grid.low) if grid.log else grid.high - grid.low
    step = 0.02 * min(float(span), 4.0)
    lags = grid.kernel.of_lag(step * np.array([0.0, 0.5, 1.0, 2.0]))
    fine = (6 * lags[0] - 8 * lags[1] + 2 * lags[2]) / (step / 2) ** 4
    coarse = (6 * lags[0] - 8 * lags[2] + 2 * lags[3]) / step**4
    if abs(fine) < 1e-6 * abs(lags[0]) / step**4 and abs(coarse) < 1e-6 * abs(lags[0]) / step**4:
        return 1e-6 * abs(float(lags[0])) / step**4
    if not 0 < coarse <= 1.01 * fine <= 1.5 * coarse:
        return None
    return 1.1 * max((4 * fine - coarse) / 3, fine)


def _polynomial_derivatives(table: RankTable, span: float) -> float:
    """A bound on the fourth-order derivatives of P(s)·P(t), one step beyond the domain too."""
    beyond = 1 + 2 / _STEPS
    sums = {}
    for order in (0, 2, 4):
        c = np.abs(chebyshev.chebder(table.coefficients, order))
        largest = np.cosh(np.arange(len(c)) * np.arccosh(beyond))  # T_m(1 + δ)
        sums[order] = (largest @ c) * (2 / span) ** order
    return float(max(sums[4] @ sums[0], sums[2] @ sums[2]))


def _smooth_bound(table: RankTable, fourth: float) -> float:
    """The bound above over all cells, in bands of rows that stay in the processor's cache."""
    grid = table.kernel
    first = np.log(grid.low) if grid.log else grid.low
    span = (np.log(grid.high) if grid.log else grid.high) - first
    h = span / _STEPS
    index = np.arange(-1, _STEPS + 2)
    basis = chebyshev.chebvander(2 * index / _STEPS - 1, table.coefficients.shape[0] - 1)
    P = basis @ table.coefficients
    k = _of_lags(grid.kernel.of_lag(h * np.arange(_STEPS + 3.0)))
    share = _shares_of_units(grid, h, first, fourth)
    margin = h**4 * (fourth + _polynomial_derivatives(table, float(span))) / 12
    worst = 0.0
    for begin in range(0, _STEPS, _BAND):  # F is symmetric: cells from the diagonal on suffice
        end = min(begin + _BAND, _STEPS)
        F = k[begin : end + 3, begin:] - P[begin : end + 3] @ P[begin:].T
        sup = (_sup_of_cells(F) + margin) * share(slice(begin, end), slice(begin, None))
        worst = max(worst, float(np.max(sup)))
    return worst


def _sup_of_cells(F: np.ndarray) -> np.ndarray:
    """Corners and second differences of cells, of F on their nodes and one more on every side."""
    inner = F[1:-1, 1:-1]
    down = _cells(np.abs(F[:-2, 1:-1] - 2 * inner + F[2:, 1:-1]))
    along = _cells(np.abs(F[1:-1, :-2] - 2 * inner + F[1:-1, 2:]))
    return _cells(np.abs(inner)) + (down + along) / 8


def _of_lags(values: np.ndarray) -> np.ndarray:
    """The matrix of values[|i − j|], a view."""
    both = np.concatenate([values[:0:-1], values])
    return np.lib.stride_tricks.sliding_window_view(both, values.size)[::-1]


def _shares_of_units(
    grid: GridKernel, h: float, first: float, fourth: float
) -> Callable[[slice, slice], np.ndarray]:
    """What F is multiplied by in some cells, at most, for an error in units of the tolerance."""
    if grid.error == "relative":
        k = grid.kernel.of_lag(h * np.arange(float(_STEPS)))
        steepest = abs(k[0]) ** 0.75 * fourth**0.25  # |k'| ≤ ∫|ω| ≤ (∫1)^¾ (∫ω⁴)^¼
        floor = k - h * steepest  # lags of a cell are within a step of its corner's
        inverse = _of_lags(1 / floor if np.all(floor > 0) else np.full(_STEPS, np.inf))
        return lambda rows, columns: inverse[rows, columns]
    power = grid.kernel.gamma / 2 if grid.error == "absolute" and grid.log else 0.0
    envelope = np.exp(power * (first + h * np.arange(1, _STEPS + 1)))
    return lambda rows, columns: np.multiply.outer(envelope[rows], envelope[columns])


def _cells(nodes: np.ndarray) -> np.ndarray:
    """The largest of the four corners of each cell."""
    rows = np.maximum(nodes[1:], nodes[:-1])
    return np.maximum(rows[:, 1:], rows[:, :-1])


def _curvature_beside_the_kink(grid: GridKernel) -> float | None:
    """A bound on |k''| of a kernel with a kink off its diagonal, or None if none is known."""
    if grid.brownian:
        return 0.0
    if grid.kernel.signature is None or grid.log:
        return None
    value, sure, _ = curvature(grid.kernel.signature, grid.high - grid.low)
    return value if sure else None


def _rough_bound(table: RankTable, curve: float) -> float:
    """Corners and parabolas of all cells, in units of the least tolerance of each."""
    grid = table.kernel
    at = np.linspace(0, 1, _PIECES, endpoint=False)
    x = np.append((table.nodes[:-1, None] + np.diff(table.nodes)[:, None] * at).ravel(), grid.high)
    values, steps = table(x), np.diff(x)
    miss = np.abs(grid.gram(x) - values @ values.T)
    sup = _cells(miss) + curve / 8 * np.add.outer(steps**2, steps**2)
    # k(x, x) − |v + s t|² with a linear k(x, x): the vertex is where its slope is 2 s·(v + s t)
    start, slope = values[:-1], np.diff(values, axis=0) / steps[:, None]
    peak = grid.component(x, x)
    rise = np.diff(peak) / steps
    square = np.maximum(np.sum(slope**2, axis=1), 1e-300)
    move = np.clip((0.5 * rise - np.sum(start * slope, axis=1)) / square, 0, steps)
    vertex = np.abs(peak[:-1] + rise * move - np.sum((start + slope * move[:, None]) ** 2, axis=1))
    cells = np.arange(steps.size)
    sup[cells, cells] = np.maximum(sup[cells, cells], vertex + curve / 4 * steps**2)
    return float(np.max(sup / -_cells(-grid.scale_matrix(x))))


def table_to_zero(table: RankTable, bound: float) -> float:
    r"""A bound for all of [0, b]; infinite where nothing is known of the kernel's growth.

    Below m a table is the straight line ψ(x) = (x/m) ψ(m). For x = tm < m ≤ y

    .. math:: k(x, y) - ψ(x)·ψ(y) = [k(x, y) - t k(m, y)] + t [k(m, y) - ψ(m)·ψ(y)],

    and with ts in place of t for x = tm, y = sm. The second bracket is the error on the domain. A
    kernel that grows in both arguments keeps the first between its values in the corners of a cell.
    """
    grid = table.kernel
    whole = grid.values is None and grid.error == "absolute"  # a set has gaps, bounded by nothing
    if not (grid.kernel.grows and whole and np.isfinite(bound)):
        return np.inf
    t = np.linspace(0, 1, _BELOW + 1)
    above = np.geomspace(grid.low, grid.high, 4 * _BELOW + 1)
    peak = float(grid.component(np.array(grid.low), np.array(grid.low)))
    mixed = _gap(grid, t, above, np.multiply.outer(t, grid.component(grid.low, above)))
    small = _gap(grid, t, grid.low * t, peak * np.multiply.outer(t, t))
    return max(
        bound,
        float(np.max(mixed + bound * t[1:, None])),
        float(np.max(small + bound * np.multiply.outer(t[1:], t[1:]))),
    )


def _gap(grid: GridKernel, t: np.ndarray, y: np.ndarray, line: np.ndarray) -> np.ndarray:
    """Largest |k(tm, y) − line| on each cell; both grow in t and y."""
    exact = grid.component(grid.low * t[:, None], y[None, :])
    return np.maximum(exact[1:, 1:] - line[:-1, :-1], line[1:, 1:] - exact[:-1, :-1])

r"""A proof that a table keeps its error between all grid points.

*Smooth kernels.* In s = log x (homogeneous) or s = x (stationary) the error is
x^{γ/2} y^{γ/2} F(s, t) with F(s, t) = k(s − t) − P(s)·P(t), P polynomials. On a grid of step h

.. math:: \sup_{\text{cell}} |F| \le \max_{\text{corners}} |F| + \tfrac{h^2}{8}(A_s + A_t), \qquad
          A_s = \sup |F_{ss}| \le \max \frac{|δ_s^2 F|}{h^2} + \tfrac{h^2}{12} B + \tfrac{h^2}{4} B,

the second bound because second differences deviate from F_ss by at most h²/12 of the fourth
derivative, and F_ss from its bilinear interpolation by at most 2h²/8 of its second ones.
B bounds all derivatives of order four: |k''''| ≤ k''''(0) for a positive-definite k, and for
polynomials |Σ c_m T_m| ≤ Σ |c_m| T_m(1 + δ) a step δ beyond [−1, 1]. Second differences of F see
the smallness of F itself, so that a grid of some thousand steps is enough down to errors of 1e-9.

*The intersection kernel.* Its table is linear between nodes, so that min(x, y) − ψ(x)·ψ(y) is
bilinear on every cell off the diagonal and largest in a corner. On the diagonal cells it is linear
in y for x ≤ y, and what remains is the parabola x − |ψ(x)|², whose vertex is known.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import chebyshev

from .gram import GridKernel
from .tables import RankTable

__all__ = ["table_everywhere"]

_STEPS = 1400


def table_everywhere(table: RankTable) -> tuple[float, bool, str]:
    """A bound on the error of a table on its whole domain, whether it is proved, and how."""
    grid = table.kernel
    if grid.values is not None:
        complete = grid.fine.size == grid.values.size
        return table.max_error(), complete, f"{grid.fine.size} of {grid.values.size} values"
    checked = max(table.max_error(), table.max_error(_between(grid)))
    if not table.polynomial:
        if grid.name == "intersection" and grid.power == 0.5 and grid.error == "absolute":
            return max(checked, _intersection_bound(table)), True, "corners and parabolas of cells"
        return checked, False, f"grids of {grid.fine.size} and {grid.fine.size - 1} values"
    fourth = _fourth_derivative(grid) if grid.stationary else None
    if fourth is None:
        return checked, False, f"grids of {grid.fine.size} and {grid.fine.size - 1} values"
    bound = _smooth_bound(table, fourth)
    words = f"{_STEPS + 1}² pairs and fourth derivatives; {checked:.4g} on other grids"
    return max(bound, checked), True, words


def _between(grid: GridKernel) -> np.ndarray:
    """Values that are no grid points, for a check of what lies between."""
    return grid.fine[:-1] + 0.382 * np.diff(grid.fine)


def _signature(grid: GridKernel, lag: np.ndarray) -> np.ndarray:
    """k(λ), from the kernel itself."""
    if grid.log:
        return grid.component(np.exp(-lag / 2), np.exp(lag / 2))
    return grid.component(np.zeros_like(lag), lag)


def _fourth_derivative(grid: GridKernel) -> float | None:
    """k''''(0) by differences with a margin, or None if they do not settle.

    Fourth differences of a mixture of cosines grow to k''''(0) as the step shrinks.
    """
    span = np.log(grid.high / grid.low) if grid.log else grid.high - grid.low
    step = 0.02 * min(float(span), 4.0)
    lags = _signature(grid, step * np.array([0.0, 0.5, 1.0, 2.0]))
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
        c = np.abs(chebyshev.chebder(table.coefficients, order)) if order else None
        c = np.abs(table.coefficients) if c is None else c
        largest = np.cosh(np.arange(len(c)) * np.arccosh(beyond))  # T_m(1 + δ)
        sums[order] = (largest @ c) * (2 / span) ** order
    return float(max(sums[4] @ sums[0], sums[2] @ sums[2]))


def _smooth_bound(table: RankTable, fourth: float) -> float:
    grid = table.kernel
    first = np.log(grid.low) if grid.log else grid.low
    span = (np.log(grid.high) if grid.log else grid.high) - first
    h = span / _STEPS
    index = np.arange(-1, _STEPS + 2)
    basis = chebyshev.chebvander(2 * index / _STEPS - 1, table.coefficients.shape[0] - 1)
    P = basis @ table.coefficients
    lag = np.abs(index[:, None] - index)
    F = _signature(grid, h * np.arange(_STEPS + 3.0))[lag] - P @ P.T
    B = fourth + _polynomial_derivatives(table, float(span))
    bends = np.abs(F[:-2, 1:-1] - 2 * F[1:-1, 1:-1] + F[2:, 1:-1])  # F is symmetric: one suffices
    bends = _cells(bends) + h**4 * B / 3
    inner = np.abs(F[1:-1, 1:-1])
    sup = _cells(inner) + (bends + bends.T) / 8
    upper = (first + h * index[2:-1]) if grid.log else np.zeros(_STEPS)
    if grid.error == "absolute":
        unit = np.exp(grid.power * upper)
        return float(np.max(unit[:, None] * sup * unit))
    if grid.error == "signature":
        return float(np.max(sup))
    k = _signature(grid, h * np.arange(_STEPS + 1.0))
    steepest = abs(k[0]) ** 0.75 * fourth**0.25  # |k'| ≤ ∫|ω| ≤ (∫1)^¾ (∫ω⁴)^¼
    floor = k[lag[1:-2, 1:-2]] - h * steepest  # lags of a cell are within a step of its corner's
    return float(np.max(sup / floor)) if np.all(floor > 0) else np.inf


def _cells(nodes: np.ndarray) -> np.ndarray:
    """The largest of the four corners of each cell."""
    rows = np.maximum(nodes[1:], nodes[:-1])
    return np.maximum(rows[:, 1:], rows[:, :-1])


def _intersection_bound(table: RankTable) -> float:
    nodes = table.nodes
    values = table.coefficients
    corners = float(np.max(np.abs(np.minimum.outer(nodes, nodes) - values @ values.T)))
    start, slope = values[:-1], np.diff(values, axis=0) / np.diff(nodes)[:, None]
    # x − |v + s (x − a)|² has its vertex where 1 = 2 s·(v + s (x − a))
    a = nodes[:-1]
    square = np.maximum(np.sum(slope**2, axis=1), 1e-300)
    move = np.clip((0.5 - np.sum(start * slope, axis=1)) / square, 0, np.diff(nodes))
    at = start + slope * move[:, None]
    vertex = float(np.max(np.abs(a + move - np.sum(at**2, axis=1))))
    return max(corners, vertex)

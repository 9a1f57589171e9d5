r"""Certificates of designs: error between grid points, and optimality.

**Cosines.** *Between grid points.* For a positive-definite k the derivative of even order is
largest at zero, |k''(λ)| ≤ −k''(0), and |k̂''| ≤ Σ αω². On a grid of step h a function deviates
from its chord by at most h²/8 times its curvature, so with a monotone weight

.. math:: \sup_{[z_i, z_{i+1}]} w|k - \hat k| \le \max(w_i, w_{i+1})
          \big(\max(|e_i|, |e_{i+1}|) + \tfrac{h^2}{8}(-k''(0) + \textstyle\sum αω^2)\big).

A kernel with a kink at zero (intersection, Laplacian) has a convex signature on λ > 0 whose
curvature is largest at 0+; that is checked, not proved, for a user's own.

*Local optimality.* D + 1 alternations of the error at its full height mean that no small change of
frequencies and weights helps. Designs of rough kernels may touch their maximum in other patterns;
for them the Taylor program, which would find any first-order improvement, is asked directly.

**Tables.** *Smooth kernels.* In s = log x (homogeneous) or s = x (stationary) the error is
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
there is no bound, only the largest error that was found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev

from ..certificate import Certificate
from .approximation import CosineProblem, Cosines, Function, cosine_sum
from .cosines import alternation, sequential_lp
from .rank_tables import GridKernel, RankTable

_MAX_GRID = 400_000  # most cells of the grid of a proof


@dataclass(frozen=True)
class Proof:
    """A bound on an error with the way it was obtained.

    Attributes
    ----------
    bound : float
        No error is larger; infinite where nothing is proved.
    found : float
        The largest error found.
    bound_method : str
        How both were obtained, in words.
    """

    bound: float
    found: float
    bound_method: str

    @property
    def proved(self) -> bool:
        """Whether there is a bound."""
        return bool(np.isfinite(self.bound))


@dataclass(frozen=True)
class DesignCertificate(Proof):
    """How good a design is, and how good any design could be.

    Attributes
    ----------
    bound : float
        The error is at most this everywhere on the domain, between grid points too (up to the
        rounding of the evaluation). Infinite where that is not proved.
    found : float
        The largest error found on the domain: an estimate where there is no bound.
    bound_method : str
        How both were obtained, in words.
    alternations : int
        Times that the weighted error touches its maximum with alternating sign; 0 for tables.
    needed : int
        Alternations that make a cosine design locally optimal: D + 1.
    locally_optimal : bool
        Whether no small change of the design can reduce the error.
    lower_bound : float
        No map of as many columns, of any kind, has a smaller error.
    ratio : float
        Error over lower bound (inf where the bound is zero).
    bound_to_zero : float
        Homogeneous kernels, absolute error: a bound for all values in [0, b], those between zero
        and the smallest value m of the domain included. Infinite where none is known.
    """

    lower_bound: float
    ratio: float
    alternations: int = 0
    needed: int = 0
    locally_optimal: bool = False
    bound_to_zero: float = np.inf

    @property
    def words(self) -> str:
        """The bound, or in its absence the largest error found, and how it was obtained."""
        if self.proved:
            return f"at most {number_words(self.bound)} everywhere (proved: {self.bound_method})"
        largest = number_words(self.found)
        return f"{largest} is the largest error found (no bound is proved: {self.bound_method})"

    def summarise(self, error: str, domain: str) -> Certificate:
        """The part that a fitted map carries."""
        return Certificate(self.bound, error, domain, self.bound_method, found=self.found)


def make_certificate(
    proof: Proof, error: float, lower_bound: float, **facts: Any
) -> DesignCertificate:
    """The certificate of a design of this error; `lower_bound` comes from the rank bound."""
    ratio = float(error / lower_bound) if lower_bound > 0 else np.inf
    return DesignCertificate(**vars(proof), lower_bound=lower_bound, ratio=ratio, **facts)


def number_words(value: float) -> str:
    """Three significant digits, trailing zeros kept: 0.0310."""
    if value == 0 or not np.isfinite(value):
        return f"{value:g}"
    digits = 2 - int(np.floor(np.log10(abs(value))))
    return f"{value:.2e}" if digits > 6 or digits < -3 else f"{value:.{max(digits, 0)}f}"


def even_derivative(signature: Function, order: int, step: float, tolerance: float) -> float:
    """|k''(0)| or k''''(0) of an even k by differences; infinite if they do not settle.

    Where the next derivative is infinite (Matérn kernels of ν ≤ 1, or ν ≤ 2), differences grow
    with every smaller step, like a power of it or like its logarithm.
    """
    for _ in range(4):
        steps = step * np.array([0.25, 0.5, 1.0])
        peak, once, twice = (signature(scale * steps) for scale in (0.0, 1.0, 2.0))
        values = 2 * (peak - once) / steps**2
        if order == 4:
            values = (6 * peak - 8 * once + 2 * twice) / steps**4
        fine, coarse = (4 * values[:-1] - values[1:]) / 3
        rounding = 64 * float(np.finfo(float).eps * abs(peak[0]) / steps[0] ** order)
        if abs(fine - coarse) <= max(tolerance * abs(fine), rounding):
            return float(max(abs(fine), abs(values[0]))) + rounding
        step /= 4
    return np.inf


def curvature(signature: Function, span: float) -> tuple[float, bool, str]:
    """A bound on |k''| over (0, M], whether it is sure, and why."""
    step = 2e-3 * min(span, 1.0)
    value = even_derivative(signature, 2, step, 1e-4)
    if np.isfinite(value):
        return 1.001 * value, True, "|k''| is largest at 0"
    lags = signature(step * np.array([0.0, 0.5, 1.0, 2.0]))
    grid = signature(np.linspace(0, span, 4001))
    second = np.diff(grid, 2)
    coarse = (lags[0] - 2 * lags[2] + lags[3]) / step**2
    fine = 4 * (lags[0] - 2 * lags[1] + lags[2]) / step**2
    convex = bool(np.all(second >= -1e-12 * abs(lags[0])) and np.argmax(second) == 0)
    # Of a smaller ν than that of the Laplacian, it is infinite at 0+.
    converged = abs(fine) <= 1.2 * abs(coarse) + 1e-9 * abs(lags[0]) / step**2
    edge = max((4 * abs(fine) - abs(coarse)) / 3, abs(fine))
    largest = max(edge, float(np.max(np.abs(second))) * (4000 / span) ** 2)
    return 1.01 * largest, convex and converged, "the signature is convex"


def bound_between_grid(problem: CosineProblem, cosines: Cosines) -> Proof:
    """A bound on the weighted error everywhere on the domain."""
    frequencies, weights = cosines
    if problem.points is not None:
        value = float(np.max(np.abs(problem.grid_residual(cosines))))
        return Proof(value, value, "all lags of the discrete set")
    curve, sure, reason = curvature(problem.signature, problem.span)
    curvature_bound = curve + float(weights @ frequencies**2)
    error = max(problem.max_error(cosines), 1e-15 * problem.scale)
    top = float(np.max(problem.weight(problem.lags)))
    cells = problem.span * np.sqrt(top * curvature_bound / (8 * 0.002 * error))
    size = int(np.clip(cells, 4000, _MAX_GRID))
    lags = np.linspace(0, problem.span, size + 1)
    miss = np.abs(problem.signature(lags) - cosine_sum(lags, cosines))
    weight = problem.weight(lags)
    gap = curvature_bound * (lags[1] - lags[0]) ** 2 / 8
    pieces = np.maximum(weight[1:], weight[:-1]) * (np.maximum(miss[1:], miss[:-1]) + gap)
    bound = float(np.max(pieces))
    if problem.tail:
        end = np.array([problem.span])
        remainder = problem.signature(end)[0] + np.sum(weights)
        bound = max(bound, float(problem.weight(end)[0] * remainder))
    monotone = problem.error in ("absolute", "signature") or bool(
        np.all(np.diff(weight) >= 0) or np.all(np.diff(weight) <= 0)
    )
    words = f"computed at {size + 1} lags; bounded between them, since {reason}"
    largest = max(float(np.max(weight * miss)), problem.max_error(cosines))
    return Proof(bound if sure and monotone else np.inf, largest, words)


def certify_cosines(
    problem: CosineProblem, cosines: Cosines, n_columns: int, lower_bound: float
) -> DesignCertificate:
    """Certificate of a cosine design; `lower_bound` comes from the rank bound."""
    peaks = alternation(problem, cosines, slack=1e-3).size
    error = problem.max_error(cosines)
    optimal = peaks > n_columns or error <= 1e-12 * problem.scale
    if not optimal:
        moved = sequential_lp(problem, cosines, radius=1e-3 * problem.span, steps=3)
        optimal = problem.max_error(moved) > error * (1 - 1e-4)
    facts = {"alternations": peaks, "needed": n_columns + 1, "locally_optimal": optimal}
    facts["bound_to_zero"] = _bound_to_zero(problem, cosines)
    return make_certificate(bound_between_grid(problem, cosines), error, lower_bound, **facts)


def _bound_to_zero(problem: CosineProblem, cosines: Cosines) -> float:
    r"""A bound for all of [0, b]: cosines continue below m, where they vanish like x^{γ/2}.

    For values x ≤ y ≤ b of any ratio the error is x^{γ/2} y^{γ/2} |κ − κ̂| ≤ b^γ e^{−γλ/2} |κ − κ̂|,
    λ = log y/x: the weighted error of eq. (16), over all lags and not only over those up to M.
    """
    if not problem.kernel.homogeneous or problem.error != "absolute":
        return np.inf
    if problem.tail:
        return bound_between_grid(problem, cosines).bound
    span = max(problem.span, 60.0 / problem.kernel.gamma)
    return bound_between_grid(replace(problem, points=None, span=span, tail=True), cosines).bound


_STEPS = 1400  # cells of the grid of a table's proof, in each direction
_BAND = 50  # rows of cells at a time: they stay in a cache
_PIECES = 4  # into which a bin of a kernel with a kink is divided
_BELOW = 256  # cells between zero and the domain


def bound_table_everywhere(table: RankTable) -> Proof:
    """What is known of the error of a table on its whole domain."""
    grid = table.kernel
    if grid.values is not None:
        complete = grid.fine.size == grid.values.size
        words = f"{grid.fine.size} of {grid.values.size} values"
        return Proof(table.max_error if complete else np.inf, table.max_error, words)
    # Values between those of the grids, which are alike for all tables.
    places = np.random.default_rng(0).random(400)
    values = np.r_[grid.place(places), (table.nodes[1:] + table.nodes[:-1]) / 2]
    largest = max(table.max_error, table.error_on(np.sort(values)))
    derivative = _curvature_beside_the_kink(grid) if grid.rough else _fourth_derivative(grid)
    if np.isinf(derivative):
        return Proof(np.inf, largest, "grids, random pairs and ascent")
    if grid.rough:
        bound, words = _rough_bound(table, derivative), "corners and parabolas of cells"
    else:
        bound, words = (
            _smooth_bound(table, derivative),
            f"{_STEPS + 1}² pairs and fourth derivatives",
        )
    return Proof(max(bound, largest), largest, words)


def _fourth_derivative(grid: GridKernel) -> float:
    """A bound on k''''(0), with a margin; infinite where there is none."""
    if grid.kernel.signature is None:
        return np.inf
    span = np.log(grid.high / grid.low) if grid.log else grid.high - grid.low
    return 1.1 * even_derivative(grid.kernel.signature, 4, 0.04 * min(float(span), 4.0), 1e-2)


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
    low = np.log(grid.low) if grid.log else grid.low
    span = (np.log(grid.high) if grid.log else grid.high) - low
    h = span / _STEPS
    index = np.arange(-1, _STEPS + 2)
    basis = chebyshev.chebvander(2 * index / _STEPS - 1, table.coefficients.shape[0] - 1)
    P = basis @ table.coefficients
    k = _lag_matrix(grid.kernel.signature(h * np.arange(_STEPS + 3.0)))
    share = _shares_of_units(grid, h, low, fourth)
    margin = h**4 * (fourth + _polynomial_derivatives(table, float(span))) / 12
    worst = 0.0
    for begin in range(0, _STEPS, _BAND):  # F is symmetric: cells from the diagonal on suffice
        end = min(begin + _BAND, _STEPS)
        F = k[begin : end + 3, begin:] - P[begin : end + 3] @ P[begin:].T
        # Corners and second differences of cells; F reaches one node further on every side.
        inner = F[1:-1, 1:-1]
        down = _cells(np.abs(F[:-2, 1:-1] - 2 * inner + F[2:, 1:-1]))
        along = _cells(np.abs(F[1:-1, :-2] - 2 * inner + F[1:-1, 2:]))
        sup = _cells(np.abs(inner)) + (down + along) / 8 + margin
        sup *= share(slice(begin, end), slice(begin, None))
        worst = float(np.maximum(worst, np.max(sup)))  # NaN stays NaN
    return worst


def _lag_matrix(values: np.ndarray) -> np.ndarray:
    """The matrix of values[|i − j|], a view: it stays in the processor's cache."""
    both = np.concatenate([values[:0:-1], values])
    return np.lib.stride_tricks.sliding_window_view(both, values.size)[::-1]


def _shares_of_units(
    grid: GridKernel, h: float, low: float, fourth: float
) -> Callable[[slice, slice], np.ndarray]:
    """What F is multiplied by in some cells, at most, for an error in units of the tolerance."""
    if grid.error == "relative":
        k = grid.kernel.signature(h * np.arange(float(_STEPS)))
        steepest = abs(k[0]) ** 0.75 * fourth**0.25  # |k'| ≤ ∫|ω| ≤ (∫1)^¾ (∫ω⁴)^¼
        floor = k - h * steepest  # lags of a cell are within a step of its corner's
        inverse = _lag_matrix(1 / floor if np.all(floor > 0) else np.full(_STEPS, np.inf))
        return lambda rows, columns: inverse[rows, columns]
    power = grid.kernel.gamma / 2 if grid.error == "absolute" and grid.log else 0.0
    envelope = np.exp(power * (low + h * np.arange(1, _STEPS + 1)))
    return lambda rows, columns: np.multiply.outer(envelope[rows], envelope[columns])


def _cells(nodes: np.ndarray) -> np.ndarray:
    """The largest of the four corners of each cell."""
    rows = np.maximum(nodes[1:], nodes[:-1])
    return np.maximum(rows[:, 1:], rows[:, :-1])


def _curvature_beside_the_kink(grid: GridKernel) -> float:
    """A bound on |k''| of a kernel with a kink off its diagonal; infinite if none is known."""
    if grid.kernel.name == "intersection" and grid.kernel.gamma == 1:
        return 0.0
    if grid.kernel.signature is None or grid.log:
        return np.inf
    value, sure, _ = curvature(grid.kernel.signature, grid.high - grid.low)
    return value if sure else np.inf


def _rough_bound(table: RankTable, curve: float) -> float:
    """Corners and parabolas of all cells, in units of the least tolerance of each."""
    grid = table.kernel
    t = np.linspace(0, 1, _PIECES, endpoint=False)
    x = np.append((table.nodes[:-1, None] + np.diff(table.nodes)[:, None] * t).ravel(), grid.high)
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


def bound_table_to_zero(table: RankTable, bound: float) -> float:
    r"""A bound for all of [0, b]; infinite where nothing is known of the kernel's growth.

    Below m a table is the straight line ψ(x) = (x/m) ψ(m). For x = tm < m ≤ y

    .. math:: k(x, y) - ψ(x)·ψ(y) = [k(x, y) - t k(m, y)] + t [k(m, y) - ψ(m)·ψ(y)],

    and with ts in place of t for x = tm, y = sm. The second bracket is the error on the domain. A
    kernel that grows in both arguments keeps the first between its values in the corners of a cell.
    """
    grid = table.kernel
    # Between the values of a set nothing is bounded.
    is_interval = grid.values is None and grid.error == "absolute"
    if not (grid.kernel.grows and is_interval and np.isfinite(bound)):
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

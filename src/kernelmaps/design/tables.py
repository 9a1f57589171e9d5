r"""Tables: the best rank-D maps of any shape, beyond cosines.

*Eigen*: the Nyström map of the leading D eigenfunctions of the kernel on its domain, best in the
mean square. *Minimax*: minimax error. The table is ψ(x) = x^{γ/2} Σ_m c_m T_m(u(x)), a
polynomial in u = log x (homogeneous) or x (stationary) with D columns, or, for kernels with a
kink, values on an even grid with straight lines between. Its coefficients minimise the p-norm of
the error for p = 8, 32, 128, 512 by L-BFGS. Smooth kernels start from the eigenvectors of the dual
weights of the lower bound, with which the table comes within a percent of what the bound says is
possible. Other starts are plain eigenvectors and the maps of the other methods (cosines, sines),
of which the most promising is followed; a start that is better than where it led to is the answer
itself, so that a table is never worse than another map that it was shown.

*Sines* for the intersection kernel: a closed form that no cosine map in log x matches. min(x, y) is
the covariance of Brownian motion, and on [0, b] it has the expansion

.. math:: \min(x, y) = \sum_k \frac{2b}{((k - 1/2)π)^2} \sin\frac{(k - 1/2)πx}{b}
          \sin\frac{(k - 1/2)πy}{b}.

Cut at D terms the error is largest on the diagonal; weights by a linear program halve it. Unlike
cosines in log x these are exact at zero and need no smallest value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from scipy.sparse.linalg import ArpackError, eigsh

from .._util.threads import cached_property
from .bounds import GridKernel, descend, rank_bound
from .lp import least_error, log_p_norm

Curve = Callable[[np.ndarray], np.ndarray]
_POWERS = (8, 32, 128, 512)  # p of the norms that approach the largest error
_BAND = 48  # rows of a Gram matrix at a time: they stay in a cache
_DENSE = 400
"""Points up to which all eigenvectors of a Gram matrix are computed at once."""


@dataclass(frozen=True, eq=False)
class RankTable:
    """A map of one feature as data.

    Attributes
    ----------
    kernel : GridKernel
        What it approximates.
    coefficients : ndarray of shape (n_basis, D)
        Chebyshev coefficients in log x or x; of a rough kernel, values on `nodes`.
    nodes : ndarray
        Knots of the straight lines, or the grid of the polynomial's optimisation.
    """

    kernel: GridKernel
    coefficients: np.ndarray
    nodes: np.ndarray

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """ψ(x), shape (n, D)."""
        x = np.asarray(x, dtype=np.float64)
        if self.kernel.rough:
            return np.stack([np.interp(x, self.nodes, column) for column in self.coefficients.T], 1)
        basis = chebvander(self.kernel.position(x), self.coefficients.shape[0] - 1)
        return self.kernel.envelope(x)[:, None] * (basis @ self.coefficients)

    @cached_property
    def max_error(self) -> float:
        """Largest error on the fine grid."""
        return self.error_on(self.kernel.fine)

    def error_on(self, x: np.ndarray) -> float:
        """Largest error on some values, in units of the tolerance."""
        values = self(x)
        worst = 0.0
        # Symmetric: pairs from the diagonal on suffice, in bands that stay in the cache.
        for begin in range(0, x.size, _BAND):
            rows = slice(begin, begin + _BAND)
            pair = x[rows, None], x[None, begin:]
            miss = self.kernel.component(*pair) - values[rows] @ values[begin:].T
            largest = np.max(np.abs(miss) / self.kernel.tolerance(*pair))
            worst = float(np.maximum(worst, largest))  # NaN stays NaN
        return worst


def _basis(kernel: GridKernel, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormalised x^{γ/2} T_m on the nodes, and its map back to Chebyshev coefficients."""
    # Polynomials per column: enough for the map, too few to wiggle between the nodes.
    size = min(26, max(2, kernel.nodes.size - 1))
    q, r = np.linalg.qr(chebvander(kernel.position(nodes), size - 1))
    root = np.sqrt(nodes.size)
    return kernel.envelope(nodes)[:, None] * q * root, np.linalg.inv(r) * root


def eigen_table(kernel: GridKernel, n_columns: int) -> RankTable:
    """Rank-D map of least mean square error over the domain.

    On an interval the eigenproblem is weighed by the spacing of its points (a quadrature of the
    integral operator), on a set of values all count alike. Eigenvectors extend to the table's
    nodes by the Nyström formula ψ_j(x) = Σ_i k(x, x_i) d_i v_ij / √λ_j.
    """
    points = kernel.fine
    d = np.ones(points.size) if kernel.values is not None else np.sqrt(np.gradient(points))
    values, vectors = _leading(kernel.gram(points), d, n_columns)
    cross = kernel.component(kernel.nodes[:, None], points[None, :])
    # A kernel of lower rank leaves columns of zeros: its other eigenvalues are rounding.
    some = values > points.size * np.finfo(float).eps * np.max(values)
    root = np.where(some, np.sqrt(np.where(some, values, 1.0)), np.inf)
    return _from_values(kernel, cross @ (d[:, None] * vectors) / root)


def minimax_table(kernel: GridKernel, n_columns: int, curves: Sequence[Curve] = ()) -> RankTable:
    """Rank-D map of minimax error.

    Parameters
    ----------
    kernel : GridKernel
        Kernel, domain and unit of error.
    n_columns : int
        The rank D.
    curves : sequence of callables
        Maps x (n,) -> (n, at most D) of other methods, to start from and to be compared with.

    Notes
    -----
    A kernel with a kink is solved on a coarse grid first and finished on one twice as fine.
    """
    nodes = kernel.nodes
    gram = kernel.gram(nodes)
    weights = [np.ones(nodes.size)]
    if not kernel.rough:
        weights.append(np.maximum(rank_bound(kernel, n_columns, nodes is kernel.allowed)[1], 1e-3))
    starts = [_eigenvectors(gram, d, n_columns) for d in weights]
    starts += [_pad_columns(curve(nodes), n_columns) for curve in curves]
    scouts = [_descend(kernel, nodes, start, _POWERS[:3], steps=60) for start in starts]
    best = min(scouts, key=lambda table: table.max_error)
    best_table = _descend(kernel, nodes, best(nodes))
    if kernel.rough:
        finer = kernel.spread(257)
        best_table = _descend(kernel, finer, best_table(finer), powers=_POWERS[-2:], steps=150)
    tables = [eigen_table(kernel, n_columns)]
    for curve in curves:
        tables.append(
            _from_values(kernel, _pad_columns(curve(best_table.nodes), n_columns), best_table.nodes)
        )
    return min([best_table, *tables], key=lambda table: table.max_error)


def _pad_columns(values: np.ndarray, n_columns: int) -> np.ndarray:
    """The values with columns of zeros up to D: an exact map may need fewer."""
    return np.pad(values, [(0, 0), (0, n_columns - values.shape[1])])


def _eigenvectors(gram: np.ndarray, d: np.ndarray, n_columns: int) -> np.ndarray:
    """Values of the best rank-D map in the weighted mean square."""
    values, vectors = _leading(gram, d, n_columns)
    return vectors * np.sqrt(np.maximum(values, 0.0)) / d[:, None]


def _leading(gram: np.ndarray, d: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The largest eigenvalues of a weighted Gram matrix, and their vectors.

    A few of a large matrix come from Lanczos, in a tenth of the time of all of them. Its start is
    random: an even one is orthogonal to the odd functions of a symmetric domain.
    """
    matrix = d[:, None] * gram * d
    if d.size > max(_DENSE, 8 * count):
        start = np.random.default_rng(0).standard_normal(d.size)
        try:
            values, vectors = eigsh(matrix, count, which="LA", v0=start)
        except ArpackError:
            values, vectors = np.linalg.eigh(matrix)
    else:
        values, vectors = np.linalg.eigh(matrix)
    keep = np.argsort(-values)[:count]
    return values[keep], vectors[:, keep]


def _from_values(
    kernel: GridKernel, values: np.ndarray, nodes: np.ndarray | None = None
) -> RankTable:
    """A table through values on the nodes."""
    nodes = kernel.nodes if nodes is None else nodes
    if not kernel.rough:
        basis, back = _basis(kernel, nodes)
        values = back @ np.linalg.lstsq(basis, values, rcond=None)[0]
    return RankTable(kernel, values, nodes)


def _descend(
    kernel: GridKernel,
    nodes: np.ndarray,
    start: np.ndarray,
    powers: tuple[int, ...] = _POWERS,
    steps: int = 400,
) -> RankTable:
    """Minimise p-norms of the weighted error, p growing, over the table's coefficients."""
    gram, scale = kernel.gram(nodes), kernel.scale_matrix(nodes)
    if kernel.rough:
        basis = np.diag(np.sqrt(np.maximum(np.diag(gram), 1e-6 * np.max(gram))))
        back = basis
    else:
        basis, back = _basis(kernel, nodes)
    x = np.linalg.lstsq(basis, start, rcond=None)[0].ravel()
    for power in powers:
        given = power, basis, gram, scale
        x = descend(_value, x, given, maxiter=steps, maxcor=30, ftol=1e-13, gtol=1e-10).x
    return RankTable(kernel, back @ x.reshape(basis.shape[1], -1), nodes)


def _value(
    x: np.ndarray, power: int, basis: np.ndarray, gram: np.ndarray, scale: np.ndarray
) -> tuple[float, np.ndarray]:
    """log ‖(K − ΨΨᵀ)/T‖_p and its gradient in the coefficients x."""
    values = basis @ x.reshape(basis.shape[1], -1)
    norm, gradient = log_p_norm((gram - values @ values.T) / scale, power)
    return norm, -2 * (basis.T @ ((gradient / scale) @ values)).ravel()


def sine_design(high: float, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies (k − ½)π/b and the non-negative weights of minimax error."""
    order = np.arange(1, n_columns + 1) - 0.5
    # All pairs of a coarse grid, and the diagonal finely: there the error peaks.
    points = np.linspace(0, 1, max(48, 8 * n_columns) + 1)[1:]
    first, second = np.triu_indices(points.size)
    diagonal = np.linspace(0, 1, max(400, 60 * n_columns) + 1)[1:]
    x, y = np.r_[points[first], diagonal], np.r_[points[second], diagonal]
    products = np.sin(np.pi * np.outer(x, order)) * np.sin(np.pi * np.outer(y, order))
    return order * np.pi / high, least_error(products, np.minimum(x, y)) * high

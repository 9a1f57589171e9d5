r"""Kernels on a grid of values: what no map of a size can beat, and the tables that nearly do.

Any map of D columns has a Gram matrix of rank at most D. On a grid x_1 < … < x_N the question is
then how well a matrix K_ij = k(x_i, x_j) can be approximated by rank D in the largest weighted
entry, |E_ij| ≤ ε T_ij, with T = 1 (absolute error), k (relative), or b^γ-free roots (signature).

**Lower bound.** Let E = K − K̂ with K̂ of rank at most D and |E_ij| ≤ ε T_ij. For any weights
d_i ≥ 0 write K_d = diag(d) K diag(d). Eckart, Young and Mirsky say that no matrix of rank D comes
closer to K_d in the Frobenius norm than the root of the squares of its other singular values, so

.. math:: \Big(\sum_{j>D} σ_j(K_d)^2\Big)^{1/2} \le \|E_d\|_F
          \le ε \Big(\sum_{ij} d_i^2 d_j^2 T_{ij}^2\Big)^{1/2},

a bound on ε for *every* map, at least as strong as the spectral one σ_{D+1}(K_d)/Σd² for the same
d. It is maximised over d by L-BFGS on log d; with K_d = VΣVᵀ the gradient of the logarithm of the
left side with respect to log d_i is 2 Σ_{j>D} σ_j² V_ij² / Σ_{j>D} σ_j². Any d gives a valid bound.
Kernels with a kink have many local maxima, which several starts look for.

Smooth kernels have Gram matrices K = FFᵀ with a thin F, up to rounding. The eigenvalues σ_j of
K_d are then those of the small matrix (dF)ᵀ(dF), and σ_j V_ij² = (d_i F_i u_j)², with its
eigenvectors u_j.

**Tables** are the best rank-D maps of any shape, beyond cosines: ψ(x) = x^{γ/2} Σ_m c_m T_m(u(x)),
a polynomial in u = log x (homogeneous) or x (stationary) with D columns, or, for kernels with a
kink, values on an even grid with straight lines between. Their coefficients minimise the p-norm of
the error for p = 8, 32, 128, 512 by L-BFGS. Smooth kernels start from the eigenvectors of K_d for
the best d of the lower bound, which lives on about D + 2 values and is the dual of the table; it
then comes within a percent of what the bound says is possible. Other starts are plain eigenvectors
and the best cosines, and the most promising one is followed; a start that is better than where it
led to is the answer itself, so that a table is never worse than the cosines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebvander

from .._util.arguments import argument
from .._util.threads import cached_property
from .approximation import ERRORS, FeatureKernel, feature_kernel, has_kink
from .cosines import descend, log_p_norm

Curve = Callable[[np.ndarray], np.ndarray]
_EPSILON = float(np.finfo(float).eps)
_POWERS = (8, 32, 128, 512)  # p of the norms that approach the largest error
_BAND = 48  # rows of a Gram matrix at a time: they stay in a cache
_SCATTERED = 8
"""Random starts of a kernel with a kink; with 24, bounds are larger by at most 3 %."""


def gram_bound(
    gram: np.ndarray, unit: np.ndarray, n_columns: int, starts: list[np.ndarray], steps: int = 300
) -> tuple[float, np.ndarray]:
    """The bound for a Gram matrix and squared tolerances T², from several starts of d.

    Zero where it is no more than rounding. Its weights are returned, too, the largest 1.
    """
    weights = np.ones(len(gram))
    if n_columns >= len(gram):
        return 0.0, weights
    factor, least = _factor(gram), np.inf
    for start in starts:
        arguments = gram, factor, unit, n_columns
        optimum = descend(_loss, np.log(start), arguments, maxiter=steps, maxcor=30)
        if optimum.fun < least:
            least, weights = optimum.fun, np.exp(optimum.x - np.max(optimum.x))
    tail, _ = _tail_of_gram(gram, n_columns, weights)
    size = float(weights**2 @ unit @ weights**2)
    bound = float(np.sqrt(tail / size)) if size > 0 else 0.0
    rounding = 1e-14 * float(np.max(np.abs(gram) / np.sqrt(unit)))
    return (bound if np.isfinite(bound) and bound > rounding else 0.0), weights


def _loss(
    logs: np.ndarray, gram: np.ndarray, factor: np.ndarray | None, unit: np.ndarray, n_columns: int
) -> tuple[float, np.ndarray]:
    """Minus the logarithm of the bound, and its gradient in log d."""
    d = np.exp(logs - np.max(logs))
    if factor is None:
        tail, share = _tail_of_gram(gram, n_columns, d)
    else:
        tail, share = _tail_of_factor(factor, n_columns, d)
    squared = d * d
    spread = unit @ squared
    size = squared @ spread
    if tail <= 0 or size <= 0:
        return 700.0, np.zeros_like(logs)
    gradient = 2 * share / tail - 2 * squared * spread / size
    return -0.5 * (np.log(tail) - np.log(size)), -gradient


def _tail_of_gram(gram: np.ndarray, n_columns: int, d: np.ndarray) -> tuple[float, np.ndarray]:
    """Σ_{j>D} σ_j² of K_d, and the share of each row in it."""
    values, vectors = np.linalg.eigh(d[:, None] * gram * d)
    order = np.argsort(-np.abs(values))[n_columns:]
    squares = values[order] ** 2
    return float(np.sum(squares)), vectors[:, order] ** 2 @ squares


def _tail_of_factor(factor: np.ndarray, n_columns: int, d: np.ndarray) -> tuple[float, np.ndarray]:
    """The same for K = FFᵀ."""
    weighted = d[:, None] * factor
    values, vectors = np.linalg.eigh(weighted.T @ weighted)
    small = slice(max(values.size - n_columns, 0))
    tail = values[small]
    return float(tail @ tail), (weighted @ vectors[:, small]) ** 2 @ tail


def _factor(gram: np.ndarray) -> np.ndarray | None:
    """F with FFᵀ = K up to the rounding of its entries; None if K is not positive semi-definite.

    Rows are scaled to one first: weights may be large where K is small.
    """
    root = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    if np.any(np.abs(gram) > 2 * np.outer(root, root)):  # beyond Cauchy and Schwarz: no scale
        return None
    values, vectors = np.linalg.eigh(gram / root[:, None] / root)
    if not values[0] > -64 * _EPSILON * len(gram) * values[-1]:
        return None
    is_large = values > 4 * _EPSILON * values[-1]
    return root[:, None] * vectors[:, is_large] * np.sqrt(values[is_large])


@dataclass(frozen=True, eq=False)
class GridKernel:
    """One feature's kernel on a domain, with the units in which its error counts.

    Parameters
    ----------
    kernel : FeatureKernel
        k(x, y); the map is x^{γ/2} times something smooth in log x, if it is homogeneous.
    low, high : float
        The domain.
    values : ndarray, optional
        A discrete domain; without it the whole interval counts.
    rough : bool
        Whether k has a kink on the diagonal (intersection, Laplacian).
    error : str
        What is approximated: "absolute", "relative" or "signature".
    """

    kernel: FeatureKernel
    low: float
    high: float
    values: np.ndarray | None
    rough: bool
    error: str

    @property
    def log(self) -> bool:
        """Whether the map is smooth in log x rather than in x."""
        return self.kernel.homogeneous

    @property
    def component(self) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """k(x, y)."""
        return self.kernel.component

    @property
    def domain(self) -> Any:
        """The ends, or the values themselves."""
        return (self.low, self.high) if self.values is None else self.values

    @cached_property
    def nodes(self) -> np.ndarray:
        """Grid for optimisation: Chebyshev points where the map is smooth, else an even grid.

        A large set of values is left to its hull, which a smooth map has to serve anyway.
        """
        if self.rough or (self.values is not None and self.values.size <= 96):
            return self.spread(129)
        return self.place(0.5 - 0.5 * np.cos(np.pi * np.arange(72) / 71))

    @cached_property
    def allowed(self) -> np.ndarray:
        """Grid within the domain proper, for bounds that must hold on a set of values too."""
        if self.rough:
            return self.spread(64)
        return self.nodes if self.values is None else self.spread(96)

    @cached_property
    def fine(self) -> np.ndarray:
        """Grid on which errors are reported."""
        if self.rough or self.values is not None:
            return self.spread(1025 if self.values is None else 1500)
        ends = 0.5 - 0.5 * np.cos(np.pi * np.arange(300) / 299)
        return self.place(np.union1d(np.linspace(0, 1, 700), ends))

    def spread(self, size: int) -> np.ndarray:
        """An even grid in x, or in log x where equal ratios count alike; of a set, its values.

        Of more values than `size`, those that are next to such a grid; a smooth map's is even
        along its own variable.
        """
        ratios = self.log and self.error != "absolute"
        if self.values is None:
            even = np.linspace(0.0, 1.0, size)
            return self.place(even) if ratios else np.linspace(self.low, self.high, size)
        if self.values.size <= size:
            return self.values
        place = self.values if self.rough and not ratios else self.position(self.values)
        targets = np.linspace(place[0], place[-1], size)
        return self.values[np.unique(np.argmin(np.abs(place[:, None] - targets), axis=0))]

    def place(self, position: np.ndarray) -> np.ndarray:
        """Values at positions in [0, 1] along the (logarithmic) domain, ends exact."""
        if self.log:
            inner = np.exp(np.log(self.low) + position * np.log(self.high / self.low))
        else:
            inner = self.low + position * (self.high - self.low)
        return np.clip(inner, self.low, self.high)

    def position(self, x: np.ndarray) -> np.ndarray:
        """Inverse of :meth:`place`, in [−1, 1] for polynomials."""
        if self.log:
            return 2 * np.log(x / self.low) / np.log(self.high / self.low) - 1
        return 2 * (x - self.low) / (self.high - self.low) - 1

    def envelope(self, x: np.ndarray) -> np.ndarray:
        """x^{γ/2} of a homogeneous kernel."""
        return x ** (self.kernel.gamma / 2) if self.log else np.ones_like(x)

    def tolerance(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """T(x, y) > 0: the error that counts as one."""
        if self.error == "relative":
            return self.component(x, y)
        if self.error == "signature" and self.log:
            return (x * y) ** (self.kernel.gamma / 2)
        return np.ones(np.broadcast_shapes(np.shape(x), np.shape(y)))

    def gram(self, x: np.ndarray) -> np.ndarray:
        """K on a grid."""
        return self.component(x[:, None], x[None, :])

    def scale_matrix(self, x: np.ndarray) -> np.ndarray:
        """T on a grid."""
        return np.broadcast_to(self.tolerance(x[:, None], x[None, :]), (x.size, x.size))


def grid_kernel(
    kernel: Any, domain: Any, error: Any = "absolute", homogeneous: bool | None = None
) -> GridKernel:
    """A kernel on a range (m, b) or a set of values, with its unit of error."""
    if error not in ERRORS:
        raise ValueError(
            f"design_map: tables take {argument('error', 'absolute')}, 'relative' or 'signature', "
            f"not {error!r}."
        )
    feature = kernel if isinstance(kernel, FeatureKernel) else feature_kernel(kernel, homogeneous)
    log = feature.homogeneous
    values = np.unique(np.asarray(domain, dtype=np.float64).ravel())
    if log:
        values = values[values > 0]
    end = values[-1]
    if feature.signature is None:
        rough = has_kink(lambda t: feature.component(end - t, np.full_like(t, end)), np.ptp(values))
    else:
        rough = has_kink(feature.signature, np.ptp(np.log(values) if log else values))
    ends, finite_set = (float(values[0]), float(end)), values if values.size > 2 else None
    return GridKernel(feature, *ends, finite_set, rough, error)


@lru_cache(maxsize=8)  # a table starts from its weights and is compared with it
def rank_bound(kernel: GridKernel, n_columns: int, within: bool = True) -> tuple[float, np.ndarray]:
    """A lower bound on the error of every map of rank `n_columns`, and its weights.

    Parameters
    ----------
    kernel : GridKernel
        Kernel, domain and unit of error.
    n_columns : int
        The rank D.
    within : bool
        On values of the domain proper; otherwise on the kernel's nodes.

    Returns
    -------
    bound : float
        Zero if the kernel has rank D on the grid.
    weights : ndarray
        The d of the bound, largest 1.
    """
    nodes = kernel.allowed if within else kernel.nodes
    gram, unit = kernel.gram(nodes), kernel.scale_matrix(nodes) ** 2
    root = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    if not kernel.rough:
        powers = (0.0, -0.5, -1.0) if np.ptp(root) > 1e-9 * np.max(root) else (0.0,)
        return gram_bound(gram, unit, n_columns, [root**power for power in powers])
    # D + 1 even steps are the answer for min(x, y): for the points x_i = (2i − 1) b/(2D + 1) the
    # bound is b/(2D + 1)², as singular matrices have a null vector v, and vᵀKv = vᵀEv ≤ ε ‖v‖₁².
    targets = (2 * np.arange(1, n_columns + 2) - 1) / (2 * n_columns + 1)
    even = np.full(nodes.size, 1e-3)
    even[np.argmin(np.abs(nodes[:, None] - nodes[-1] * targets), axis=0)] = 1.0
    rng, starts = np.random.default_rng(0), [even]
    for _ in range(_SCATTERED):
        noise = np.exp(0.3 * rng.standard_normal(nodes.size))
        starts.append(noise * root ** -rng.uniform(0, 1))
    return gram_bound(gram, unit, n_columns, starts, steps=100)


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
    starts = []  # values of the best rank-D maps in the weighted mean square
    for d in weights:
        values, vectors = _leading(gram, d, n_columns)
        starts.append(vectors * np.sqrt(np.maximum(values, 0.0)) / d[:, None])
    starts += [_pad_columns(curve(nodes), n_columns) for curve in curves]
    scouts = [_descend(kernel, nodes, start, _POWERS[:3], steps=60) for start in starts]
    best = min(scouts, key=lambda table: table.max_error)
    best_table = _descend(kernel, nodes, best(nodes))
    if kernel.rough:
        finer = kernel.spread(257)
        best_table = _descend(kernel, finer, best_table(finer), powers=_POWERS[-2:], steps=150)
    fitted = (_pad_columns(curve(best_table.nodes), n_columns) for curve in curves)
    tables = [best_table, *(_fit_table(kernel, values, best_table.nodes) for values in fitted)]
    return min(tables, key=lambda table: table.max_error)


def _pad_columns(values: np.ndarray, n_columns: int) -> np.ndarray:
    """The values with columns of zeros up to D: an exact map may need fewer."""
    return np.pad(values, [(0, 0), (0, n_columns - values.shape[1])])


def _leading(gram: np.ndarray, d: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The largest eigenvalues of a weighted Gram matrix, and their vectors."""
    values, vectors = np.linalg.eigh(d[:, None] * gram * d)
    keep = np.argsort(-values)[:count]
    return values[keep], vectors[:, keep]


def _fit_table(kernel: GridKernel, values: np.ndarray, nodes: np.ndarray) -> RankTable:
    """A table through values on the nodes."""
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
        arguments = power, basis, gram, scale
        x = descend(_value, x, arguments, maxiter=steps, maxcor=30, ftol=1e-13, gtol=1e-10).x
    return RankTable(kernel, back @ x.reshape(basis.shape[1], -1), nodes)


def _value(
    x: np.ndarray, power: int, basis: np.ndarray, gram: np.ndarray, scale: np.ndarray
) -> tuple[float, np.ndarray]:
    """log ‖(K − ΨΨᵀ)/T‖_p and its gradient in the coefficients x."""
    values = basis @ x.reshape(basis.shape[1], -1)
    norm, gradient = log_p_norm((gram - values @ values.T) / scale, power)
    return norm, -2 * (basis.T @ ((gradient / scale) @ values)).ravel()

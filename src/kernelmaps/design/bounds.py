r"""Lower bounds on the error of every map of a size, from a Gram matrix on a grid of values.

Any map of D columns has a Gram matrix of rank at most D. Let E = K − K̂ with K̂ of rank at most D
and |E_ij| ≤ ε T_ij. For any weights d_i ≥ 0 write K_d = diag(d) K diag(d). Eckart, Young and Mirsky
say that no matrix of rank D comes closer to K_d in the Frobenius norm than the root of the squares
of its other singular values, so

.. math:: \Big(\sum_{j>D} σ_j(K_d)^2\Big)^{1/2} \le \|E_d\|_F
          \le ε \Big(\sum_{ij} d_i^2 d_j^2 T_{ij}^2\Big)^{1/2},

a bound on ε for *every* map, at least as strong as the spectral one σ_{D+1}(K_d)/Σd² for the same
d. It is maximised over d by L-BFGS on log d; with K_d = VΣVᵀ the gradient of the logarithm of the
left side with respect to log d_i is 2 Σ_{j>D} σ_j² V_ij² / Σ_{j>D} σ_j².

**Smooth kernels** have Gram matrices K = FFᵀ with a thin F, up to rounding. The eigenvalues σ_j of
K_d are then those of the small matrix (dF)ᵀ(dF), and σ_j V_ij² = (d_i F_i u_j)², with its
eigenvectors u_j.

**Kernels with a kink** have many local maxima. They differ in the points that have weight, which
are hardly more than D + 1. A few steps on a part of the grid tell which points these may be; then
points move to the next place of the grid, one at a time, for as long as that raises the bound, with
matrices of no more rows than there are points.

Any d gives a valid bound. The one returned is computed from all of K for the best d.

Kernel matrices on a grid of values of one feature, for tables and lower bounds.

Any map of D columns has a Gram matrix of rank at most D. On a grid x_1 < … < x_N the question is
then how well a matrix K_ij = k(x_i, x_j) can be approximated by rank D in the largest weighted
entry, |E_ij| ≤ ε·T_ij, with T = 1 (absolute error), k (relative), or b^γ-free roots (signature).

**Lower bound** on the error of every map with D columns: see :mod:`~kernelmaps.design.bounds`.

The best weights live on about D + 2 values: they are the dual of the minimax table, and the
eigenvectors of K_d are an almost optimal table already (see :mod:`~kernelmaps.design.tables`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from .._util.arguments import argument
from .._util.threads import cached_property
from .problem import ERRORS, FeatureKernel, feature_kernel, has_kink

# The tail of a Gram matrix beyond rank D, for weights d: Σ_{j>D} σ_j² of K_d, and each row's share.
Tail = Callable[[np.ndarray], tuple[float, np.ndarray]]
POINTS_PER_COLUMN = 3
"""Points for each column of the map: with fewer, all of them may have weight."""
_EPSILON = float(np.finfo(float).eps)


@dataclass(frozen=True)
class PointSearchOptions:
    """Constants of the search for points (kernels with a kink).

    Measured on the bounds of three kernels with 3 to 25 columns: without the search, from the same
    starts, bounds are up to 4 % smaller; twice or half of a number changes them by 1.3 % at most.
    """

    first_steps: int = 6  # of L-BFGS, from every start
    n_followed: int = 6  # best starts whose points are moved; 2: 0.5 % smaller, 12: 43 % slower
    min_weight: float = 1e-3  # of the largest: points with less are dropped
    min_gain: float = 1e-5  # of log(bound), for which a point is moved; 1e-9: eight times slower


_OPTIONS = PointSearchOptions()


def descend(value: Callable, x: np.ndarray, given: tuple, **options: Any) -> OptimizeResult:
    """Minimise a function that returns its value and its gradient, by L-BFGS."""
    gradient = np.empty(0)

    def value_alone(x: np.ndarray) -> float:
        nonlocal gradient
        loss, gradient = value(x, *given)
        return loss

    # L-BFGS asks for the gradient where it has just asked for the value; ``jac=True`` would
    # copy and compare all of x to find that out.
    return minimize(value_alone, x, jac=lambda _: gradient, method="L-BFGS-B", options=options)


def gram_bound(
    gram: np.ndarray, unit: np.ndarray, n_columns: int, starts: list[np.ndarray], steps: int = 300
) -> tuple[float, np.ndarray]:
    """The bound for a Gram matrix and squared tolerances T², from several starts of d."""
    weights = np.ones(len(gram))
    if n_columns >= len(gram):
        return 0.0, weights
    tail_of, least = _tail_of(gram, n_columns), np.inf
    for start in starts:
        optimum = descend(_loss, np.log(start), (tail_of, unit), maxiter=steps, maxcor=30)
        if optimum.fun < least:
            least, weights = optimum.fun, np.exp(optimum.x - np.max(optimum.x))
    return bound_with(gram, unit, n_columns, weights), weights


def moved_bound(
    gram: np.ndarray,
    unit: np.ndarray,
    n_columns: int,
    starts: list[np.ndarray],
    places: np.ndarray,
) -> tuple[float, np.ndarray]:
    """The same for a kernel with a kink: few points have weight, and they move.

    The search begins with the points at some places of the grid, and with those that the starts
    lead to.
    """
    search = _PointSearch(gram, unit, n_columns)
    candidates = [search.reweighted(places, np.zeros(places.size), 30), *map(search.first, starts)]
    candidates = [points for points in candidates if points.places.size > n_columns]
    candidates = sorted(candidates, key=lambda points: points.loss)[: _OPTIONS.n_followed]
    weights = np.ones(len(gram))
    if candidates:
        best = min(map(search.moved, candidates), key=lambda points: points.loss)
        weights = np.zeros(len(gram))
        weights[best.places] = np.exp(best.logs)
    lower = bound_with(gram, unit, n_columns, weights)
    # Points that the search has left out may still join.
    joined = gram_bound(gram, unit, n_columns, [np.maximum(weights, 0.03)], steps=60)
    return max((lower, weights), joined, key=lambda bound: bound[0])


def bound_with(gram: np.ndarray, unit: np.ndarray, n_columns: int, weights: np.ndarray) -> float:
    """The bound that weights d prove; zero where it is no more than rounding."""
    tail, _ = _tail_of_gram(gram, n_columns, weights)
    squared = weights * weights
    size = float(squared @ unit @ squared)
    bound = float(np.sqrt(tail / size)) if size > 0 else 0.0
    rounding = 1e-14 * float(np.max(np.abs(gram) / np.sqrt(unit)))
    return bound if np.isfinite(bound) and bound > rounding else 0.0


def _loss(logs: np.ndarray, tail_of: Tail, unit: np.ndarray) -> tuple[float, np.ndarray]:
    """Minus the logarithm of the bound, and its gradient in log d."""
    d = np.exp(logs - np.max(logs))
    tail, share = tail_of(d)
    squared = d * d
    spread = unit @ squared
    size = squared @ spread
    if tail <= 0 or size <= 0:
        return 700.0, np.zeros_like(logs)
    gradient = 2 * share / tail - 2 * squared * spread / size
    return -0.5 * (np.log(tail) - np.log(size)), -gradient


def _tail_of(gram: np.ndarray, n_columns: int) -> Tail:
    """The tail of K_d, by a thin factor of K where there is one."""
    factor = _factor(gram)
    if factor is None:
        return partial(_tail_of_gram, gram, n_columns)
    return partial(_tail_of_factor, factor, n_columns)


def _tail_of_gram(gram: np.ndarray, n_columns: int, d: np.ndarray) -> tuple[float, np.ndarray]:
    values, vectors = np.linalg.eigh(d[:, None] * gram * d)
    order = np.argsort(-np.abs(values))[n_columns:]
    squares = values[order] ** 2
    return float(np.sum(squares)), vectors[:, order] ** 2 @ squares


def _tail_of_factor(factor: np.ndarray, n_columns: int, d: np.ndarray) -> tuple[float, np.ndarray]:
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


class _Points(NamedTuple):
    """Points of a grid that have weight.

    Attributes
    ----------
    loss : float
        Minus the logarithm of their bound.
    places : ndarray of int
    logs : ndarray
        Logarithms of their weights, the largest zero.
    """

    loss: float
    places: np.ndarray
    logs: np.ndarray


class _PointSearch(NamedTuple):
    """A search for the points of a grid that give the largest bound."""

    gram: np.ndarray
    unit: np.ndarray
    n_columns: int

    def first(self, start: np.ndarray) -> _Points:
        """The points that gain weight from a start, of every second one if these are enough."""
        places = np.union1d(np.arange(0, start.size, 2), start.size - 1)
        if places.size < POINTS_PER_COLUMN * self.n_columns:
            places = np.arange(start.size)
        logs = self._weighted(places, np.log(start[places]), _OPTIONS.first_steps)[1]
        fewest = np.sort(logs)[-min(self.n_columns + 2, logs.size)]
        is_visible = logs >= min(np.log(_OPTIONS.min_weight), fewest)
        return self.reweighted(places[is_visible], logs[is_visible], 30)

    def moved(self, points: _Points) -> _Points:
        """Points moved to neighbours, each time the move of most gain, until none gains."""
        better: _Points | None = points
        while better is not None:
            points = better
            better = self._step(points)
        return self.reweighted(points.places, points.logs, 100)

    def reweighted(self, places: np.ndarray, logs: np.ndarray, steps: int) -> _Points:
        """Points with better weights, without those that lose theirs."""
        loss, logs = self._weighted(places, logs, steps)
        has_weight = logs > np.log(_OPTIONS.min_weight)
        return _Points(loss, places[has_weight], logs[has_weight])

    def _weighted(
        self, places: np.ndarray, logs: np.ndarray, steps: int
    ) -> tuple[float, np.ndarray]:
        some = np.ix_(places, places)
        tail_of = partial(_tail_of_gram, self.gram[some], self.n_columns)
        optimum = descend(_loss, logs, (tail_of, self.unit[some]), maxiter=steps, maxcor=30)
        return float(optimum.fun), optimum.x - np.max(optimum.x)

    def _step(self, points: _Points) -> _Points | None:
        """One point moved, and all weights improved; None if that raises no bound."""
        moves = self._moves(points.places)
        if not len(moves):
            return None
        best = moves[np.argmin(self._losses(moves, points.logs))]
        moved = self.reweighted(best, points.logs, 8)
        is_better = moved.loss < points.loss - _OPTIONS.min_gain
        return moved if is_better and moved.places.size > self.n_columns else None

    def _moves(self, places: np.ndarray) -> np.ndarray:
        """The places after every move of one of them to a free neighbour."""
        member = np.repeat(np.arange(places.size), 2)
        target = places[member] + np.tile([-1, 1], places.size)
        free = (target >= 0) & (target < len(self.gram)) & ~np.isin(target, places)
        moves = np.repeat(places[None], np.count_nonzero(free), axis=0)
        moves[np.arange(len(moves)), member[free]] = target[free]
        return moves

    def _losses(self, moves: np.ndarray, logs: np.ndarray) -> np.ndarray:
        """The losses of many choices of places, with the same weights."""
        d = np.exp(logs)
        pairs = moves[:, :, None], moves[:, None, :]
        values = np.linalg.eigvalsh(self.gram[pairs] * (d[:, None] * d))
        squares = np.sort(values**2, axis=1)[:, : d.size - self.n_columns]
        size = (self.unit[pairs] @ d**2) @ d**2
        return 0.5 * np.log(size / np.maximum(np.sum(squares, axis=1), 1e-300))


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
    def brownian(self) -> bool:
        """Whether k is min(x, y), the covariance of Brownian motion."""
        return self.kernel.name == "intersection" and self.log and self.kernel.gamma == 1

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
        return self.at(0.5 - 0.5 * np.cos(np.pi * np.arange(72) / 71))

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
        return self.at(np.union1d(np.linspace(0, 1, 700), ends))

    def spread(self, size: int) -> np.ndarray:
        """An even grid in x, or in log x where equal ratios count alike; of a set, its values.

        Of more values than `size`, those that are next to such a grid; a smooth map's is even
        along its own variable.
        """
        ratios = self.log and self.error != "absolute"
        if self.values is None:
            even = np.linspace(0.0, 1.0, size)
            return self.at(even) if ratios else np.linspace(self.low, self.high, size)
        if self.values.size <= size:
            return self.values
        place = self.values if self.rough and not ratios else self.position(self.values)
        targets = np.linspace(place[0], place[-1], size)
        return self.values[np.unique(np.argmin(np.abs(place[:, None] - targets), axis=0))]

    def at(self, position: np.ndarray) -> np.ndarray:
        """Values at positions in [0, 1] along the (logarithmic) domain, ends exact."""
        if self.log:
            inner = np.exp(np.log(self.low) + position * np.log(self.high / self.low))
        else:
            inner = self.low + position * (self.high - self.low)
        return np.clip(inner, self.low, self.high)

    def position(self, x: np.ndarray) -> np.ndarray:
        """Inverse of :meth:`at`, in [−1, 1] for polynomials."""
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
            "not "
            f"{error!r}."
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
    ends, some = (float(values[0]), float(end)), values if values.size > 2 else None
    return GridKernel(feature, *ends, some, rough, error)


_SCATTERED = {True: 24, False: 15}  # starts on few points, and on many


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
        starts = [root**power for power in powers]
        return gram_bound(gram, unit, n_columns, starts)
    rng = np.random.default_rng(0)  # many local maxima: scatter
    few, comb = nodes.size < POINTS_PER_COLUMN * n_columns, _comb(nodes, n_columns)
    starts = []
    for _ in range(_SCATTERED[few]):
        noise = np.exp(0.3 * rng.standard_normal(nodes.size))
        starts.append(noise * root ** -rng.uniform(0, 1))
    if not few:
        return moved_bound(gram, unit, n_columns, starts, comb)
    weights = np.full(nodes.size, 1e-3)
    weights[comb] = 1.0
    return gram_bound(gram, unit, n_columns, [weights, *starts])


def _comb(nodes: np.ndarray, n_columns: int) -> np.ndarray:
    """Places of D + 1 even steps: the answer for min(x, y).

    For D + 1 points x_i = (2i − 1) b/(2D + 1) the bound is b/(2D + 1)²: singular matrices have
    a null vector v, and vᵀKv = vᵀEv ≤ ε ‖v‖₁².
    """
    targets = (2 * np.arange(1, n_columns + 2) - 1) / (2 * n_columns + 1)
    return np.unique(np.argmin(np.abs(nodes[:, None] - nodes[-1] * targets), axis=0))

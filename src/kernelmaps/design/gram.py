r"""Kernel matrices on a grid of values of one feature, for tables and lower bounds.

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
from functools import lru_cache
from typing import Any

import numpy as np

from .._util.arguments import argument
from .._util.threads import cached_property
from .bounds import POINTS_PER_COLUMN, gram_bound, moved_bound
from .problem import ERRORS, FeatureKernel, feature_kernel, has_kink


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

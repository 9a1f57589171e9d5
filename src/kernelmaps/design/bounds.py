r"""Lower bound on the error of every map with D columns.

Let E = K − K̂ with K̂ of rank at most D and |E_ij| ≤ ε T_ij. For any weights d_i > 0 write
K_d = diag(d) K diag(d). Eckart, Young and Mirsky say that no matrix of rank D comes closer to K_d
in the Frobenius norm than the root of the squares of its other singular values, so

.. math:: \Big(\sum_{j>D} σ_j(K_d)^2\Big)^{1/2} \le \|E_d\|_F
          \le ε \Big(\sum_{ij} d_i^2 d_j^2 T_{ij}^2\Big)^{1/2},

a bound on ε for *every* map, at least as strong as the spectral one σ_{D+1}(K_d)/Σd² for the same
d. It is maximised over d by L-BFGS on log d; with K_d = VΣVᵀ the gradient of the logarithm of the
left side with respect to log d_i is 2 Σ_{j>D} σ_j² V_ij² / Σ_{j>D} σ_j².

The best weights live on about D + 2 values: they are the dual of the minimax table, and the
eigenvectors of K_d are an almost optimal table already (see :mod:`~kernelmaps.design.tables`).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.optimize import minimize

from .gram import GridKernel

_SCATTERED = 24


def rank_bound(
    kernel: GridKernel, n_columns: int, nodes: np.ndarray | None = None
) -> tuple[float, np.ndarray]:
    """A lower bound on the error of every map of rank `n_columns`, and its weights.

    Parameters
    ----------
    kernel : GridKernel
        Kernel, domain and unit of error.
    n_columns : int
        The rank D.
    nodes : ndarray, optional
        Grid of values; within the domain by default.

    Returns
    -------
    bound : float
        Zero if the kernel has rank D on the grid.
    weights : ndarray
        The d of the bound, largest 1.
    """
    if nodes is None or nodes is kernel.allowed:
        return _bound_within(kernel, n_columns)
    return _bound_on(kernel, n_columns, nodes)


@lru_cache(maxsize=8)
def _bound_within(kernel: GridKernel, n_columns: int) -> tuple[float, np.ndarray]:
    """The bound of the domain proper: a table starts from its weights and is compared with it."""
    return _bound_on(kernel, n_columns, kernel.allowed)


def _bound_on(kernel: GridKernel, n_columns: int, nodes: np.ndarray) -> tuple[float, np.ndarray]:
    gram, unit = kernel.gram(nodes), kernel.scale_matrix(nodes) ** 2
    root = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    starts = [np.ones(nodes.size), root**-0.5, root**-1.0]
    if kernel.rough:  # many local maxima: scatter
        rng = np.random.default_rng(0)
        starts = [_comb(nodes, n_columns)]
        for _ in range(_SCATTERED):
            noise = np.exp(0.3 * rng.standard_normal(nodes.size))
            starts.append(noise * root ** -rng.uniform(0, 1))
    return gram_bound(gram, unit, n_columns, starts)


def gram_bound(
    gram: np.ndarray, unit: np.ndarray, n_columns: int, starts: list[np.ndarray], steps: int = 300
) -> tuple[float, np.ndarray]:
    """The bound for a Gram matrix and squared tolerances T², from several starts of d."""
    best, weights = 0.0, np.ones(len(gram))
    if n_columns >= len(gram):
        return best, weights
    for start in starts:
        found = minimize(
            _negative_log_bound,
            np.log(start),
            args=(gram, unit, n_columns),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": steps, "maxcor": 30},
        )
        value = float(np.exp(-found.fun))
        if np.isfinite(value) and value > best:
            best, weights = value, np.exp(found.x - np.max(found.x))
    rounding = 1e-14 * float(np.max(np.abs(gram) / np.sqrt(unit)))
    return (best if best > rounding else 0.0), weights


def _comb(nodes: np.ndarray, n_columns: int) -> np.ndarray:
    """Weight on D + 1 even steps and little elsewhere: the answer for min(x, y).

    For D + 1 points x_i = (2i − 1) b/(2D + 1) the bound is b/(2D + 1)²: singular matrices have
    a null vector v, and vᵀKv = vᵀEv ≤ ε ‖v‖₁².
    """
    weights = np.full(nodes.size, 1e-3)
    wanted = (2 * np.arange(1, n_columns + 2) - 1) / (2 * n_columns + 1)
    index = np.argmin(np.abs(nodes[:, None] - nodes[-1] * wanted), axis=0)
    weights[index] = 1.0
    return weights


def _negative_log_bound(
    logs: np.ndarray, gram: np.ndarray, unit: np.ndarray, n_columns: int
) -> tuple[float, np.ndarray]:
    d = np.exp(logs - np.max(logs))
    values, vectors = np.linalg.eigh(d[:, None] * gram * d)
    order = np.argsort(-np.abs(values))[n_columns:]
    squares = values[order] ** 2
    tail = np.sum(squares)
    squared = d * d
    spread = unit @ squared
    size = squared @ spread
    if tail <= 0 or size <= 0:
        return 700.0, np.zeros_like(logs)
    gradient = 2 * (vectors[:, order] ** 2 @ squares) / tail - 2 * squared * spread / size
    return -0.5 * (np.log(tail) - np.log(size)), -gradient

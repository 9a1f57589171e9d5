"""Lasso, elastic net, group lasso and sparse group lasso as functions of merged statistics.

In the notation of `quadratic`, with ρ the `l1_ratio`, the loss of each target is

    F(w) = (ỹᵀỹ − 2 wᵀb + wᵀA w) / (2W),

and iterations end when the duality gap is at most `tol` times ỹᵀỹ/W, as in scikit-learn's Lasso.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq
from sklearn.exceptions import ConvergenceWarning

from ...stats import Moments
from .quadratic import significant, spectrum_of

ROUNDING = 8 * np.finfo(float).eps  # relative: what is left of steps at the minimum
# Sweeps within which the gap must fall by a share: at a thousandth in a hundred, a million would be
# needed to converge, as for features whose sizes differ by many orders.
STALLED_SWEEPS = 100
STALLED_SHARE = 1e-3
INNER_STEPS = 1000  # for one group in one sweep; the next sweep goes on from there


def lasso_path(
    stats: Moments,
    columns: np.ndarray,
    alphas: np.ndarray,
    l1_ratio: float,
    groups: np.ndarray | None,
    **limits: Any,
) -> tuple[np.ndarray, int]:
    """Weights for all α: of the elastic net, or of the sparse group lasso if there are `groups`.

    Parameters
    ----------
    stats, columns : Moments, ndarray of shape (k,)
        The sums, and the columns of them that the model has.
    alphas : ndarray
        α; 0 gives the least-squares solution of least norm.
    l1_ratio : float
        ρ.
    groups : ndarray of shape (k,) or None
        Group of each of these columns.
    **limits : dict
        `max_iter` and `tol`.

    Returns
    -------
    ndarray of shape (n_alphas, t, k)
    int
        Iterations that the slowest took.
    """
    order = np.argsort(alphas)[::-1]  # from the sparsest on: each solution starts the next
    order, free = order[alphas[order] > 0], np.flatnonzero(alphas == 0)
    out = np.zeros((len(alphas), len(stats.cross()), len(columns)))
    n_iter = 1
    if len(free):
        out[free] = spectrum_of(stats, columns).ridge(0.0)
    if not len(order):
        return out, n_iter
    if groups is None or l1_ratio == 1:
        out[order], n_iter = _elastic_net_path(stats, columns, alphas[order], l1_ratio, **limits)
    else:
        penalty = GroupPenalty.from_groups(groups, l1_ratio)
        out[order], n_iter = _group_lasso_path(stats, columns, alphas[order], penalty, **limits)
    return out, n_iter


def _elastic_net_path(
    stats: Moments, columns: np.ndarray, alphas: np.ndarray, l1_ratio: float, **limits: Any
) -> tuple[np.ndarray, int]:
    """Minimise F(w) + α ρ ‖w‖₁ + α (1 − ρ) ‖w‖²/2 by scikit-learn's coordinate descent.

    Its coordinate descent asks for rows even where it is given the Gram matrix. Rows are made
    that have the same A, b and ỹᵀỹ: with A = QΛQᵀ, X = Λ^½ Qᵀ and y = Λ^{−½} Qᵀ b, and one more row
    of zeros in X with what is left of ỹᵀỹ. Its 1/(2n) counts those rows, so α is rescaled.
    """
    from sklearn.linear_model import enet_path

    A, B = stats.scatter()[np.ix_(columns, columns)], stats.cross()[:, columns]
    spectrum = spectrum_of(stats, columns)
    keep = np.flatnonzero(significant(spectrum.values))[::-1]
    root = np.sqrt(spectrum.values[keep])
    rows = np.vstack([root[:, None] * spectrum.axes[:, keep].T, np.zeros(len(columns))])
    scale = stats.weight / len(rows)
    sweeps = 1
    out = np.empty((len(alphas), B.shape[0], len(columns)))
    for target in range(B.shape[0]):
        y = spectrum.c[target, keep] / root
        y = np.append(y, np.sqrt(max(spectrum.yy[target] - y @ y, 0.0)))
        _, coefs, _, counts = enet_path(
            np.asfortranarray(rows),
            y,
            l1_ratio=l1_ratio,
            alphas=alphas * scale,
            precompute=np.ascontiguousarray(A),
            Xy=np.ascontiguousarray(B[target]),
            check_input=False,
            return_n_iter=True,
            **limits,
        )
        out[:, target] = coefs.T
        sweeps = max(sweeps, *counts)
    return out, int(sweeps)


@dataclass(frozen=True)
class GroupPenalty:
    """Ω(w) = ρ ‖w‖₁ + (1 − ρ) Σ_g √p_g ‖w_g‖₂, the sparse group lasso of Simon et al. (2013).

    Attributes
    ----------
    order : ndarray of shape (k,)
        Columns sorted by group.
    starts, sizes : ndarray of shape (n_groups,)
        First place of each group in `order`, and its number of columns p_g.
    l1_ratio : float
        ρ.
    """

    order: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray
    l1_ratio: float

    @classmethod
    def from_groups(cls, groups: np.ndarray, l1_ratio: float) -> GroupPenalty:
        """From the group of each column."""
        _, sizes = np.unique(groups, return_counts=True)
        order = np.argsort(groups, kind="stable")
        return cls(order, np.cumsum(sizes) - sizes, sizes, l1_ratio)

    @property
    def group_weights(self) -> np.ndarray:
        """(1 − ρ) √p_g."""
        return (1.0 - self.l1_ratio) * np.sqrt(self.sizes)

    def norms(self, v: np.ndarray) -> np.ndarray:
        """Euclidean norm of each group."""
        return np.sqrt(np.add.reduceat(v[self.order] ** 2, self.starts))

    def value(self, w: np.ndarray) -> float:
        """Ω(w)."""
        return float(self.l1_ratio * np.abs(w).sum() + self.group_weights @ self.norms(w))

    def dual_norm(self, v: np.ndarray, minimum: float) -> float:
        """Largest vᵀw with Ω(w) ≤ 1, or `minimum` if that is larger.

        It is the root of max_g ‖S(v_g, λρ)‖ − λ (1 − ρ) √p_g in λ, with S the soft threshold.
        As this function is convex and falls, Newton's method from the left does not overshoot.
        """
        norm = minimum
        while True:
            inside = np.abs(_soft_threshold(v, norm * self.l1_ratio))
            norms = self.norms(inside)
            excess = norms - norm * self.group_weights
            group = int(np.argmax(excess))
            if not excess[group] > 0:
                return norm
            columns = self.order[self.starts[group] :][: self.sizes[group]]
            descent = self.l1_ratio * inside[columns].sum() / norms[group]
            larger = norm + excess[group] / (descent + self.group_weights[group])
            if not larger > norm * (1.0 + np.finfo(np.float64).eps):
                return larger
            norm = larger


def _group_lasso_path(
    stats: Moments, columns: np.ndarray, alphas: np.ndarray, penalty: GroupPenalty, **limits: Any
) -> tuple[np.ndarray, int]:
    """Minimise F(w) + α Ω(w) by block coordinate descent over the groups."""
    A = stats.scatter()[np.ix_(columns, columns)] / stats.weight
    B, yy = stats.cross()[:, columns] / stats.weight, stats.y_scatter() / stats.weight
    ends = penalty.starts + penalty.sizes
    blocks = [_Group.from_columns(A, penalty.order[a:b]) for a, b in zip(penalty.starts, ends)]
    sweeps = 1
    out = np.empty((len(alphas), B.shape[0], len(columns)))
    for target, b in enumerate(B):
        problem = _GroupLasso(A, b, float(yy[target]), penalty, blocks)
        w = np.zeros(len(columns))
        for index, alpha in enumerate(alphas.tolist()):
            w, count = problem.solution(alpha, w, **limits)
            out[index, target] = w
            sweeps = max(sweeps, count)
    return out, sweeps


@dataclass(frozen=True)
class _Group:
    """One group: its columns, and its part A_g of A, as it is and as QΛQᵀ.

    Eigenvalues that are zero but for rounding are left out of Λ; correlations lie in the span of
    the others.
    """

    columns: Any
    A: np.ndarray
    values: np.ndarray
    axes: np.ndarray

    @classmethod
    def from_columns(cls, A: np.ndarray, columns: np.ndarray) -> _Group:
        block = A[np.ix_(columns, columns)]
        values, axes = eigh(block)
        keep = significant(values)
        consecutive = columns[-1] - columns[0] == len(columns) - 1 and np.all(np.diff(columns) == 1)
        where = slice(columns[0], columns[-1] + 1) if consecutive else columns
        return cls(where, block, values[keep], axes[:, keep])

    def minimum(
        self, r: np.ndarray, start: np.ndarray, l1: float, l2: float, tol: float
    ) -> np.ndarray:
        """Minimise ½ wᵀA_g w − rᵀw + l1 ‖w‖₁ + l2 ‖w‖₂; exactly if l1 is 0."""
        if l1 == 0:
            return self.axes @ _group_minimum(self.values, self.axes.T @ r, l2)
        if not len(self.values) or not _threshold(r, l1, l2).any():
            return np.zeros_like(r)
        return self._minimise_fista(r, start, l1, l2, tol)

    def _minimise_fista(
        self, r: np.ndarray, start: np.ndarray, l1: float, l2: float, tol: float
    ) -> np.ndarray:
        """FISTA (Beck and Teboulle 2009), whose momentum is dropped where it points uphill.

        The restart is that of O'Donoghue and Candès (2015), by the gradient. Steps end when they
        change the gradient by at most `tol`.
        """
        curvature = self.values[-1]
        tol = max(tol, ROUNDING * np.abs(r).max())
        w = ahead = start
        momentum = 1.0
        for _ in range(INNER_STEPS):
            moved = ahead - (self.A @ ahead - r) / curvature
            new = _threshold(moved, l1 / curvature, l2 / curvature)
            if (ahead - new) @ (new - w) > 0:
                momentum = 1.0
            larger = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
            step = new - w
            ahead = new + (momentum - 1.0) / larger * step
            w, momentum = new, larger
            if curvature * np.abs(step).max() <= tol:
                break
        return w


@dataclass(frozen=True)
class _GroupLasso:
    """One target: A, b and ỹᵀỹ divided by W, and the penalty."""

    A: np.ndarray
    b: np.ndarray
    yy: float
    penalty: GroupPenalty
    blocks: list[_Group]

    def solution(
        self, alpha: float, start: np.ndarray, max_iter: int, tol: float
    ) -> tuple[np.ndarray, int]:
        """Minimise over one group after the other until the duality gap is small enough."""
        w, l1 = start.copy(), alpha * self.penalty.l1_ratio
        gap = smallest = np.inf
        best_sweep = 1
        for sweep in range(1, max_iter + 1):
            before = w.copy()
            correlations = self.b - self.A @ w  # of all columns with the residual
            for block, weight in zip(self.blocks, self.penalty.group_weights):
                old = w[block.columns]
                r = correlations[block.columns] + block.A @ old
                # A gradient that is wrong by ε makes the gap wrong by the share ε/α, about.
                new = block.minimum(r, old, l1, alpha * weight, 0.1 * tol * alpha)
                if np.any(new != old):
                    correlations -= (new - old) @ self.A[block.columns]
                    w[block.columns] = new
            gap = self.gap(w, alpha)
            # Below the rounding of w the gap falls no further, whatever `tol` asks for.
            stands = np.abs(w - before).max(initial=0.0) <= ROUNDING * np.abs(w).max(initial=0.0)
            if gap <= tol * self.yy or stands:
                return w, sweep
            if gap < (1 - STALLED_SHARE) * smallest:
                smallest, best_sweep = gap, sweep
            if sweep - best_sweep >= STALLED_SWEEPS:
                break
        warnings.warn(
            f"the group lasso did not converge in {sweep} sweeps (duality gap "
            f"{gap / self.yy:.1e} of the variance of the targets, tol {tol:.1e}): increase "
            "max_iter, or tol",
            ConvergenceWarning,
            stacklevel=3,
        )
        return w, sweep

    def gap(self, w: np.ndarray, alpha: float) -> float:
        """Duality gap of F + αΩ at w and at the residuals, scaled until they are feasible."""
        product = self.A @ w
        residual = self.yy - 2.0 * self.b @ w + w @ product  # ‖ỹ − Z̃w‖²/W
        scale = alpha / self.penalty.dual_norm(self.b - product, alpha)
        dual = scale * (self.yy - self.b @ w) - scale**2 * residual / 2.0
        return float(residual / 2.0 + alpha * self.penalty.value(w) - dual)


def _group_minimum(values: np.ndarray, r: np.ndarray, l2: float) -> np.ndarray:
    """Minimise ½ Σ Λ w² − rᵀw + l2 ‖w‖₂.

    It is 0 if ‖r‖ ≤ l2; otherwise, with ν = ‖w‖, w = (Λ + l2/ν)⁻¹ r, and ν is the root of
    ‖(Λν + l2)⁻¹ r‖ = 1, whose left side falls in ν.
    """
    size = np.linalg.norm(r)
    if size <= l2:
        return np.zeros_like(r)

    def excess(nu: float) -> float:
        return float(np.linalg.norm(r / (values * nu + l2)) - 1.0)

    # With the smallest eigenvalue in place of all, the root is at most:
    upper = (size - l2) / values.min()
    nu = brentq(excess, 0.0, upper * (1 + 1e-12), xtol=1e-300, rtol=1e-14, maxiter=500)
    return r * nu / (values * nu + l2)


def _threshold(v: np.ndarray, l1: float, l2: float) -> np.ndarray:
    """argmin ‖w − v‖²/2 + l1 ‖w‖₁ + l2 ‖w‖₂: a threshold of each entry, then one of the norm."""
    v = _soft_threshold(v, l1)
    size = np.linalg.norm(v)
    return v * (1.0 - l2 / size) if size > l2 else np.zeros_like(v)


def _soft_threshold(v: np.ndarray, threshold: float) -> np.ndarray:
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0)
